"""Runs as lines of a list: what each is called, who started it, how far it is, and why it is where it is.

Of an open run the state is in memory; of an ended one only its first events, its last ones and its rows of steps are
read, once. The words are in domain/history/headline.py."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import asdict

from handrail.domain.definition.model import Call, Definition, Effect, Tool
from handrail.domain.errors import HandrailError
from handrail.domain.history.headline import (
    FailedStep,
    cause_of,
    end_line,
    failure_line,
    label_of,
    likeness,
    skipped_line,
)
from handrail.domain.history.step_title import title_at
from handrail.domain.history.story_words import actor_name, is_somebody, named
from handrail.domain.instant import instant_text
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import Entry, RunStarted
from handrail.domain.journal.projection import RunRow, StepRow
from handrail.domain.run.state import Run
from handrail.domain.run.status import (
    RUN_WITH_REASON,
    STEP_EXECUTING,
    STEP_IN_TROUBLE,
    STEP_SATISFIED,
    RunStatus,
    StepStatus,
)
from handrail.domain.run.step_path import UNDO, locate
from handrail.domain.scheduling.compensation import undo_order
from handrail.engine.journal import Journal, ProjectionReader
from handrail.engine.reading.agenda_cache import WatchedRuns
from handrail.engine.reading.progress import steps_of
from handrail.engine.reading.run_view import RunSummary, Status, WaitingFor, WaitingKind, listed
from handrail.engine.reading.step_view import Shown
from handrail.foundation.bounded_cache import BoundedCache

BEGINNINGS_KEPT: Final = 20_000
ENDS_KEPT: Final = 2_000
LAST_EVENTS: Final = 50
"""How many of the last events of an ended run are looked at for the one that ended it."""
ENDS: Final = frozenset({"run_cancelled", "run_failed", "run_compensated", "run_compensation_failed"})


class RunLine(RunSummary, frozen=True):
    """A run in a list, with all that a reader needs to tell it from the others."""

    name: str = ""
    """The name of its definition."""
    label: str = ""
    """The input that tells it from other runs of its workflow."""
    starter: str = ""
    total: int = 0
    """How many steps are known, of an open run; loops and workflows are not steps of their own here, but what is in
    them."""
    failed: int = 0
    """How many of its steps failed permanently, or may have."""
    why: str = ""
    """Why it waits, failed or ended early; or what it does now."""
    archived: str = ""
    """The archive that its events are in."""


class WaitingLine(Shown, frozen=True):
    """Something in a run that waits for a person or an agent, in a list."""

    step: str
    kind: WaitingKind
    title: str = ""
    """What a person would call the step."""
    text: str = ""
    """What is asked."""
    why: str = ""
    """What failed, in the tool's own words."""
    since: str = ""
    expires: str = ""
    """When the question no longer counts, or the agent no longer holds the step."""
    by: tuple[str, ...] = ()
    irreversible: int = 0
    """How many of the steps that a yes lets start can't be undone."""
    can_undo: int = 0
    """How many steps of the run could be undone."""
    refused: int = 0
    """How often what the agent submitted was refused."""
    status: StepStatus | None = None
    """Of what a person must decide on: whether the step failed, its outcome is unknown, or its undo failed."""
    alike: int = 1
    """How many steps of the run failed alike, for the same reason or as rounds of one loop: they are one line."""
    causes: int = 1
    """For how many reasons they failed."""


class LinesStore(Journal, ProjectionReader, Protocol):
    """What the lines are read from."""


class OpenRun(Struct, frozen=True):
    """The state of an open run."""

    run: Run
    definition: Definition
    seen: Status


class Beginning(Struct, frozen=True):
    """What never changes of a run: what it is called, and who started it."""

    name: str = ""
    label: str = ""
    starter: str = ""


class RunEnd(Struct, frozen=True):
    """Why a run ended so; how many of its steps failed, and how many are over."""

    why: str
    failed: int
    done: int


