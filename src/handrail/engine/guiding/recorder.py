"""The recorder: takes an agent's reports on a run that it performs itself, asks people, and ends the run.

Async. Nothing executes such a run, so what a conductor would do between two reports is done here: an approval that is
due is requested, a step whose condition is false is skipped, and a run whose steps are all over is finished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from handrail.domain.definition.model import Approve, Definition
from handrail.domain.errors import Conflict, Invalid
from handrail.domain.journal.event import ActionKind, Mode
from handrail.domain.policy.actor import SYSTEM
from handrail.domain.policy.skipping import has_approval
from handrail.domain.run.command import CancelRun, Command, ExpireApproval, FinishRun, RecordAction
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_OPEN, STEP_SATISFIED, RunStatus
from handrail.domain.run.step_path import locate, top_lane
from handrail.domain.scheduling.loop_rounds import outputs_of
from handrail.domain.scheduling.step_start import Grant, InputCheck, start_of
from handrail.engine.dispatch import Dispatch
from handrail.engine.passed_in import Clock
from handrail.engine.reading.prospect import prospect_of

ROUNDS_MAX: Final = 100
"""How many times in a row steps may be asked about or skipped after one report."""


@dataclass(frozen=True)
class Recorder:
    """Records what agents report."""

    dispatch: Dispatch
    clock: Clock
    check: InputCheck

    async def record(self, run: Run, command: RecordAction, *, actor: str) -> Run:
        """Record an action; in a recorded run its outcome moves the step, and the report `stopped` ends the run."""
        commands: list[Command] = [command]
        is_own = run.mode is Mode.RECORD and run.status in RUN_OPEN
        if is_own and command.step is None and command.action is ActionKind.STOPPED:
            commands.append(CancelRun(reason=command.description))
        return await self.settle(await self.dispatch.grant(run.id, *commands, actor=actor))

    async def settle(self, run: Run) -> Run:
        """The run after everything that needs no report: approvals are requested, a run that is done is finished."""
        if run.mode is not Mode.RECORD:
            return run
        definition = await self.dispatch.definition(run.definition)
        for _ in range(ROUNDS_MAX):
            commands = self._due(run, definition)
            if run.status is not RunStatus.RUNNING or not commands:
                return run
            try:
                run = await self.dispatch.grant(run.id, *commands, actor=SYSTEM)
            except Conflict:  # another call has done it in the meantime
                run = await self.dispatch.current(run.id)
        return run

    def _due(self, run: Run, definition: Definition) -> list[Command]:
        if all(run.step(step.id).status in STEP_SATISFIED for step in definition.steps):
            return [_end(run, definition)]
        if not any(has_approval(definition, step) for step in definition.steps):
            return []  # the usual case; a long run is not read for every report
        now = self.clock()
        agenda = prospect_of(run, definition, now=now).agenda
        if agenda.tracked.expired:
            return [
                ExpireApproval(step=path) for path in agenda.tracked.expired
            ]  # they are asked again in the next round
        asking = [path for path in agenda.ready if isinstance(locate(definition, path).step.work, Approve)]
        starts = [start_of(run, definition, path, now=now, check=self.check) for path in sorted(asking)]
        return [command for one in starts if isinstance(one, Grant) for command in one.commands]


def _end(run: Run, definition: Definition) -> FinishRun:
    try:
        return FinishRun(outputs=outputs_of(definition, run, top_lane(definition)))
    except Invalid as error:
        return FinishRun(flaw=f"the outputs can't be computed: {error}")
