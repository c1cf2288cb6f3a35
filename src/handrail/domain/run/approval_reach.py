"""How far an approval reaches: the steps that it lets start, and which steps wait because one was withdrawn.

Pure, and mostly about the definition. What a person is shown of these steps is in approval.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from handrail.domain.definition.model import Approve, Call, Definition, Repeat, Step
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_SATISFIED
from handrail.domain.run.step_path import UNDO, Lane, Located, lane_in, locate


class StepAhead(Struct, frozen=True):
    """A step that an approval lets start."""

    path: str
    """Its path; `build.make` in a loop that has not started, because its rounds are not known yet."""
    step: Step
    lane: Lane
    anchor: str
    """The step with a state in the run: itself, or the outermost step ahead that contains it."""


def steps_ahead(definition: Definition, path: str) -> list[StepAhead]:
    """The steps that an approval lets start, in written order, up to the next approval that can't be skipped."""
    found = locate(definition, path)
    ahead: list[StepAhead] = []
    while True:
        lane = found.lane
        reaches_end = _Sweep(definition, lane, ahead).follow([found.step.id])
        if not (reaches_end and lane.parent) or lane.prefix.endswith(f"{UNDO}."):
            return ahead
        # The list of steps that contains the approval can end: what comes after it starts by this approval, too; in a
        # loop that is also the next round.
        found = locate(definition, lane.parent)
        if isinstance(found.step.work, Repeat):
            _Sweep(definition, lane, ahead, anchor=lane.parent, shown=f"{lane.parent}.").enter()


class _Sweep:
    """Collects what follows in one list of steps, and inside the steps that contain others."""

    def __init__(
        self, definition: Definition, lane: Lane, ahead: list[StepAhead], *, anchor: str = "", shown: str = ""
    ) -> None:
        self.definition = definition
        self.lane = lane
        self.ahead = ahead
        self.anchor = anchor
        self.shown = shown or lane.prefix

    def follow(self, starts: Iterable[str]) -> bool:
        """Collect all that follows these steps; whether the end of the list can be reached without an approval."""
        course = self.lane.course
        # Through conditions, but not through another approval that will be asked: what follows that one is its own.
        reached, waiting, ends = set[str](), list(starts), False
        while waiting:
            later = course.followers[waiting.pop()]
            ends = ends or not later
            waiting.extend(name for name in later if name not in reached and _can_pass(course.named[name]))
            reached.update(later)
        for step in course.steps:
            if step.id in reached:
                self._collect(step)
        return ends

    def enter(self) -> None:
        """Collect what starts when this list of steps opens."""
        course = self.lane.course
        first = [step for step in course.steps if not course.needs[step.id]]
        for step in first:
            self._collect(step)
        self.follow([step.id for step in first if _can_pass(step)])

    def _collect(self, step: Step) -> None:
        if isinstance(step.work, Approve) and step.when is None:
            return
        # Another approval with a condition is listed, too: whether it will be asked must not change unseen.
        anchor = self.anchor or self.lane.prefix + step.id
        self.ahead.append(StepAhead(self.shown + step.id, step, self.lane, anchor))
        is_known = isinstance(step.work, Call) and step.work.workflow in self.definition.pinned
        if step.body or is_known:
            lane = lane_in(self.definition, Located(step, self.lane))
            _Sweep(self.definition, lane, self.ahead, anchor=anchor, shown=f"{self.shown}{step.id}.").enter()


def _can_pass(step: Step) -> bool:
    # An approval with a condition may be skipped: then what follows it starts by the approval before it.
    return step.when is not None or not isinstance(step.work, Approve)


def held_by(run: Run, definition: Definition, path: str) -> str:
    """The withdrawn approval that a step waits for, though it could start otherwise; empty if there is none."""
    return next((one for one in withdrawn_in(run) if one != path and _follows(definition, one, path)), "")


def withdrawn_in(run: Run) -> Iterator[str]:
    """The approvals that were withdrawn and not given again."""
    for path in run.approvals:
        state = run.step(path)
        if state.withdrawn and state.status not in STEP_SATISFIED:
            yield path


def comes_after(definition: Definition, approval: str, path: str) -> bool:
    """Whether a step can only be done after the approval: it follows it, or contains it."""
    return approval.startswith((f"{path}.", f"{path}[", f"{path}{UNDO}.")) or _follows(definition, approval, path)


def _follows(definition: Definition, approval: str, path: str) -> bool:
    """Whether a step comes after an approval, wherever the two are nested."""
    mine, other = approval.split("."), path.split(".")
    depth = next((i for i, (one, two) in enumerate(zip(mine, other, strict=False)) if one != two), None)
    if depth is None:
        return False
    # Where the two paths part, both are in one list; deeper down their order says nothing about each other.
    before, after = _id(mine[depth]), _id(other[depth])
    course = locate(definition, ".".join((*mine[:depth], before))).lane.course
    reached, waiting = set[str](), [before]
    while waiting:
        later = set(course.followers[waiting.pop()]) - reached
        reached |= later
        waiting.extend(later)
    return after in reached


def _id(segment: str) -> str:
    return segment.partition("[")[0].partition("!")[0]
