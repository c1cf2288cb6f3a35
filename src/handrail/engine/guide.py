"""The guide: hands an agent one step of a run at a time, takes in what it did, and lets handrail do what is its own.

Async. What an agent is told of a step is domain/guidance.py's; the answer's shape is guide_view.py's. Whatever changes
goes through dispatch: a hand-in that comes twice is taken in once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.beginning import ForAgent, begin
from handrail.domain.check import BLOCKING, Finding, Severity
from handrail.domain.command import (
    Command,
    CompensateStep,
    CompleteStep,
    FailStep,
    FailUndo,
    HandOutStep,
    RecordAction,
    RecordDecision,
    RefuseOutput,
    RetryStep,
    SetVars,
    SkipStep,
)
from handrail.domain.definition import Category, Definition, Prompt, Tool
from handrail.domain.errors import Conflict, Invalid
from handrail.domain.event import How, Mode, Outcome, Proof, StepCompleted
from handrail.domain.guard import claimant, require_open, require_ready
from handrail.domain.guidance import is_undo, needs_confirmation, offered, work_of
from handrail.domain.judgement import Judgement
from handrail.domain.path import UNDO, locate
from handrail.domain.rule import Evidence
from handrail.domain.run import Run
from handrail.domain.status import RunStatus, StepStatus
from handrail.engine.bell import Bell
from handrail.engine.clock import instant_text
from handrail.engine.dispatch import Dispatch
from handrail.engine.gate import Gate, evidence_data, finding_data
from handrail.engine.horizon import Horizon
from handrail.engine.outlook import Outlook
from handrail.engine.tool import Progress as Saying
from handrail.engine.tool import silent
from handrail.engine.worker import Terms

CLAIM_MS: Final = 15 * 60_000
"""How long a step stays with the agent who has named itself."""
HAND_OUTS_MAX: Final = 20
"""How often a step may be snatched away between the look and the claim."""

HANDED_IN_FROM: Final = frozenset({StepStatus.PENDING, StepStatus.READY, StepStatus.WAITING, StepStatus.FAILED})

Progress: TypeAlias = Callable[[int, int], Awaitable[None]]
"""Told how many steps are done, of how many."""


class HandIn(Struct, frozen=True, kw_only=True):
    """What an agent says of a step."""

    step: str
    output: Any = None
    outcome: Outcome = Outcome.DONE
    vars: Mapping[str, Any] = {}
    note: str = ""
    confirmed: str = ""
    """By whose word a person has agreed; empty if nobody has."""
    agent: str = ""
    is_undo: bool = False
    """Whether it is about undoing the step."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What became of a hand-in."""

    accepted: bool
    findings: tuple[Finding, ...] = ()
    repeated: bool = False
    """Whether the same had been handed in before."""
    unconfirmed: bool = False
    """Whether nothing is missing but a person's word."""
    passed: tuple[str, ...] = ()
    """The rules that handrail ran, and that have nothing against it."""
    evidence: tuple[Evidence, ...] = ()


class Seen(Struct, frozen=True, kw_only=True):
    """A run as it stands for one agent: what it is to do next, if anything."""

    run: Run
    definition: Definition
    outlook: Outlook
    step: str = ""


