"""Control of a run by a person or an agent: each action has a reason and becomes an event.

Async. Turns actions into commands; the domain decides whether one is legal, and a refusal says what is. Answers to
approvals are checked in answers.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from handrail.domain.control.control_commands import closing_command, command_of, only_step
from handrail.domain.control.forking import fork_request
from handrail.domain.errors import Conflict, Invalid, RunArchived
from handrail.domain.journal.event import How
from handrail.domain.json import digest
from handrail.domain.policy.act import Act, act_of
from handrail.domain.policy.asking import asked_past
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import require_allowed
from handrail.domain.run.command import Command, CompensateStep, ResumeRun, SkipStep
from handrail.domain.run.legal_controls import Action, legal_words
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus
from handrail.domain.run.step_path import locate
from handrail.engine.dispatch import Dispatch
from handrail.engine.guiding.recorder import Recorder
from handrail.engine.passed_in import Clock
from handrail.engine.running.answers import ANSWERS, NO_MORE, AnswerGiven, ApprovalAnswers
from handrail.engine.running.worker import Worker

REASON_LENGTH_MAX: Final = 2_000
DESCRIPTION_LENGTH_MAX: Final = 20_000
"""Of what was done to undo a step by hand."""


@dataclass(frozen=True)
class Control:
    """Performs actions on runs."""

    dispatch: Dispatch
    clock: Clock
    answers: ApprovalAnswers
    worker: Worker | None = None
    recorder: Recorder | None = None
    """Continues runs that are only recorded, after an answer."""

    async def act(
        self,
        run_id: str,
        action: Action,
        *,
        actor: str,
        reason: str,
        step: str = "",
        output: Any = None,
        given: AnswerGiven = NO_MORE,
    ) -> Run:
        """Perform an action on a run: the run after it; for a fork, the new run. `given` says how an answer came."""
        reason = reason.strip()
        if not reason or len(reason) > REASON_LENGTH_MAX:
            raise Invalid("a short reason is missing", hint="say why: the reason is recorded")
        run = await self.dispatch.own(run_id)
        if action is Action.FORK:
            return await self.fork(run, step, actor=actor, reason=reason)
        step = step or only_step(run, action)
        if step and step not in run.steps:
            locate(await self.dispatch.definition(run.definition), step)  # NotFound if there is no such step
        if action in ANSWERS:
            answer = self.answers.command(run, action, step, actor=actor, reason=reason, content=output, given=given)
            commands: Sequence[Command] = [await answer]
        elif action is Action.SKIP:
            commands = [await self._skip(run, step, actor=actor, reason=reason, given=given)]
        else:
            commands = [command_of(run, action, step, actor=actor, reason=reason, output=output)]
        try:
            after = await self.dispatch.grant(run_id, *commands, actor=actor)
        except RunArchived:
            raise
        except Conflict as error:
            current = await self.dispatch.current(run_id)
            # Read again for the hint: what is legal now is what the caller needs to know, not what was when they
            # looked.
            is_stale = action in ANSWERS and bool(current.step(step).digest)  # the error says how to answer what waits
            raise type(error)(str(error), hint=error.hint if is_stale else legal_words(current)) from error
        after = await self._close_compensation(after, actor)
        return await self.recorder.settle(after) if self.recorder is not None else after

    async def record_compensation(
        self, run_id: str, step: str, *, how: How, description: str, actor: str, details: Mapping[str, Any]
    ) -> Run:
        """Record that a step was undone by hand, or needs no undo."""
        if not description.strip() or len(description) > DESCRIPTION_LENGTH_MAX:
            hint = f"say what was done, or why it needs no undo, in at most {DESCRIPTION_LENGTH_MAX} characters"
            raise Invalid("a description is missing, or is too long", hint=hint)
        command = CompensateStep(step=step, how=how, description=description, details=details)
        after = await self.dispatch.grant(run_id, command, actor=actor)
        return await self._close_compensation(after, actor)

    async def fork(self, run: Run, step: str, *, actor: str, reason: str) -> Run:
        """A new run that takes over what was done before a step; effects that are not undone are in its first event."""
        definition = await self.dispatch.definition(self.dispatch.require_own(run).definition)
        if run.status is RunStatus.PAUSED:  # a fork goes on where the run stands still
            await self.dispatch.require_allowed(run, ResumeRun(reason=reason), actor=actor)
        # Under a key: an agent that repeats the call after a lost answer gets the same fork, not a second one.
        ask = fork_request(run, definition, step, key=fork_key(run, step, actor=actor, reason=reason))
        if self.worker is not None:
            return await self.worker.start(definition, run.inputs, actor=actor, ask=ask)
        return await self.dispatch.started_under_key(ask) or await self.dispatch.start(
            definition, run.inputs, actor=actor, ask=ask
        )

    async def _skip(self, run: Run, step: str, *, actor: str, reason: str, given: AnswerGiven) -> SkipStep:
        """The command to skip a step; to go past an approval takes what an answer to it would take."""
        command = SkipStep(step=step, reason=reason, channel=given.channel)
        definition = await self.dispatch.definition(run.definition)
        act = act_of(run, definition, command)
        require_allowed(may(actor, act, self.dispatch.policy))  # first: the passphrase of an agent is not looked at
        if act is not Act.OVERRIDE:
            return command
        return await self.answers.override(command, asked_past(run, definition, step), actor=actor, given=given)

    async def _close_compensation(self, run: Run, actor: str) -> Run:
        """Continue a failed compensation once no failed undo is left; or end one that the agent performs itself."""
        command = closing_command(run, await self.dispatch.definition(run.definition))
        if command is None:
            return run
        return await self.dispatch.grant(run.id, command, actor=actor)


def fork_key(run: Run, step: str, *, actor: str, reason: str) -> str:
    """The key of a fork: the same request by the same actor, repeated, makes one fork."""
    return digest(["fork", run.id, run.n, step, actor, reason])
