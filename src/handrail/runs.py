"""Runs as a script sees them: start one, wait for it, decide, submit, read its events.

Thin: every call goes to the same engine parts that the command line and the MCP tools use."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from handrail.definitions import Definitions
from handrail.domain.checks.finding import blocks
from handrail.domain.definition.model import Definition
from handrail.domain.definition.tool_pin import pins_of, texts_of
from handrail.domain.definition.work_items import tools_in
from handrail.domain.errors import Invalid
from handrail.domain.journal.event import Outcome
from handrail.domain.run.command import StartRun
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.submission import Submission, Verdict
from handrail.engine.dispatch import Dispatch
from handrail.engine.guiding.guide import Guide
from handrail.engine.reading.ledger import Ledger, event_view
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import Detail, RunSummary, Status
from handrail.engine.running.answers import AnswerGiven
from handrail.engine.running.control import Control
from handrail.engine.running.worker import Worker
from handrail.engine.tool import Toolbox
from handrail.library.inputs import check_inputs

POLL_S: Final = 0.1
"""How often a run that another process executes is looked at."""


@dataclass(frozen=True)
class Execution:
    """What executes runs in this process and takes submissions for them."""

    worker: Worker
    guide: Guide


@dataclass(frozen=True)
class Runs:
    """Starts, finds and lists runs."""

    definitions: Definitions
    dispatch: Dispatch
    control: Control
    reader: RunReader
    ledger: Ledger
    actor: str
    execution: Execution | None = None
    """None: other processes execute what is started here."""

    async def start(
        self,
        what: str | Definition,
        inputs: Mapping[str, Any] | None = None,
        *,
        goal: str = "",
        priority: int = 0,
        key: str = "",
    ) -> RunHandle:
        """Start a run of a file, a workflow id, a saved plan or a definition.

        It is stored before this returns, and continues whether or not the caller does. The same `key` with the same
        request is the same run. Invalid with all findings if the definition or the inputs can't be used."""
        _require_types(goal=(goal, str), priority=(priority, int), key=(key, str))
        definition, pins = await self._definition(what)
        given, findings = check_inputs(definition, dict(inputs or {}), goal)
        if blocks(findings):
            raise Invalid(f"{definition.id} can't start with these inputs", findings=findings)
        run = await self.begin(definition, given, StartRun(goal=goal, priority=priority, key=key, pins=pins))
        return self.get(run.id)

    async def begin(self, definition: Definition, inputs: Mapping[str, Any], ask: StartRun) -> Run:
        """Start a run of a checked definition with checked inputs, here or for another process to execute."""
        if self.execution is not None:
            return await self.execution.worker.start(definition, inputs, actor=self.actor, ask=ask)
        return await start_for_a_worker(
            self.dispatch, self.definitions.toolbox, definition, inputs, actor=self.actor, ask=ask
        )

    def get(self, run_id: str) -> RunHandle:
        """The run with this id; whether it exists is found out by the first call."""
        return RunHandle(run_id, self)

    async def list(
        self, *, status: Collection[str] = (), after: str = "", limit: int = 50, all_projects: bool = False
    ) -> list[RunSummary]:
        """Runs of this project by id, all or those with a status; `after` is the last id of the page before.

        With `all_projects` those of all projects, each with its project."""
        return await self.reader.runs(status=status, after=after, limit=limit, all_projects=all_projects)

    async def settle(self, run_id: str) -> None:
        """Wait until a run has ended, or only an agent or a person can move it; executes it if this process can."""
        await settle(run_id, self.reader, self.execution.worker if self.execution else None)

    async def _definition(self, what: str | Definition) -> tuple[Definition, Mapping[str, str]]:
        if isinstance(what, str):
            return await self.definitions.find(what)
        if not isinstance(what, Definition):
            raise Invalid(
                f"{type(what).__name__} is not a definition",
                hint="give a file, an id, or the `definition` of what load_definition returned, if it is valid",
            )
        await self.definitions.require_runnable(what)
        return what, {}


