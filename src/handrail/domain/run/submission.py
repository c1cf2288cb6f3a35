"""Submissions: what an agent submits for a step, and what follows from it.

Pure. Decides whether a submission repeats an earlier one, whether it is allowed now, what the checks mean for it, and
which commands it becomes. engine/guiding/guide.py reads the run, runs the checks and dispatches the commands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import BLOCKING, Finding, Severity, finding_data
from handrail.domain.checks.judgement import Judgement
from handrail.domain.checks.rule import Evidence, evidence_data
from handrail.domain.definition.duration import UNIT_MS, duration_text
from handrail.domain.definition.model import Category, Definition, Prompt
from handrail.domain.errors import Conflict, Invalid, OnlyRecorded
from handrail.domain.journal.event import How, Mode, Outcome, Proof
from handrail.domain.run.approval_reach import held_by
from handrail.domain.run.command import (
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
from handrail.domain.run.guard import assignee, require_open, require_ready
from handrail.domain.run.guidance import is_undo, name_for_agent, needs_confirmation, work_of
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_NOT_STARTED, STEP_SUBMITTABLE, RunStatus, StepStatus
from handrail.domain.run.step_path import UNDO, locate
from handrail.domain.run.step_state import StepState
from handrail.domain.scheduling.step_start import InputCheck, LeaveToAgent, start_of

TAKEN_MS: Final = 15 * 60_000
"""How long a step stays with the agent that took it by name."""
NAMED_MAX: Final = 10
"""How many steps a refusal names."""


class Submission(Struct, frozen=True, kw_only=True):
    """What an agent submits for a step."""

    step: str
    output: Any = None
    outcome: Outcome = Outcome.DONE
    vars: Mapping[str, Any] = {}
    note: str = ""
    confirmed: str = ""
    """Who says that a person has agreed; empty if no person has."""
    agent: str = ""
    is_undo: bool = False
    """Whether it is about undoing the step."""


class Verdict(Struct, frozen=True, kw_only=True):
    """The result of a submission."""

    accepted: bool
    findings: tuple[Finding, ...] = ()
    repeated: bool = False
    """Whether the same was submitted before."""
    unconfirmed: bool = False
    """Whether only a person's confirmation is missing."""
    passed: tuple[str, ...] = ()
    """The rules that handrail ran and that passed."""
    evidence: tuple[Evidence, ...] = ()
    proof: Proof = Proof.CLAIMED
    """What the checks that passed are worth."""
    unchecked: bool = False
    """Whether it was refused only because of what others must fix: then it is no try."""


ACCEPTED: Final = Verdict(accepted=True)
REPEATED: Final = Verdict(accepted=True, repeated=True)
UNCONFIRMED: Final = Verdict(
    accepted=False,
    unconfirmed=True,
    findings=(
        Finding(
            rule="confirm",
            severity=Severity.CRITICAL,
            where="confirmed",
            message="the user must agree before this step counts as done",
            fix="show it to the user; when they agree, submit it again with confirmed: true",
        ),
    ),
)
_ENDS: Final = {Outcome.SKIPPED: StepStatus.SKIPPED, Outcome.FAILED: StepStatus.FAILED}


def meant(run: Run, given: Submission) -> Submission:
    """The submission under the step's own name; Conflict if it is for an undo that was not requested."""
    if not given.step.endswith(UNDO):
        return given
    step = given.step.removesuffix(UNDO)
    if not is_undo(run, step) and run.step(step).status is not StepStatus.COMPENSATED:
        raise Conflict(f"step {step!r} is not being undone", hint="ask for the current step")
    return replace(given, step=step, is_undo=True)


def step_meant(run: Run, definition: Definition, waiting: Sequence[str], output: Any) -> str:
    """The step that an output is for that came without one: the only one that waits for this agent.

    Conflict if there is another choice, or if the last submission was the same: its answer may have been lost, and the
    output would then go to the step after it. `output` is as the journal stores it."""
    if not waiting:
        raise Conflict("no step of this run waits for an output", hint="ask for the current step with `run` alone")
    names = [name_for_agent(run, path) for path in waiting]
    if len(names) > 1:
        more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
        raise Conflict(f"several steps are open: {', '.join(names[:NAMED_MAX])}{more}", hint="say which: give `step`")
    # An agent that lost an answer repeats its output without a step. It would be taken for the output of the next one,
    # and be accepted there if that has no checks.
    last = _last_submitted(run, definition)
    if last and run.step(last).output == output:
        raise Conflict(
            f"the same output was accepted for {last!r} just before",
            hint=f"if it is for {names[0]!r}, give `step`; if you lost an answer, ask for the current step",
        )
    return names[0]


def _last_submitted(run: Run, definition: Definition) -> str:
    """The step of an agent that was completed last; empty if there is none."""
    done = ((state.ended or 0, path) for path, state in run.steps.items() if state.status is StepStatus.COMPLETED)
    newest_first = (path for _, path in sorted(done, reverse=True))
    return next((path for path in newest_first if isinstance(locate(definition, path).step.work, Prompt)), "")


