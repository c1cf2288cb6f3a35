"""Control of a run by a person or an agent: each action has a reason and becomes an event.

Async. Turns actions into commands; the domain decides whether one is legal, and a refusal says what is. Answers to
approvals are checked in answers.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from handrail.domain.definition.model import Definition
from handrail.domain.errors import Conflict, Invalid
from handrail.domain.journal.event import Fork, How, Mode, Proof, StepCarried
from handrail.domain.json import digest
from handrail.domain.policy.act import Act, act_of
from handrail.domain.policy.actor import ActorKind, kind_of
from handrail.domain.policy.skipping import has_approval
from handrail.domain.run.command import (
    AcceptStep,
    CancelRun,
    Command,
    CompensateStep,
    FinishCompensation,
    PauseRun,
    ResumeRun,
    RetryStep,
    SkipStep,
    StartCompensation,
    StartRun,
)
from handrail.domain.run.legal_controls import Action, legal_actions, legal_words
from handrail.domain.run.scope import outputs_of_rounds
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_SATISFIED, STEP_UNDOABLE, RunStatus, StepStatus
from handrail.domain.run.step_path import locate, top_lane
from handrail.domain.scheduling.compensation import lasting_effect, undo_order
from handrail.engine.clock import Clock
from handrail.engine.dispatch import Dispatch
from handrail.engine.guiding.recorder import Recorder
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
        step = step or self._only_step(run, action)
        if step and step not in run.steps:
            locate(await self.dispatch.definition(run.definition), step)  # NotFound if there is no such step
        if action in ANSWERS:
            answer = self.answers.command(run, action, step, actor=actor, reason=reason, content=output, given=given)
            commands: Sequence[Command] = [await answer]
        elif action is Action.SKIP:
            commands = [await self._skip(run, step, actor=actor, reason=reason, given=given)]
        else:
            commands = self._commands(run, action, step, reason, output, actor=actor)
        try:
            after = await self.dispatch.grant(run_id, *commands, actor=actor)
        except Conflict as error:
            current = await self.dispatch.current(run_id)
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
        kept = _kept(run, definition, _from_step_on(definition, step))
        effects = [path for path in run.steps if path.split(".")[0].split("[")[0] not in kept]
        ask = StartRun(
            goal=run.goal,
            mode=run.mode,
            priority=run.priority,
            fork=Fork(run=run.id, n=run.n, step=step, effects=tuple(_lasting(run, definition, effects))),
            carried=tuple(_carried(run, definition, kept)),
            vars=run.vars,
            pins=run.pins,
            key=fork_key(run, step, actor=actor, reason=reason),
        )
        if self.worker is not None:
            return await self.worker.start(definition, run.inputs, actor=actor, ask=ask)
        return await self.dispatch.started_under_key(ask) or await self.dispatch.start(
            definition, run.inputs, actor=actor, ask=ask
        )

    def _only_step(self, run: Run, action: Action) -> str:
        """The only step that an action can apply to; empty if the action is on the run."""
        steps = [legal.step for legal in legal_actions(run) if legal.action is action]
        if action is Action.SKIP and not steps:  # a person may also go past an approval
            steps = [legal.step for legal in legal_actions(run) if legal.action is Action.APPROVE]
        if steps == [""] or action in _ON_RUN:
            return ""
        if len(steps) == 1:
            return steps[0]
        if not steps:
            raise Conflict(f"there is no step of {run.id} to {action.value}", hint=legal_words(run))
        raise Invalid(f"which step to {action.value}? {', '.join(steps)}", hint="name the step")

    async def _skip(self, run: Run, step: str, *, actor: str, reason: str, given: AnswerGiven) -> SkipStep:
        """The command to skip a step; to go past an approval takes what an answer to it would take."""
        command = SkipStep(step=step, reason=reason, channel=given.channel)
        await self.dispatch.require_allowed(run, command, actor=actor)
        if act_of(run, await self.dispatch.definition(run.definition), command) is Act.OVERRIDE:
            await self.answers.require_override(actor, given)
        return command

    def _commands(
        self, run: Run, action: Action, step: str, reason: str, output: Any, *, actor: str
    ) -> Sequence[Command]:
        match action:
            case Action.PAUSE:
                return [PauseRun(reason=reason, again=_is_taken_over(run, actor))]
            case Action.RESUME:
                return [ResumeRun(reason=reason)]
            case Action.CANCEL:
                return [CancelRun(reason=reason)]
            case Action.COMPENSATE:
                return [StartCompensation(reason=reason)]
            case Action.ACCEPT:
                return [AcceptStep(step=step, reason=reason, output=output)]
            case _:
                is_undo = run.step(step).status is StepStatus.COMPENSATION_FAILED
                return [StartCompensation(reason=reason) if is_undo else RetryStep(step=step, reason=reason)]

    async def _close_compensation(self, run: Run, actor: str) -> Run:
        """Continue a failed compensation once no failed undo is left; or end one that the agent performs itself."""
        is_own_work = run.mode is Mode.RECORD and run.status is RunStatus.COMPENSATING
        if run.status is not RunStatus.COMPENSATION_FAILED and not is_own_work:
            return run
        rest = undo_order(run, await self.dispatch.definition(run.definition))
        if is_own_work and rest:
            return run  # the agent has more to undo
        if any(run.step(path).status is StepStatus.COMPENSATION_FAILED for path in rest):
            return run
        command = StartCompensation(reason="no failed undo is left") if rest else FinishCompensation()
        return await self.dispatch.grant(run.id, command, actor=actor)


def fork_key(run: Run, step: str, *, actor: str, reason: str) -> str:
    """The key of a fork: the same request by the same actor, repeated, makes one fork."""
    return digest(["fork", run.id, run.n, step, actor, reason])


_ON_RUN: Final = frozenset({Action.PAUSE, Action.RESUME, Action.CANCEL, Action.COMPENSATE})


def _from_step_on(definition: Definition, step: str) -> set[str]:
    """A step and all that could only start after it."""
    found = locate(definition, step)
    if found.parent:
        raise Invalid(f"{step!r} is inside {found.parent!r}", hint=f"fork from {found.parent!r}, as a whole")
    again, waiting = {step}, [step]
    while waiting:
        later = set(found.lane.course.followers[waiting.pop()]) - again
        again |= later
        waiting.extend(later)
    return again


def _kept(run: Run, definition: Definition, again: set[str]) -> set[str]:
    """The steps whose results a fork takes over: done, and so is everything that they depend on.

    A step whose dependency was undone must run again after it, and an approval must be asked again: what was approved
    is made again."""
    needs = top_lane(definition).course.needs
    done = [step for step in definition.steps if run.step(step.id).status in STEP_SATISFIED]
    # What was approved, skipped or overridden in one run says nothing about another.
    decided = {step.id for step in done if _has_exception(run, step.id) or has_approval(definition, step)}
    kept = {step.id for step in done} - again - decided
    while dropped := {step for step in kept if not set(needs[step]) <= kept}:
        kept -= dropped
    return kept


def _is_taken_over(run: Run, actor: str) -> bool:
    """Whether a person pauses what an agent has paused: then the agent can't resume it any more."""
    return kind_of(actor) is ActorKind.PERSON and kind_of(run.paused_by) is not ActorKind.PERSON


def _has_exception(run: Run, step: str) -> bool:
    """Whether a step, or one inside it, was left out by somebody."""
    inside = (f"{step}.", f"{step}[")
    return any(state.exception for path, state in run.steps.items() if path == step or path.startswith(inside))


def _carried(run: Run, definition: Definition, kept: set[str]) -> list[StepCarried]:
    carried = []
    for step in definition.steps:
        state = run.step(step.id)
        if step.id not in kept:
            continue
        output = outputs_of_rounds(run, step, step.id) if step.body else state.output
        is_skipped = state.status is StepStatus.SKIPPED
        proof = Proof(state.proof or Proof.VERIFIED)
        carried.append(
            StepCarried(step=step.id, output=output, is_skipped=is_skipped, proof=proof, checks=state.checks)
        )
    return carried


def _lasting(run: Run, definition: Definition, paths: Sequence[str]) -> list[str]:
    """The steps that had a lasting effect and were not undone."""
    return [
        path
        for path in paths
        if run.step(path).status in STEP_UNDOABLE and lasting_effect(locate(definition, path), run.step(path))
    ]