@dataclass(frozen=True)
class RunHandle:
    """One run, by its id."""

    id: str
    _runs: Runs = field(repr=False)

    async def status(self, *, full: bool = False) -> Status:
        """Where the run is, what it waits for, and what may be done; `full` includes every step."""
        return await self._runs.reader.status(self.id, detail=Detail.FULL if full else Detail.SUMMARY)

    async def finished(self, *, timeout_s: float | None = None) -> Status:
        """Wait until the run has ended, or waits for an agent or a person: its status then.

        TimeoutError after `timeout_s`; the run itself continues."""
        async with asyncio.timeout(timeout_s):
            await self._runs.settle(self.id)
        return await self.status()

    async def submit(
        self, step: str, output: Any = None, *, outcome: str = "done", note: str = "", confirmed: str = ""
    ) -> Verdict:
        """Submit the output of a prompt step; not accepted means that `findings` say what to fix."""
        _require_types(step=(step, str), outcome=(outcome, str), note=(note, str), confirmed=(confirmed, str))
        if self._runs.execution is None:
            raise Invalid("a connection runs no checks", hint="use handrail.open() to submit a step")
        given = Submission(step=step, output=output, outcome=_outcome(outcome), note=note, confirmed=confirmed)
        return await self._runs.execution.guide.submit(self.id, given, actor=self._runs.actor)

    async def approve(self, step: str = "", *, reason: str, answer: Any = None, digest: str = "") -> Status:
        """Say yes to what the run asks; `answer` fills the form of a tool's question.

        `digest` is that of what the person was shown (`status().waiting_for`): if something has changed since, it is a
        conflict. Without it, the answer is to whatever is asked now."""
        return await self._act(Action.APPROVE, reason, step, answer, digest=digest)

    async def reject(self, step: str = "", *, reason: str) -> Status:
        """Say no to what the run asks."""
        return await self._act(Action.REJECT, reason, step)

    async def pause(self, *, reason: str) -> Status:
        """Start no new attempt; running ones end."""
        return await self._act(Action.PAUSE, reason)

    async def resume(self, *, reason: str) -> Status:
        """Continue after a pause."""
        return await self._act(Action.RESUME, reason)

    async def cancel(self, *, reason: str) -> Status:
        """End the run; what was done stays done."""
        return await self._act(Action.CANCEL, reason)

    async def retry(self, step: str = "", *, reason: str) -> Status:
        """Try a failed or uncertain step again, under the same key."""
        return await self._act(Action.RETRY, reason, step)

    async def skip(self, step: str = "", *, reason: str) -> Status:
        """Continue without a failed or uncertain step."""
        return await self._act(Action.SKIP, reason, step)

    async def accept(self, step: str = "", *, reason: str, output: Any = None) -> Status:
        """Count an uncertain step as completed."""
        return await self._act(Action.ACCEPT, reason, step, output)

    async def compensate(self, *, reason: str) -> Status:
        """Undo what was done."""
        return await self._act(Action.COMPENSATE, reason)

    async def fork(self, step: str, *, reason: str) -> RunHandle:
        """A new run that shares everything before a step."""
        _require_types(reason=(reason, str), step=(step, str))
        run = await self._runs.control.act(self.id, Action.FORK, actor=self._runs.actor, reason=reason, step=step)
        return self._runs.get(run.id)

    async def events(self, *, after: int = 0, limit: int = 500) -> list[dict[str, Any]]:
        """The events of the run after number `after`, as the ledger shows them."""
        records = await self._runs.ledger.of_stream(self.id, after=after, limit=limit)
        return [event_view(record) for record in records]

    async def _act(
        self, action: Action, reason: str, step: str = "", output: Any = None, *, digest: str = ""
    ) -> Status:
        _require_types(reason=(reason, str), step=(step, str), digest=(digest, str))
        given = AnswerGiven(channel="library", digest=digest)
        await self._runs.control.act(
            self.id, action, actor=self._runs.actor, reason=reason, step=step, output=output, given=given
        )
        return await self.status()


def _outcome(word: str) -> Outcome:
    try:
        return Outcome(word)
    except ValueError as error:
        known = ", ".join(f"`{one}`" for one in Outcome)
        raise Invalid(f"{word[:40]!r} is not an outcome", hint=f"give one of {known}") from error


def _require_types(**given: tuple[object, type]) -> None:
    """Refuse a wrong type before it reaches the journal, where nothing could read it again."""
    for name, (value, kind) in given.items():
        if type(value) is not kind:
            raise Invalid(f"{name} must be of type {kind.__name__}, not {type(value).__name__}", hint=f"change {name}")


async def settle(run_id: str, reader: RunReader, worker: Worker | None = None) -> None:
    """Wait until a run has ended, or only an agent, a person or a node that is not up can move it; the worker executes
    it if it is free."""
    while True:
        # Another worker may have it, lose it or release it, so both are asked again each time.
        if worker is not None and await worker.take(run_id):
            await worker.settled(run_id)
        if await reader.is_settled(run_id) or await reader.is_stranded(run_id):
            return
        await asyncio.sleep(POLL_S)


async def start_for_a_worker(
    dispatch: Dispatch,
    toolbox: Toolbox,
    definition: Definition,
    inputs: Mapping[str, Any],
    *,
    actor: str,
    ask: StartRun,
) -> Run:
    """Start a run that another process executes; a start that is repeated under its key is the same run."""
    if known := await dispatch.started_under_key(ask):
        return known
    cards = await toolbox.connect(tools_in(definition))
    ask = replace(ask, pins={**pins_of(cards), **ask.pins})  # pins of a saved plan are older, and count
    return await dispatch.start(definition, inputs, actor=actor, ask=ask, texts=texts_of(cards))