@dataclass
class RunLines:
    """Makes lines of rows."""

    store: LinesStore
    runs: WatchedRuns
    _begin: BoundedCache[str, Beginning] = field(default_factory=lambda: BoundedCache(BEGINNINGS_KEPT))
    _ended: BoundedCache[str, tuple[int, RunEnd]] = field(default_factory=lambda: BoundedCache(ENDS_KEPT))
    """By run: as of which event, and how it ended."""

    async def line(self, row: RunRow, opened: OpenRun | None) -> tuple[RunLine, tuple[WaitingLine, ...]]:
        """A run in a list, and what waits in it; `opened` is its state if it is open and can be read."""
        plain = asdict(listed(row, opened.seen if opened is not None else None))
        try:
            start = asdict(await self.beginning(row.id))
            if opened is None:
                return RunLine(**{**plain, **start, **asdict(await self._end(row))}), ()
        except HandrailError:  # a run that can't be read must not hide the others
            return RunLine(**plain), ()
        failed = len(_in(opened.run, opened.definition, STEP_IN_TROUBLE))
        plain["done"], total = steps_of(opened.run, opened.definition)
        line = RunLine(**plain, **start, total=total, failed=failed, why=_now_line(opened))
        return line, tuple(_waiting(opened))

    async def beginning(self, run_id: str) -> Beginning:
        """What a run is called and who started it, from its first event."""
        known = self._begin.get(run_id)
        if known is not None:
            return known
        records = await self.store.read(run_id, limit=1)
        event = entry_of(records[0]).event if records else None
        if not isinstance(event, RunStarted):
            return Beginning()
        definition = await self.runs.definition(event.definition)
        label = label_of(event.inputs, definition.inputs)
        return self._begin.put(run_id, Beginning(definition.name, label, records[0].actor))

    async def _end(self, row: RunRow) -> RunEnd:
        known = self._ended.get(row.id)
        if known is None or known[0] != row.n:
            known = self._ended.put(row.id, (row.n, await self._read_end(row)))
        return known[1]

    async def _read_end(self, row: RunRow) -> RunEnd:
        steps = await self.store.steps(row.id)
        definition = await self.runs.definition(row.definition)
        done = _done(steps, definition)
        if row.status == RunStatus.COMPLETED:
            return RunEnd(_left_out(steps, definition), 0, done)
        failed = [one for one in steps if one.status in STEP_IN_TROUBLE and not _holds_others(definition, one.path)]
        undone = sum(one.status == StepStatus.COMPENSATED for one in steps)
        failures = await self._failures(failed, definition)
        return RunEnd(end_line(await self._last(row), failures, undone), len(failed), done)

    async def _last(self, row: RunRow) -> Entry | None:
        """The event that a run ended with."""
        records = await self.store.read(row.id, after=max(0, row.n - LAST_EVENTS))
        return next((entry_of(record) for record in reversed(records) if record.kind in ENDS), None)

    async def _failures(self, failed: list[StepRow], definition: Definition) -> list[FailedStep]:
        """The steps that failed; only the first is named."""
        if not failed:
            return []
        # Only the items of loops need the whole run, for the title of a step in its round.
        first = failed[0]
        run = await self.runs.current(first.run) if "[" in first.path else Run(id=first.run)
        title = title_at(run, definition, first.path)
        return [
            FailedStep(title=title, message=one.message, category=one.category, tool=_tool(definition, one.path))
            for one in failed
        ]


def _done(steps: list[StepRow], definition: Definition) -> int:
    over = [one for one in steps if one.status in STEP_SATISFIED and UNDO not in one.path]
    return sum(not _holds_others(definition, one.path) for one in over)


def _left_out(steps: list[StepRow], definition: Definition) -> str:
    skipped = [one for one in steps if one.status == StepStatus.SKIPPED and is_somebody(one.actor)]
    return skipped_line([(title_at(Run(id=one.run), definition, one.path), one.actor) for one in skipped])


