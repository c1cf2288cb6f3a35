"""Invariants 22 and 24: no agent goes past a gate, only handrail executes, and an answer is for what was asked last.

Worked out from the definition's words alone: shares nothing with the policy (domain/policy/)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from handrail.domain.checks.finding import Severity
from handrail.domain.definition.model import Approve, Definition, Prompt, Skippable, Step, Tool
from handrail.domain.journal.event import (
    ApprovalExpired,
    ApprovalGiven,
    ApprovalOverridden,
    ApprovalRejected,
    ApprovalRequested,
    AttemptStarted,
    Mode,
    RunPaused,
    RunResumed,
    StepAccepted,
    StepCarried,
    StepCompleted,
    StepFailed,
    StepOpened,
    StepSkipped,
    UndoStarted,
)
from handrail.domain.run.status import StepStatus
from simulation.plan_order import inner_steps, step_at
from simulation.story import Moment, Story

Complaints = Iterator[str]
ENGINE: Final = (AttemptStarted, StepOpened, UndoStarted, ApprovalRequested, ApprovalExpired)
ANSWERS: Final = (ApprovalGiven, ApprovalRejected)


def whole(definition: Definition, step: Step) -> Iterator[Step]:
    """A step and all that it holds."""
    yield step
    for inner in inner_steps(definition, step):
        yield from whole(definition, inner)


def is_checked(step: Step) -> bool:
    """Whether something must be shown or agreed before the step counts."""
    work = step.work
    agreed = isinstance(work, Prompt) and work.confirm is not False
    return agreed or (
        isinstance(work, Prompt | Tool) and any(one.severity is not Severity.MINOR for one in work.checks)
    )


def gates(definition: Definition, step: Step) -> Iterator[str]:
    """What of a step only a person may leave out."""
    for one in whole(definition, step):
        if isinstance(one.work, Approve):
            yield f"the approval {one.id}"
        elif one.skippable in {Skippable.PERSON, Skippable.NOBODY}:
            yield f"{one.id}, which is reserved"
        elif is_checked(one) and one.skippable is not Skippable.AGENT:
            yield f"the checks of {one.id}"


def invariant_22_no_agent_goes_past_a_gate(story: Story, moment: Moment) -> Complaints:
    event, actor = moment.event, moment.entry.actor
    if not actor.startswith("agent:"):
        return
    if isinstance(event, (*ANSWERS, ApprovalOverridden)):
        yield f"{actor} decided on the approval {event.step}"
    if isinstance(event, StepSkipped):
        before = moment.before.step(event.step)
        was_done = before.status is StepStatus.COMPENSATION_FAILED or before.undo_uncertain
        for gate in () if was_done else gates(story.definition, step_at(story.definition, event.step)):
            yield f"{actor} skipped {gate}"
    if isinstance(event, StepAccepted) and any(map(is_checked, whole(story.definition, _step(story, event)))):
        yield f"{actor} accepted {event.step} without its checks"
    if isinstance(event, RunResumed):
        paused = [entry for entry in story.entries if isinstance(entry.event, RunPaused)]
        if paused and paused[-1].actor.startswith("person:"):
            yield f"{actor} resumed what {paused[-1].actor} had paused"


def invariant_22_what_nobody_may_skip_is_not_skipped(story: Story, moment: Moment) -> Complaints:
    event = moment.event
    if isinstance(event, StepSkipped) and moment.entry.actor != "handrail":
        before = moment.before.step(event.step)
        was_done = before.status is StepStatus.COMPENSATION_FAILED or before.undo_uncertain
        if not was_done and any(
            one.skippable is Skippable.NOBODY for one in whole(story.definition, _step(story, event))
        ):
            yield f"{moment.entry.actor} skipped {event.step}"


def invariant_22_only_handrail_executes(story: Story, moment: Moment) -> Complaints:
    event = moment.event
    if moment.before.mode is not Mode.RUN or moment.entry.actor == "handrail":
        return
    if isinstance(event, ENGINE):
        yield f"{moment.entry.actor} wrote {type(event).__name__} of {event.step}"
    if isinstance(event, StepCompleted | StepFailed) and not isinstance(_step(story, event).work, Prompt):
        yield f"{moment.entry.actor} ended {event.step}"


def invariant_22_a_fork_carries_no_approval(story: Story, moment: Moment) -> Complaints:
    if isinstance(moment.event, StepCarried):
        for one in whole(story.definition, _step(story, moment.event)):
            if isinstance(one.work, Approve):
                yield f"the approval {one.id} was carried over"


def invariant_22_exceptions_stay(story: Story, moment: Moment) -> Complaints:
    """Whatever somebody skipped is named by the run from then on."""
    for path, was in moment.before.steps.items():
        if was.exception is not None and moment.after.step(path).exception is not was.exception:
            yield f"{path} is not named any more: {was.exception}"
    event = moment.event
    if isinstance(event, StepSkipped) and moment.entry.actor != "handrail":
        before = moment.before.step(event.step)
        was_done = before.status is StepStatus.COMPENSATION_FAILED or before.undo_uncertain
        if not was_done and moment.after.step(event.step).exception is None:
            yield f"{event.step} was skipped by {moment.entry.actor} and is not named"


def invariant_24_an_answer_is_for_what_was_asked_last(story: Story, moment: Moment) -> Complaints:
    event = moment.event
    if not isinstance(event, ANSWERS):
        return
    of_step = [entry.event for entry in story.entries[:-1] if getattr(entry.event, "step", None) == event.step]
    asked = [one for one in of_step if isinstance(one, ApprovalRequested)]
    if not asked or asked[-1].digest != event.digest:
        yield f"{event.step} was answered with {event.digest[:12]}, which is not what it asks"


def _step(story: Story, event: StepSkipped | StepAccepted | StepCarried | StepCompleted | StepFailed) -> Step:
    return step_at(story.definition, event.step)


AUTHORITY: Final[tuple[Callable[[Story, Moment], Complaints], ...]] = (
    invariant_22_no_agent_goes_past_a_gate,
    invariant_22_what_nobody_may_skip_is_not_skipped,
    invariant_22_only_handrail_executes,
    invariant_22_a_fork_carries_no_approval,
    invariant_22_exceptions_stay,
    invariant_24_an_answer_is_for_what_was_asked_last,
)
