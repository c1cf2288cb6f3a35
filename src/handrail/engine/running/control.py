"""Control of a run by a person or an agent: each action has a reason and becomes an event.

Async. Turns actions into commands; the domain decides whether one is legal, and a refusal says what is. Who may answer
an approval is decided here, by configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import json

from handrail.domain.definition.model import Definition
from handrail.domain.errors import Conflict, Forbidden, Invalid
from handrail.domain.journal.event import Fork, How, Mode, StepCarried
from handrail.domain.json import digest
from handrail.domain.run.command import (
    AcceptStep,
    CancelRun,
    Command,
    CompensateStep,
    FinishCompensation,
    GiveApproval,
    PauseRun,
    RejectApproval,
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
from handrail.engine.running.attempt import SchemaCheck
from handrail.engine.running.worker import Worker

REASON_LENGTH_MAX: Final = 2_000
AGENT: Final = "agent:"


@dataclass(frozen=True)
class ApprovalPolicy:
    """Who may answer an approval."""

    agents_may_approve: bool = False
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The members of the groups that steps name; without any groups, every person may answer."""

    def require_answer(self, actor: str, by: Sequence[str]) -> None:
        """Refuse an answer by an actor who may not give it."""
        if actor.startswith(AGENT) and not self.agents_may_approve:
            raise Forbidden(
                "an agent can't answer an approval: a person must",
                hint="ask a person to run `handrail approve`, or set agents_may_approve in config.toml",
            )
        name = actor.partition(":")[2]
        if by and self.groups and not any(name == who or name in self.groups.get(who, ()) for who in by):
            raise Forbidden(
                f"{actor} may not answer: this is for {', '.join(by)}",
                hint="ask one of them, or change [groups] in config.toml",
            )


@dataclass(frozen=True)
class Control:
    """Performs actions on runs."""

    dispatch: Dispatch
    clock: Clock
    say: ApprovalPolicy = field(default_factory=ApprovalPolicy)
    worker: Worker | None = None
    fits: SchemaCheck | None = None
    """Validates an answer against the form that was asked for."""

    async def act(
        self, run_id: str, action: Action, *, actor: str, reason: str, step: str = "", output: Any = None
    ) -> Run:
        """Perform an action on a run: the run after it; for a fork, the new run."""
        reason = reason.strip()
        if not reason or len(reason) > REASON_LENGTH_MAX:
            raise Invalid("a short reason is missing", hint="say why: the reason is recorded")
        run = await self.dispatch.current(run_id)
        if action is Action.FORK:
            return await self.fork(run, step, actor=actor, reason=reason)
        step = step or self._only_step(run, action)
        commands = self._commands(run, action, step, reason, output, actor)
        try:
            after = await self.dispatch.grant(run_id, *commands, actor=actor)
        except Conflict as error:
            current = await self.dispatch.current(run_id)
            raise type(error)(str(error), hint=legal_words(current)) from error
        return await self._close_compensation(after, actor)

    async def record_compensation(
        self, run_id: str, step: str, *, how: How, description: str, actor: str, details: Mapping[str, Any]
    ) -> Run:
        """Record that a step was undone by hand, or needs no undo."""
        command = CompensateStep(step=step, how=how, description=description, details=details)
        after = await self.dispatch.grant(run_id, command, actor=actor)
        return await self._close_compensation(after, actor)

    async def fork(self, run: Run, step: str, *, actor: str, reason: str) -> Run:
        """A new run that takes over what was done before a step; effects that are not undone are in its first event."""
        definition = await self.dispatch.definition(run.definition)
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
        if steps == [""] or action in _ON_RUN:
            return ""
        if len(steps) == 1:
            return steps[0]
        if not steps:
            raise Conflict(f"there is no step of {run.id} to {action.value}", hint=legal_words(run))
        raise Invalid(f"which step to {action.value}? {', '.join(steps)}", hint="name the step")

    def _commands(self, run: Run, action: Action, step: str, reason: str, output: Any, actor: str) -> Sequence[Command]:
        match action:
            case Action.PAUSE:
                return [PauseRun(reason=reason)]
            case Action.RESUME:
                return [ResumeRun(reason=reason)]
            case Action.CANCEL:
                return [CancelRun(reason=reason)]
            case Action.COMPENSATE:
                return [StartCompensation(reason=reason)]
            case Action.APPROVE | Action.REJECT:
                return [self._answer(run, action, step, reason, output, actor)]
            case Action.SKIP:
                return [SkipStep(step=step, reason=reason)]
            case Action.ACCEPT:
                return [AcceptStep(step=step, reason=reason, output=output)]
            case _:
                is_undo = run.step(step).status is StepStatus.COMPENSATION_FAILED
                return [StartCompensation(reason=reason) if is_undo else RetryStep(step=step, reason=reason)]

    def _answer(self, run: Run, action: Action, step: str, reason: str, content: Any, actor: str) -> Command:
        state = run.step(step)
        asked = state.values if isinstance(state.values, Mapping) else {}
        self.say.require_answer(actor, asked.get("by", ()))
        if action is Action.REJECT:
            return RejectApproval(step=step, digest=state.digest, reason=reason, at=self.clock())
        self._require_form(step, asked.get("schema"), content)
        return GiveApproval(step=step, digest=state.digest, reason=reason, at=self.clock(), content=content)

    def _require_form(self, step: str, schema: Any, content: Any) -> None:
        """Refuse an approval without the answer that was asked for."""
        if schema is None:
            return
        wrong = self.fits(schema, content) if self.fits is not None else []
        if content is None or wrong:
            flaw = "; ".join(wrong) if content is not None else "the answer is missing"
            form = json.encode(schema).decode()
            raise Invalid(
                f"step {step!r} needs an answer in a given form: {flaw}",
                hint=f"give the answer (`output`, or --answer) in this form: {form}",
            )

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
    kept = {step.id for step in definition.steps if run.step(step.id).status in STEP_SATISFIED} - again
    while dropped := {step for step in kept if not set(needs[step]) <= kept}:
        kept -= dropped
    return kept


def _carried(run: Run, definition: Definition, kept: set[str]) -> list[StepCarried]:
    carried = []
    for step in definition.steps:
        state = run.step(step.id)
        if step.id not in kept:
            continue
        output = outputs_of_rounds(run, step, step.id) if step.body else state.output
        is_skipped = state.status is StepStatus.SKIPPED
        carried.append(StepCarried(step=step.id, output=output, is_skipped=is_skipped))
    return carried


def _lasting(run: Run, definition: Definition, paths: Sequence[str]) -> list[str]:
    """The steps that had a lasting effect and were not undone."""
    return [
        path
        for path in paths
        if run.step(path).status in STEP_UNDOABLE and lasting_effect(locate(definition, path), run.step(path))
    ]
