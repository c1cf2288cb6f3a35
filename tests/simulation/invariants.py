"""The invariants of semantics, section 8, as small functions: each looks at one event and says what is wrong with it.

A moment is an event with the run before and after it, and who wrote it under which lease. Whatever these functions
need to know of the past, the story of the run keeps (witness.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from handrail.domain.definition.model import Each, Repeat, Tool
from handrail.domain.journal.event import (
    ActionRecorded,
    AnswerCameLate,
    ApprovalExpired,
    ApprovalGiven,
    ApprovalRequested,
    AttemptLost,
    AttemptStarted,
    CompensationStarted,
    DecisionRecorded,
    How,
    RunCancelled,
    RunCompensated,
    RunCompensationFailed,
    RunCompleted,
    RunEvent,
    RunFailed,
    StepCompensated,
    StepCompleted,
    StepEvent,
    StepHandedOut,
    StepOpened,
    StepRetried,
    StepSkipped,
    UndoBecameUncertain,
    UndoEvent,
    UndoFailed,
    UndoLost,
    UndoStarted,
    VarsSet,
)
from handrail.domain.run.decide_step import LOST_MAX
from handrail.domain.run.status import MOVES, RUN_MOVES, STEP_SATISFIED, RunStatus, StepStatus
from handrail.domain.scheduling.retry import policy_of
from simulation.authority import AUTHORITY
from simulation.outside import spec_of
from simulation.plan_order import (
    comes_after,
    holder,
    is_container,
    owes_undo,
    rounds_follow,
    segments,
    siblings,
    step_at,
)
from simulation.story import Moment, Story

Complaints: TypeAlias = Iterator[str]
Invariant: TypeAlias = Callable[[Story, Moment], Complaints]

BEGINNINGS: Final = (AttemptStarted, StepOpened, StepHandedOut, ApprovalRequested)
NOTES: Final = (AnswerCameLate, DecisionRecorded, ActionRecorded, VarsSet)
MOVING: Final = (AttemptStarted, StepOpened, StepCompleted, StepSkipped, StepRetried, StepCompensated, ApprovalGiven)
SLACK_S: Final = 0.002
DRAFTED_S: Final = 5.0
"""How long before it was written a deadline may have been drawn."""


def invariant_3_numbers_are_dense(story: Story, moment: Moment) -> Complaints:
    if moment.entry.n != moment.before.n + 1 or moment.entry.n != len(story.entries):
        yield f"event {moment.entry.n} follows event {moment.before.n}"


def invariant_5_moves_are_legal(story: Story, moment: Moment) -> Complaints:
    was, now = moment.before.status, moment.after.status
    if was is not now and now not in RUN_MOVES[was]:
        yield f"the run moved from {was} to {now}"
    if isinstance(moment.event, StepEvent):
        old, new = moment.before.step(moment.event.step).status, moment.after.step(moment.event.step).status
        if old is not new and new not in MOVES[old]:
            yield f"{moment.event.step} moved from {old} to {new}"
        if old is new and isinstance(moment.event, MOVING):
            yield f"{moment.event.step} was {old} already"


def invariant_5_ends_are_final(story: Story, moment: Moment) -> Complaints:
    was, event = moment.before.status, moment.event
    if isinstance(event, NOTES) or was in {RunStatus.NEW, RunStatus.RUNNING, RunStatus.PAUSED}:
        return
    if was in {RunStatus.COMPLETED, RunStatus.COMPENSATED}:
        yield f"{type(event).__name__} after the run was {was}"
    elif isinstance(event, RunEvent):
        return
    elif was in {RunStatus.FAILED, RunStatus.CANCELLED} and not isinstance(event, StepCompensated):
        yield f"{type(event).__name__} after the run was {was}"
    elif was is RunStatus.COMPENSATION_FAILED and not isinstance(event, StepCompensated | StepSkipped):
        yield f"{type(event).__name__} after the compensation had failed"
    elif (
        isinstance(event, StepEvent)
        and was is RunStatus.COMPENSATING
        and "!undo" not in event.step
        and not isinstance(event, UndoEvent | StepSkipped)
        and not (isinstance(event, StepRetried) and moment.before.step(event.step).undo_uncertain)
    ):
        yield f"{type(event).__name__} of {event.step} while the run is undone"


def is_asked_again(moment: Moment) -> bool:
    """Whether an approval that was given and withdrawn is asked for again: it began long ago."""
    event = moment.event
    return isinstance(event, ApprovalRequested) and moment.before.step(event.step).withdrawn


def invariant_8_nothing_starts_before_what_it_waits_for(story: Story, moment: Moment) -> Complaints:
    event, before = moment.event, moment.before
    is_left_out = isinstance(event, StepSkipped) and before.step(event.step).status is StepStatus.PENDING
    if (not isinstance(event, BEGINNINGS) and not is_left_out) or is_asked_again(moment):
        return
    path: str = getattr(event, "step", "")
    prefix, steps = siblings(story.definition, path)
    step = next(step for step in steps if prefix + step.id == path)
    for name in step.after:
        if before.step(prefix + name).status not in STEP_SATISFIED:
            yield f"{path} began before {prefix + name} had ended"
    above = holder(path)
    wanted = StepStatus.COMPENSATING if prefix.endswith("!undo.") else StepStatus.RUNNING
    if above and before.step(above).status is not wanted:
        yield f"{path} began though {above} is {before.step(above).status}"


def invariant_8_rounds_follow_each_other(story: Story, moment: Moment) -> Complaints:
    event = moment.event
    if not isinstance(event, BEGINNINGS) or is_asked_again(moment):
        return
    above = holder(event.step)
    number = segments(event.step)[-2][1] if above else None
    if number is None:
        return
    step, state = step_at(story.definition, above), moment.before.step(above)
    if isinstance(step.work, Repeat) and number > state.round:
        yield f"{event.step} began before its round"
    open_rounds = [
        other
        for other in range(number)
        if any(moment.before.step(f"{above}[{other}].{one.id}").status not in STEP_SATISFIED for one in step.body)
    ]
    if rounds_follow(step) and open_rounds:
        yield f"{event.step} began while round {open_rounds[0]} was not over"
    if isinstance(step.work, Each) and len(open_rounds) >= step.work.parallel:
        yield f"{event.step} began while {len(open_rounds)} other rounds were not over"


def invariant_8_limits_hold(story: Story, moment: Moment) -> Complaints:
    if not isinstance(moment.event, AttemptStarted):
        return
    busy = [
        path
        for path, state in moment.after.steps.items()
        if state.status is StepStatus.RUNNING
        and path not in story.orphans
        and path not in moment.uncalled
        and not is_container(step_at(story.definition, path))
    ]
    if len(busy) > story.definition.max_parallel:
        yield f"{len(busy)} attempts at once, {story.definition.max_parallel} may be: {', '.join(busy)}"


def invariant_9_attempts_stay_within_policy(story: Story, moment: Moment) -> Complaints:
    event = moment.event
    if isinstance(event, AttemptStarted | UndoStarted):
        step, state = step_at(story.definition, event.step), moment.before.step(event.step)
        is_undo = isinstance(event, UndoStarted)
        before = state.undo_attempts if is_undo else state.attempts
        if event.attempt != before + 1:
            yield f"attempt {event.attempt} of {event.step} follows attempt {before}"
        work = step.undo if is_undo and step.undo is not None else step.work
        if state.broke > moment.before.turned:
            yield f"the undo of {event.step} had failed for good, and nobody asked for it again"
        if isinstance(work, Tool) and state.status is not StepStatus.COMPENSATION_FAILED:
            policy = policy_of(work.retry, spec_of(work.tool).retry)
            failures = story.failures[event.step, is_undo]
            if failures >= policy.attempts:
                yield f"{event.step} is tried again after {failures} failures; {policy.attempts} tries may be"
            category = story.category.get((event.step, is_undo))
            if category is not None and category not in policy.on:
                yield f"{event.step} is tried again after {category}"


def invariant_9_and_14_waits_are_kept(story: Story, moment: Moment) -> Complaints:
    """Waits drawn in the same process last as long as they were journaled, by true time; and as policy says."""
    event = moment.event
    if isinstance(event, AttemptStarted | UndoStarted | ApprovalExpired):
        name = f"{event.step}!undo" if isinstance(event, UndoStarted) else event.step
        process, until_s = story.waits.get(name, (None, 0.0))
        if process is moment.process and moment.now_s < until_s - SLACK_S:
            yield f"{event.step} went on {until_s - moment.now_s:.3f} s before its time"
    is_due = isinstance(event, RunFailed) and event.message == "the deadline has passed"
    is_due |= isinstance(event, CompensationStarted) and event.reason == "the deadline has passed"
    process, until_s = story.waits.get("", (None, 0.0))
    if is_due and process is moment.process and moment.now_s < until_s - DRAFTED_S:
        yield f"the deadline passed {until_s - moment.now_s:.3f} s too early"


def what_is_unknown_is_not_repeated(story: Story, moment: Moment) -> Complaints:
    """Section 4: an attempt without outcome and with an effect is not followed by another one, unless decided so."""
    event = moment.event
    if isinstance(event, AttemptLost) and not story.is_repeatable(event.step):
        yield f"{event.step} is to be repeated, and nobody knows whether it happened"
    if isinstance(event, AttemptStarted) and event.step in story.open_attempts:
        yield f"{event.step} is tried again before its last attempt has ended"


def what_must_be_undone_is_undone(story: Story, moment: Moment) -> Complaints:
    """Section 5: an undo fails only if its call did; one that was lost is called again, unless it opted out."""
    event = moment.event
    if isinstance(event, UndoBecameUncertain):
        if story.may_repeat_undo(event.step) and story.undo_losses[event.step] < LOST_MAX:
            yield f"the undo of {event.step} could be called again, and is not"
    elif isinstance(event, UndoLost) and not story.may_repeat_undo(event.step):
        yield f"the undo of {event.step} is to be repeated, and nobody knows whether it happened"
    elif isinstance(event, UndoStarted) and event.step in story.open_undos:
        yield f"{event.step} is undone again before its last undo has ended"
    elif isinstance(event, UndoFailed) and moment.entry.actor == "handrail":
        step = step_at(story.definition, event.step)
        work = step.work if step.undo is None else step.undo
        call = (moment.process.name, f"{story.id}:{event.step}:undo", event.attempt)
        if isinstance(work, Tool) and call not in story.outside.ended:
            yield f"the undo of {event.step} is said to have failed, and no call of it has"


def invariant_10_what_is_not_undone_is_named(story: Story, moment: Moment) -> Complaints:
    if not isinstance(moment.event, RunCompensationFailed):
        return
    owed = {path for path in moment.before.steps if owes_undo(story.definition, moment.before, path)}
    if unnamed := owed.difference(moment.event.steps, moment.event.not_compensated):
        yield f"the compensation failed without a word of {', '.join(sorted(unnamed))}"
    failed = {path for path in owed if moment.before.step(path).status is StepStatus.COMPENSATION_FAILED}
    if failed != set(moment.event.steps):
        yield f"the compensation failed by {', '.join(moment.event.steps)}; what failed is {', '.join(sorted(failed))}"


def invariant_10_only_what_must_be_is_undone(story: Story, moment: Moment) -> Complaints:
    event = moment.event
    if not isinstance(event, UndoStarted):
        return
    if moment.before.status is not RunStatus.COMPENSATING:
        yield f"{event.step} is undone while the run is {moment.before.status}"
    if not owes_undo(story.definition, moment.before, event.step):
        yield f"{event.step} is undone without need"


def invariant_10_undo_keeps_its_order(story: Story, moment: Moment) -> Complaints:
    event = moment.event
    if not isinstance(event, UndoStarted):
        return
    for path in moment.before.steps:
        if comes_after(story.definition, path, event.step) and owes_undo(story.definition, moment.before, path):
            yield f"{event.step} is undone before {path}, which came after it"


def invariant_10_compensated_means_all_of_it(story: Story, moment: Moment) -> Complaints:
    if isinstance(moment.event, RunCompensated):
        left = [path for path in moment.before.steps if owes_undo(story.definition, moment.before, path)]
        if left:
            yield f"the run is compensated without undoing {', '.join(left)}"
    if isinstance(moment.event, StepCompensated) and moment.event.how is How.EXECUTED:
        path = moment.event.step
        undo = step_at(story.definition, path).undo
        if (undo is None or isinstance(undo, Tool)) and not story.outside.effects[f"{story.id}:{path}:undo"]:
            yield f"{path} is said to be undone, and nothing happened"


def invariant_11_paused_means_paused(story: Story, moment: Moment) -> Complaints:
    if moment.before.status is RunStatus.PAUSED and isinstance(moment.event, (*BEGINNINGS, UndoStarted)):
        yield f"{type(moment.event).__name__} of {moment.event.step} while the run was paused"


def invariant_12_a_run_ends_once(story: Story, moment: Moment) -> Complaints:
    if isinstance(moment.event, RunCompleted | RunCancelled | RunFailed):
        ends = [entry for entry in story.entries if isinstance(entry.event, RunCompleted | RunCancelled | RunFailed)]
        if len(ends) > 1:
            yield "the run ended twice"
    if isinstance(moment.event, RunCompleted):
        rest = [step.id for step in story.definition.steps if moment.before.step(step.id).status not in STEP_SATISFIED]
        if rest:
            yield f"the run is completed without {', '.join(rest)}"


def invariant_13_work_is_done_under_the_lease(story: Story, moment: Moment) -> Complaints:
    if moment.entry.actor != "handrail" or isinstance(moment.event, AnswerCameLate):
        return
    lease = moment.lease
    if lease is None:
        yield f"{type(moment.event).__name__} without a lease"
    elif lease.owner != moment.process.name:
        yield f"{moment.process.name} writes under the lease of {lease.owner}"
    elif lease != story.lease and moment.entry.n > 1:
        yield f"{moment.process.name} writes in epoch {lease.epoch}; the run is held as {story.lease}"


INVARIANTS: Final[tuple[Invariant, ...]] = (
    invariant_3_numbers_are_dense,
    invariant_5_moves_are_legal,
    invariant_5_ends_are_final,
    invariant_8_nothing_starts_before_what_it_waits_for,
    invariant_8_rounds_follow_each_other,
    invariant_8_limits_hold,
    invariant_9_attempts_stay_within_policy,
    invariant_9_and_14_waits_are_kept,
    what_is_unknown_is_not_repeated,
    what_must_be_undone_is_undone,
    invariant_10_what_is_not_undone_is_named,
    invariant_10_only_what_must_be_is_undone,
    invariant_10_undo_keeps_its_order,
    invariant_10_compensated_means_all_of_it,
    invariant_11_paused_means_paused,
    invariant_12_a_run_ends_once,
    invariant_13_work_is_done_under_the_lease,
    *AUTHORITY,
)
"""All that is asked of every event."""