# --- was it submitted before? ---------------------------------------------------------------------


def repetition(run: Run, definition: Definition, given: Submission, kept: Callable[[Any], Any]) -> Verdict | None:
    """The verdict on a repeated submission; None if it is new, Conflict if something else was submitted before.

    `kept` gives an output as the journal stores it, without secrets: only that form can be compared."""
    locate(definition, given.step)  # NotFound if there is no such step
    state = run.step(given.step)
    if is_undo(run, given.step):
        return _repeated_before_undo(run, given, kept)
    # An answer may have been lost before the undo or after it: a repetition of either is answered as such.
    if _is_undone_by_agent(state) and (_says_undone(given) or _says_the_same(state, given, kept)):
        return REPEATED
    if state.status is StepStatus.COMPLETED and run.status is not RunStatus.COMPENSATING:
        if _says_the_same(state, given, kept):
            return REPEATED
        raise Conflict(
            f"step {given.step!r} is already completed, with another output", hint="continue with the current step"
        )
    return REPEATED if state.status is _ENDS.get(given.outcome) else None


def _repeated_before_undo(run: Run, given: Submission, kept: Callable[[Any], Any]) -> Verdict | None:
    """The same for a step that is being undone now: an earlier submission for the step itself may arrive again."""
    if given.is_undo:
        return None
    if _says_the_same(run.step(given.step), given, kept):
        return REPEATED  # the caller did not get the first answer
    name = given.step + UNDO
    raise Conflict(f"step {given.step!r} is being undone", hint=f"undo it, and submit that as {name!r}")


def _is_undone_by_agent(state: StepState) -> bool:
    return state.status is StepStatus.COMPENSATED and state.compensation == How.BY_AGENT


def _says_undone(given: Submission) -> bool:
    return given.is_undo and given.outcome is Outcome.DONE


def _says_the_same(state: StepState, given: Submission, kept: Callable[[Any], Any]) -> bool:
    return given.outcome is Outcome.DONE and bool(state.output == kept(given.output))


# --- may it be submitted now? ---------------------------------------------------------------------


def require_turn(
    run: Run, definition: Definition, given: Submission, *, for_agent: Collection[str], now: int, check: InputCheck
) -> None:
    """Refuse a submission that is too early, or whose step another agent has; `for_agent` are waiting for agents."""
    step, state = given.step, run.step(given.step)
    if run.mode is Mode.RECORD:
        raise OnlyRecorded(f"run {run.id} is only recorded")
    work_of(run, locate(definition, step), step)  # Conflict if the step is not for an agent
    if is_undo(run, step):
        return
    require_open(run, step)
    if state.status not in STEP_SUBMITTABLE:
        raise Conflict(
            f"step {step!r} is {state.status.value}: nothing can be submitted for it", hint="ask for the current step"
        )
    if state.status is StepStatus.FAILED:
        return  # an agent may still submit a step that has failed
    if run.status is not RunStatus.PAUSED or state.status is not StepStatus.WAITING:
        _require_ready(run, step, definition, for_agent)  # a step in progress may end even while the run is paused
    if not isinstance(start_of(run, definition, step, now=now, check=check), LeaveToAgent):
        raise Conflict(f"step {step!r} is not done: its condition does not hold", hint="it is skipped")
    _require_not_taken(given, state, now)
    # Rounds run in order, with a limit on how many at once: a step that has not started must be one of the waiting.
    if state.status in STEP_NOT_STARTED and step not in for_agent:
        raise Conflict(f"step {step!r} is not ready: its round has not started", hint=_open_words(run, for_agent))


def _require_ready(run: Run, step: str, definition: Definition, for_agent: Collection[str]) -> None:
    """Refuse a step that is not ready. What it waits for may itself not be ready: the open steps are named instead."""
    try:
        require_ready(run, step, definition)
    except Conflict as refused:
        if run.status is RunStatus.PAUSED or held_by(run, definition, step):
            raise  # a person has to do something first
        raise Conflict(str(refused), hint=_open_words(run, for_agent)) from None


def _open_words(run: Run, for_agent: Collection[str]) -> str:
    """What to do instead of a step that is not ready."""
    names = [repr(name_for_agent(run, path)) for path in for_agent]
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return f"open now: {', '.join(names[:NAMED_MAX])}{more}; do that first" if names else "ask for the current step"


def _require_not_taken(given: Submission, state: StepState, now: int) -> None:
    taken_by = assignee(state, at=now)
    # Agents without a name share what is not taken; a name is what keeps two of them apart.
    if not taken_by or taken_by == given.agent:
        return
    left = "" if state.due is None else f" for another {_seconds_text(state.due - now)}"
    raise Conflict(
        f"step {given.step!r} is assigned to {taken_by!r}{left}",
        hint=f"name yourself as agent {taken_by!r} if that is you, or ask for another step",
    )