@dataclass(frozen=True)
class Guide:
    """Guides agents through runs."""

    dispatch: Dispatch
    horizon: Horizon
    bell: Bell
    terms: Terms
    gate: Gate
    judging: set[asyncio.Future[Judgement]] = field(default_factory=set)

    async def look(self, run_id: str, *, agent: str = "", within_s: float = 0, tell: Progress | None = None) -> Seen:
        """What an agent is to do next; waits so long for handrail's own steps before it."""
        until_s = asyncio.get_running_loop().time() + within_s
        told = -1
        with self.bell.listening(run_id) as ear:
            while True:
                seen = await self._seen(run_id, agent)
                left_s = until_s - asyncio.get_running_loop().time()
                if seen.step or seen.outlook.is_settled or left_s <= 0:
                    return seen
                if tell is not None and seen.run.done > told:
                    told = seen.run.done
                    await tell(told, len(seen.definition.steps))
                await ear.next_change(within_s=left_s)

    async def claim(self, seen: Seen, agent: str, *, actor: str) -> Seen:
        """The same step, claimed by the agent who has named itself; another one if somebody was quicker."""
        for _ in range(HAND_OUTS_MAX):
            if not seen.step or is_undo(seen.run, seen.step):
                return seen
            if claimant(seen.run.step(seen.step), at=self.terms.clock()) == agent:
                return seen
            command = self._handed_out(seen.step, agent)
            with contextlib.suppress(Conflict):  # it was taken, or ended, meanwhile: look again
                await self.dispatch.grant(seen.run.id, command, actor=actor)
            seen = await self._seen(seen.run.id, agent)
        return seen

    async def hand_in(self, run_id: str, given: HandIn, *, actor: str, say: Saying = silent) -> Verdict:
        """Take in what an agent did; what does not hold is not accepted, and the findings say why.

        `say` is told, in words, what checks that take a while are at."""
        run, definition, outlook = await self.horizon.look(run_id, now=self.terms.clock())
        given = self._meant(run, given)
        if (verdict := self._repeated(run, definition, given)) is not None:
            return verdict
        self._require_turn(run, definition, given)
        _require_round(run, outlook, given.step)
        verdict = await self._judged(run, definition, given, say)
        if verdict.unconfirmed:
            return verdict
        commands = self._commands(run, definition, given, verdict)
        try:
            await self.dispatch.grant(run_id, *commands, actor=actor)
        except Conflict:
            after = await self.dispatch.current(run_id)
            if (known := self._repeated(after, definition, given)) is not None:
                return known  # it came twice at the same time
            raise
        return verdict

    def _meant(self, run: Run, given: HandIn) -> HandIn:
        """The hand-in for the step itself; Conflict if it is for an undo that nobody asked for."""
        if not given.step.endswith(UNDO):
            return given
        step = given.step.removesuffix(UNDO)
        if not is_undo(run, step) and run.step(step).status is not StepStatus.COMPENSATED:
            raise Conflict(f"step {step!r} is not being undone", hint="ask for the current step")
        return replace(given, step=step, is_undo=True)

    async def judged(
        self, run: Run, definition: Definition, step: str, output: Any, *, say: Saying = silent
    ) -> Judgement:
        """What would be said of an output, if it were handed in."""
        step = step.removesuffix(UNDO)
        found = locate(definition, step)
        work = work_of(run, found, step) if is_undo(run, step) else found.step.work
        if not isinstance(work, Prompt | Tool):
            return Judgement()
        judging = asyncio.ensure_future(self.gate.judge(work, output, run, found.lane, progress=say))
        self.judging.add(judging)
        judging.add_done_callback(self.judging.discard)
        # It goes on when nobody waits any more: what it finds is remembered for the next hand-in.
        return await asyncio.shield(judging)

    async def _seen(self, run_id: str, agent: str) -> Seen:
        now = self.terms.clock()
        run, definition, outlook = await self.horizon.look(run_id, now=now)
        mine = offered(run, outlook.for_agent, agent=agent, now=now)
        return Seen(run=run, definition=definition, outlook=outlook, step=mine[0] if mine else "")

    def _repeated(self, run: Run, definition: Definition, given: HandIn) -> Verdict | None:
        """The verdict on what had been handed in before; None if it is news. Conflict if it was something else."""
        locate(definition, given.step)
        state, outcome = run.step(given.step), given.outcome
        if is_undo(run, given.step):
            # The same as was handed in for the step itself, under the step's own name: that answer was lost.
            if given.is_undo:
                return None
            if outcome is Outcome.DONE and self._is_kept(run, given):
                return Verdict(accepted=True, repeated=True)
            name = given.step + UNDO
            raise Conflict(f"step {given.step!r} is being undone", hint=f"undo it, and hand that in as {name!r}")
        is_undone = state.status is StepStatus.COMPENSATED and state.compensation == How.BY_AGENT
        if is_undone and outcome is Outcome.DONE and (given.is_undo or self._is_kept(run, given)):
            return Verdict(accepted=True, repeated=True)
        if state.status is StepStatus.COMPLETED and run.status is not RunStatus.COMPENSATING:
            if outcome is Outcome.DONE and self._is_kept(run, given):
                return Verdict(accepted=True, repeated=True)
            raise Conflict(
                f"step {given.step!r} is completed already, with another output", hint="go on with the current step"
            )
        ends = {Outcome.SKIPPED: StepStatus.SKIPPED, Outcome.FAILED: StepStatus.FAILED}
        is_same_end = state.status is ends.get(outcome)
        return Verdict(accepted=True, repeated=True) if is_same_end else None

    def _is_kept(self, run: Run, given: HandIn) -> bool:
        """Whether the output is the one that was handed in, as far as it is kept."""
        said = self.dispatch.kept(run.id, StepCompleted(step=given.step, output=given.output))
        return bool(run.step(given.step).output == said.output)

    def _handed_out(self, step: str, agent: str) -> HandOutStep:
        """The step in the hands of an agent: for a while if it has named itself, else for whoever comes."""
        now = self.terms.clock()
        return HandOutStep(step=step, agent=agent, until=now + CLAIM_MS if agent else None, at=now)

    def _require_turn(self, run: Run, definition: Definition, given: HandIn) -> None:
        """Refuse a hand-in whose turn has not come, or that is another's."""
        found = locate(definition, given.step)
        if run.mode is Mode.RECORD:
            raise Conflict(f"run {run.id} is only recorded", hint="report the step with record_action")
        work_of(run, found, given.step)
        if is_undo(run, given.step):
            return
        require_open(run, given.step)
        if run.step(given.step).status not in HANDED_IN_FROM:
            raise Conflict(
                f"step {given.step!r} is {run.step(given.step).status.value}: nothing can be handed in for it",
                hint="ask for the current step",
            )
        if run.step(given.step).status is StepStatus.FAILED:
            return  # it had failed, and is handed in after all
        if run.status is not RunStatus.PAUSED or run.step(given.step).status is not StepStatus.WAITING:
            require_ready(run, given.step, definition)  # what is under way may end, also while the run is paused
        begins = begin(run, definition, given.step, now=self.terms.clock(), check=self.terms.check)
        if not isinstance(begins, ForAgent):
            raise Conflict(f"step {given.step!r} is not done: its condition does not hold", hint="it is skipped")
        state = run.step(given.step)
        holder = claimant(state, at=self.terms.clock())
        if holder and holder != given.agent:
            until = f" until {instant_text(state.due)}" if state.due else ""
            raise Conflict(
                f"step {given.step!r} is claimed by {holder!r}{until}",
                hint=f"name yourself as agent {holder!r} if that is you, or ask for another step",
            )

    async def _judged(self, run: Run, definition: Definition, given: HandIn, say: Saying) -> Verdict:
        if given.outcome is not Outcome.DONE:
            return Verdict(accepted=True)
        run = replace(run, vars={**run.vars, **given.vars})  # what comes with the output may be spoken of
        judgement = await self.judged(run, definition, given.step, given.output, say=say)
        findings, evidence = judgement.findings, judgement.evidence
        if not judgement.is_good:
            blocking = tuple(one for one in findings if one.severity in BLOCKING[judgement.bar])
            return Verdict(accepted=False, findings=blocking, evidence=evidence)
        found = locate(definition, given.step)
        if needs_confirmation(run, found, work_of(run, found, given.step), given.output) and not given.confirmed:
            return Verdict(accepted=False, findings=(_UNCONFIRMED,), unconfirmed=True)
        return Verdict(accepted=True, findings=findings, passed=judgement.passed, evidence=evidence)

    def _commands(self, run: Run, definition: Definition, given: HandIn, verdict: Verdict) -> list[Command]:
        step = given.step
        if is_undo(run, step):
            return _undone(given, verdict)
        commands: list[Command] = []
        has_failed = run.step(step).status is StepStatus.FAILED
        if has_failed and given.outcome is Outcome.DONE:
            commands.append(RetryStep(step=step, reason=given.note or "it is handed in after all"))
        if run.step(step).status is not StepStatus.WAITING and not (has_failed and given.outcome is Outcome.SKIPPED):
            commands.append(self._handed_out(step, given.agent))
        if not verdict.accepted:
            return [*commands, self._refusal(run, definition, step, verdict)]
        if given.vars:
            commands.append(SetVars(vars=given.vars))
        if given.confirmed:
            commands.append(RecordDecision(decision="confirmed", reason=given.confirmed, step=step))
        if given.note and given.outcome is Outcome.DONE:
            commands.append(RecordAction(description=given.note, step=step, outcome=Outcome.DONE))
        return [*commands, _ended(given, verdict)]

    def _refusal(self, run: Run, definition: Definition, step: str, verdict: Verdict) -> RefuseOutput:
        work = work_of(run, locate(definition, step), step)
        return RefuseOutput(
            step=step,
            findings=tuple(map(finding_data, verdict.findings)),
            evidence=tuple(map(evidence_data, verdict.evidence)),
            last=run.step(step).tries + 1 >= work.max_tries,
        )