def _holds_others(definition: Definition, path: str) -> bool:
    step = locate(definition, path).step
    return bool(step.body) or isinstance(step.work, Call)


def _in(run: Run, definition: Definition, statuses: Collection[StepStatus]) -> list[str]:
    """The steps in one of these states that do something themselves."""
    found = [path for path, state in run.steps.items() if state.status in statuses]
    return [path for path in found if not _holds_others(definition, path)]


def _tool(definition: Definition, path: str) -> str:
    work = locate(definition, path).step.work
    return work.tool if isinstance(work, Tool) else ""


def _failed_step(run: Run, definition: Definition, path: str) -> FailedStep:
    state = run.step(path)
    category = state.category.value if state.category is not None else ""
    lost = "whether it happened is unknown" if state.status is StepStatus.UNCERTAIN else ""
    return FailedStep(
        title=title_at(run, definition, path),
        message=lost or state.message,
        category="" if lost else category,
        tool=_tool(definition, path),
    )


def _now_line(opened: OpenRun) -> str:
    """Why an open run is where it is, or what it does."""
    run, definition, seen = opened.run, opened.definition, opened.seen
    if run.status in RUN_WITH_REASON:
        return _stopped(run, seen)
    failed = _in(run, definition, STEP_IN_TROUBLE)
    if failed:
        return failure_line([_failed_step(run, definition, path) for path in failed])
    if seen.waiting_for:
        return _waits_for(seen.waiting_for[0], title_at(run, definition, seen.waiting_for[0].step))
    doing = _in(run, definition, STEP_EXECUTING)
    return f"now: {named(title_at(run, definition, path) for path in doing)}" if doing else ""


def _stopped(run: Run, seen: Status) -> str:
    if run.status is RunStatus.PAUSED:
        return f"paused by {actor_name(run.paused_by)}: {run.reason}" if run.paused_by else f"paused: {run.reason}"
    undone = seen.progress.undone
    return f"{undone.done} of {undone.of} undone" if undone is not None else ""


def _waits_for(waits: WaitingFor, title: str) -> str:
    if waits.kind is WaitingKind.AGENT:
        return f"{title}: with {named(waits.by)}" if waits.by else f"{title}: no agent has taken it"
    return waits.text or title


def _waiting(opened: OpenRun) -> Iterator[WaitingLine]:
    """What waits in an open run; steps that failed alike are one line."""
    run, definition = opened.run, opened.definition
    grouped: dict[tuple[str, ...], list[tuple[WaitingFor, str]]] = {}
    for waits in opened.seen.waiting_for:
        if waits.kind is not WaitingKind.DECISION:
            yield _asked(run, definition, waits)
            continue
        failed = _failed_step(run, definition, waits.step)
        alike = likeness(run.step(waits.step).status.value, waits.step, failed)
        grouped.setdefault(alike, []).append((waits, cause_of(failed)))
    can_undo = len(undo_order(run, definition)) if grouped else 0
    for group in grouped.values():
        first, why = group[0]
        yield WaitingLine(
            step=first.step,
            kind=first.kind,
            title=title_at(run, definition, first.step),
            why=why,
            since=first.since,
            can_undo=can_undo,
            status=run.step(first.step).status,
            alike=len(group),
            causes=len({cause for _, cause in group}),
        )


def _asked(run: Run, definition: Definition, waits: WaitingFor) -> WaitingLine:
    state = run.step(waits.step)
    is_agent = waits.kind is WaitingKind.AGENT
    return WaitingLine(
        step=waits.step,
        kind=waits.kind,
        title=title_at(run, definition, waits.step),
        text=waits.text,
        since=waits.since,
        expires=instant_text(state.due) if is_agent and state.due else waits.expires,
        by=waits.by,
        irreversible=sum(one.effect is Effect.IRREVERSIBLE for one in waits.effects),
        refused=state.tries if is_agent else 0,
    )