def _seconds_text(milliseconds: int) -> str:
    return duration_text(-(-milliseconds // UNIT_MS["s"]) * UNIT_MS["s"])  # rounded up: 0s would look free


# --- what do the checks mean for it? --------------------------------------------------------------


def verdict_on(run: Run, definition: Definition, given: Submission, judgement: Judgement) -> Verdict:
    """The verdict on a submission, from the results of its checks."""
    if not judgement.is_good:
        blocking = tuple(one for one in judgement.findings if one.severity in BLOCKING[judgement.bar])
        unchecked = not judgement.is_try
        return Verdict(accepted=False, findings=blocking, evidence=judgement.evidence, unchecked=unchecked)
    found = locate(definition, given.step)
    work = work_of(run, found, given.step)
    if needs_confirmation(run, found, work, given.output) and not given.confirmed:
        return UNCONFIRMED
    return Verdict(
        accepted=True,
        findings=judgement.findings,
        passed=judgement.passed,
        evidence=judgement.evidence,
        proof=judgement.proof,
    )


# --- which commands does it become? ---------------------------------------------------------------


def handed_out(step: str, agent: str, *, now: int) -> HandOutStep:
    """Assigns a step: for a limited time to an agent that has named itself, else to any agent."""
    return HandOutStep(step=step, agent=agent, until=now + TAKEN_MS if agent else None, at=now)


def commands_for(run: Run, definition: Definition, given: Submission, verdict: Verdict, *, now: int) -> list[Command]:
    """The commands that a submission with this verdict becomes."""
    step, state = given.step, run.step(given.step)
    if is_undo(run, step):
        return [_undone(given, verdict)]
    commands = _reopening(given, state, now)
    if not verdict.accepted:
        return [*commands, _refusal(step, verdict, work_of(run, locate(definition, step), step).max_tries)]
    if given.vars:
        commands.append(SetVars(vars=given.vars))
    if given.confirmed:
        commands.append(RecordDecision(decision="confirmed", reason=given.confirmed, step=step))
    if given.note and given.outcome is Outcome.DONE:
        commands.append(RecordAction(description=given.note, step=step, outcome=Outcome.DONE))
    return [*commands, _ended(given, verdict)]


def proposed(given: Submission) -> Command:
    """What a submission asks for if its output is accepted: for the policy, before anything is checked."""
    return _undone(given, ACCEPTED) if given.is_undo else _ended(given, ACCEPTED)


def _reopening(given: Submission, state: StepState, now: int) -> list[Command]:
    """The commands that assign the step to the agent, if it is not assigned yet."""
    commands: list[Command] = []
    has_failed = state.status is StepStatus.FAILED
    if has_failed and given.outcome is Outcome.DONE:
        commands.append(RetryStep(step=given.step, reason=given.note or "the agent submitted it later"))
    is_left_out = has_failed and given.outcome is Outcome.SKIPPED  # a failed step can be skipped directly
    if state.status is not StepStatus.WAITING and not is_left_out:
        commands.append(handed_out(given.step, given.agent, now=now))
    return commands


def _refusal(step: str, verdict: Verdict, tries_max: int) -> RefuseOutput:
    return RefuseOutput(
        step=step,
        findings=tuple(map(finding_data, verdict.findings)),
        evidence=tuple(map(evidence_data, verdict.evidence)),
        unchecked=verdict.unchecked,
        tries_max=tries_max,
    )


def _ended(given: Submission, verdict: Verdict) -> Command:
    match given.outcome:
        case Outcome.DONE:
            return CompleteStep(
                step=given.step,
                output=given.output,
                proof=verdict.proof,
                checks=verdict.passed,
                evidence=tuple(map(evidence_data, verdict.evidence)),
                findings=tuple(map(finding_data, verdict.findings)),
            )
        case Outcome.FAILED:
            message = given.note or "the agent could not do it"
            return FailStep(step=given.step, category=Category.TOOL_ERROR, message=message)
        case Outcome.SKIPPED:
            return SkipStep(step=given.step, reason=given.note or "the agent skipped it")
        case _:
            raise Invalid(f"a step can't be submitted as {given.outcome.value!r}", hint="say done, failed or skipped")


def _undone(given: Submission, verdict: Verdict) -> Command:
    if not verdict.accepted:
        raise Invalid("the undo was refused", findings=verdict.findings)
    if given.outcome is Outcome.DONE:
        details = {"output": given.output} if given.output is not None else {}
        return CompensateStep(step=given.step, how=How.BY_AGENT, description=given.note, details=details)
    if given.outcome is Outcome.STARTED:
        raise Invalid("an undo can't be submitted as 'started'", hint="say done or failed")
    message = given.note or "the agent could not undo it"
    return FailUndo(step=given.step, category=Category.TOOL_ERROR, message=message)
