"""The guide: gives an agent one step of a run at a time, accepts its submissions, and waits for handrail's own steps.

Async. It reads the run, has the gate check outputs, and dispatches commands. The decisions are pure:
domain/run/submission.py says what a submission means, domain/run/guidance.py what an agent is shown of a step.
guide_view.py has the shape of the answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.judgement import Judgement
from handrail.domain.definition.model import Definition, Prompt, Tool
from handrail.domain.errors import Conflict
from handrail.domain.journal.event import Outcome, StepCompleted
from handrail.domain.run.baseline import Baseline
from handrail.domain.run.command import RecordProject
from handrail.domain.run.guard import assignee
from handrail.domain.run.guidance import is_undo, offered, work_of
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.domain.run.step_path import UNDO, locate
from handrail.domain.run.submission import (
    ACCEPTED,
    Submission,
    Verdict,
    commands_for,
    handed_out,
    meant,
    proposed,
    repetition,
    require_turn,
    step_meant,
    verdict_on,
)
from handrail.engine.checking.gate import QualityGate
from handrail.engine.dispatch import Dispatch
from handrail.engine.reading.agenda_cache import AgendaCache
from handrail.engine.reading.progress import progress_of
from handrail.engine.reading.prospect import Prospect
from handrail.engine.running.change_notifier import ChangeNotifier
from handrail.engine.running.worker_settings import WorkerSettings
from handrail.engine.tool import Progress as ToolProgress
from handrail.engine.tool import silent

HAND_OUTS_MAX: Final = 20
"""How often another agent may take a step between reading and taking it."""

Progress: TypeAlias = Callable[[int, int | None], Awaitable[None]]
"""Called with the number of steps done, and of all steps, if that is known."""


class RunForAgent(Struct, frozen=True, kw_only=True):
    """A run as one agent sees it: which step it is to do next, if any."""

    run: Run
    definition: Definition
    prospect: Prospect
    step: str = ""


@dataclass(frozen=True)
class Guide:
    """Guides agents through runs."""

    dispatch: Dispatch
    agenda_cache: AgendaCache
    bell: ChangeNotifier
    settings: WorkerSettings
    gate: QualityGate
    judging: set[asyncio.Future[Judgement]] = field(default_factory=set)

    async def look(
        self, run_id: str, *, agent: str = "", within_s: float = 0, report: Progress | None = None
    ) -> RunForAgent:
        """What an agent is to do next; waits up to `within_s` seconds for handrail's own steps."""
        until_s = asyncio.get_running_loop().time() + within_s
        reported = -1
        with self.bell.listening(run_id) as ear:
            while True:
                seen = await self._recorded(await self._seen(run_id, agent), agent)
                left_s = until_s - asyncio.get_running_loop().time()
                if seen.step or seen.prospect.is_settled or left_s <= 0:
                    return seen
                if report is not None and seen.run.done > reported:
                    reported = seen.run.done
                    known = progress_of(seen.run, seen.definition)
                    await report(reported, None if known.in_rounds else known.total)
                await ear.next_change(within_s=left_s)

    async def take(self, seen: RunForAgent, agent: str, *, actor: str) -> RunForAgent:
        """The same step, recorded as given out now, and assigned to the agent if it has named itself.

        It is another step if another agent was faster. A step that was given out before is not recorded again."""
        for _ in range(HAND_OUTS_MAX):
            if not seen.step or is_undo(seen.run, seen.step):
                return seen
            state = seen.run.step(seen.step)
            # Asking twice for the same step is not news: an event each time would fill the journal with polling.
            if state.status is StepStatus.WAITING and assignee(state, at=self.settings.clock()) == agent:
                return seen
            command = handed_out(seen.step, agent, now=self.settings.clock())
            with contextlib.suppress(Conflict):  # it was taken, or ended, in the meantime: read again
                await self.dispatch.grant(seen.run.id, command, actor=actor)
            seen = await self._seen(seen.run.id, agent)
        return seen

    async def submit(self, run_id: str, given: Submission, *, actor: str, progress: ToolProgress = silent) -> Verdict:
        """Process a submission; output that fails a check is refused, and the findings say why.

        `progress` gets messages about what slow checks are doing."""
        now = self.settings.clock()
        run, definition, prospect = await self.agenda_cache.look(run_id, now=now)
        self.dispatch.require_own(run)
        given = meant(run, given)
        kept = partial(self._kept, run_id, given.step)
        # Before everything else: an agent that did not get the answer repeats its call, and must get the same one.
        if (verdict := repetition(run, definition, given, kept)) is not None:
            return verdict
        require_turn(run, definition, given, for_agent=prospect.for_agent, now=now, check=self.settings.check)
        await self.dispatch.require_allowed(run, proposed(given), actor=actor)  # before any check runs
        verdict = await self._verdict(run, definition, given, progress)
        if verdict.unconfirmed:
            return verdict
        commands = commands_for(run, definition, given, verdict, now=self.settings.clock())
        try:
            await self.dispatch.grant(run_id, *commands, actor=actor)
        except Conflict:
            after = await self.dispatch.current(run_id)
            if (known := repetition(after, definition, given, kept)) is not None:
                return known  # the same submission arrived twice at the same time
            raise
        return verdict

    async def open_step(self, run_id: str, output: Any, *, agent: str = "") -> str:
        """The step that an output without a step is for; Conflict if that can't be known for sure."""
        now = self.settings.clock()
        run, definition, prospect = await self.agenda_cache.look(run_id, now=now)
        self.dispatch.require_own(run)
        waiting = offered(run, prospect.for_agent, agent=agent, now=now)
        return step_meant(run, definition, waiting, self._kept(run_id, "", output))

    async def judged(
        self, run: Run, definition: Definition, step: str, output: Any, *, progress: ToolProgress = silent
    ) -> Judgement:
        """What the checks find in an output, without submitting it."""
        if run.n:  # else it only stands for a workflow that was not started
            self.dispatch.require_own(run)
        step = step.removesuffix(UNDO)
        found = locate(definition, step)
        work = work_of(run, found, step) if is_undo(run, step) else found.step.work
        if not isinstance(work, Prompt | Tool):
            return Judgement()
        judging = asyncio.ensure_future(self.gate.judge(work, output, run, found.lane, step=step, progress=progress))
        self.judging.add(judging)
        judging.add_done_callback(self.judging.discard)
        # It continues when the caller is gone: the results are cached for the next submission.
        return await asyncio.shield(judging)

    async def _seen(self, run_id: str, agent: str) -> RunForAgent:
        now = self.settings.clock()
        run, definition, prospect = await self.agenda_cache.look(run_id, now=now)
        self.dispatch.require_own(run)
        mine = offered(run, prospect.for_agent, agent=agent, now=now)
        return RunForAgent(run=run, definition=definition, prospect=prospect, step=mine[0] if mine else "")

    async def _recorded(self, seen: RunForAgent, agent: str) -> RunForAgent:
        """The same, once the state of the project is recorded at the time that its step is first given out.

        It is recorded before the agent can read the step, and can change anything for it."""
        run = seen.run
        baseline = await self._observed(run) if _is_unrecorded(seen) else None
        if baseline is None:
            return seen
        with contextlib.suppress(Conflict):  # it was taken, or ended, in the meantime: read again
            command = RecordProject(step=seen.step, baseline=baseline)
            await self.dispatch.grant(run.id, command, actor=self.settings.actor)
        return await self._seen(run.id, agent)

    async def _observed(self, run: Run) -> Baseline | None:
        """The state of the project; if the run was started for the same call, it was just looked at."""
        if self.dispatch.is_just_started(run):
            baseline = run.baselines.get("")
        else:
            baseline = await self.dispatch.observe() if self.dispatch.observe is not None else None
        # Without a repository, a step is compared with the start of the run: that is older, so nothing is missed.
        return None if baseline is not None and baseline.missing else baseline

    async def _verdict(self, run: Run, definition: Definition, given: Submission, progress: ToolProgress) -> Verdict:
        if given.outcome is not Outcome.DONE:
            return ACCEPTED  # there is no output to check
        run = replace(run, vars={**run.vars, **given.vars})  # checks may use the vars that come with the output
        judgement = await self.judged(run, definition, given.step, given.output, progress=progress)
        return verdict_on(run, definition, given, judgement)

    def _kept(self, run_id: str, step: str, output: Any) -> Any:
        """An output as the journal would store it, without secrets."""
        return self.dispatch.kept(run_id, StepCompleted(step=step, output=output)).output


def _is_unrecorded(seen: RunForAgent) -> bool:
    """Whether its step is checked and is given out for the first time, in a run whose start was recorded."""
    run, step = seen.run, seen.step
    if not step or "" not in run.baselines or step in run.baselines or is_undo(run, step):
        return False
    work = locate(seen.definition, step).step.work
    return isinstance(work, Prompt) and bool(work.checks)