def _require_round(run: Run, outlook: Outlook, step: str) -> None:
    """Refuse a step of a round that has not begun: rounds are worked on in order, only so many at once."""
    is_begun = run.step(step).status not in {StepStatus.PENDING, StepStatus.READY}
    if not is_begun and step not in outlook.for_agent and not is_undo(run, step):
        raise Conflict(f"step {step!r} is not ready: its round has not come", hint="ask for the current step")


def _ended(given: HandIn, verdict: Verdict) -> Command:
    match given.outcome:
        case Outcome.DONE:
            passed, evidence = verdict.passed, tuple(map(evidence_data, verdict.evidence))
            proof = Proof.VERIFIED if passed else Proof.CLAIMED
            notes = tuple(map(finding_data, verdict.findings))
            return CompleteStep(
                step=given.step, output=given.output, proof=proof, checks=passed, evidence=evidence, findings=notes
            )
        case Outcome.FAILED:
            message = given.note or "the agent could not do it"
            return FailStep(step=given.step, category=Category.TOOL_ERROR, message=message)
        case Outcome.SKIPPED:
            return SkipStep(step=given.step, reason=given.note or "the agent left it out")
        case _:
            raise Invalid(f"a step is not handed in as {given.outcome.value!r}", hint="say done, failed or skipped")


def _undone(given: HandIn, verdict: Verdict) -> list[Command]:
    if not verdict.accepted:
        raise Invalid("the undo is not accepted as it is", findings=verdict.findings)
    if given.outcome is Outcome.DONE:
        details = {"output": given.output} if given.output is not None else {}
        return [CompensateStep(step=given.step, how=How.BY_AGENT, description=given.note, details=details)]
    if given.outcome is Outcome.STARTED:
        raise Invalid("an undo is not handed in as 'started'", hint="say done or failed")
    message = given.note or "the agent could not undo it"
    return [FailUndo(step=given.step, category=Category.TOOL_ERROR, message=message)]


_UNCONFIRMED: Final = Finding(
    rule="confirm",
    severity=Severity.CRITICAL,
    where="confirmed",
    message="the user must agree before this step counts as done",
    fix="show it to the user; when they agree, hand in again with confirmed: true",
)
