"""Step paths: how the journal names a step of a run: `tag`, `build[2].make`, `announce.post`, `tag!undo.post`.

Pure. A path is the path of the containing step, then the step's own id; a loop's round is in brackets, and the steps
of a workflow that undoes a step come after `!undo`. A lane is one list of steps that a path leads through."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from handrail.domain.definition.model import Call, Definition, Each, Repeat, Step
from handrail.domain.definition.step_order import Course, course_of
from handrail.domain.errors import NotFound

_segment = re.compile(r"^([^.\[\]!]+)(?:\[(\d{1,9})\]|(!undo))?$")
PATH_LENGTH_MAX: Final = 1_000
UNDO: Final = "!undo"


class Loop(Struct, frozen=True):
    """A loop that a lane is in: its name and path, which round, and the name of its item."""

    name: str
    path: str
    round: int
    item: str = ""


class Lane(Struct, frozen=True):
    """One list of steps, in one round: where it is, and which names can be used in it."""

    course: Course
    prefix: str = ""
    """What the paths of its steps start with: `build[2].`"""
    parent: str = ""
    """The path of the step that contains it; empty for a definition's top list."""
    root: str = ""
    """The prefix of the top list of the workflow that it belongs to."""
    caller: str = ""
    """The path of the step that called that workflow, where its inputs are."""
    loops: tuple[Loop, ...] = ()
    """The loops between that list and this one, outermost first."""
    outer: tuple[tuple[str, Course], ...] = ()
    """The lists of steps that can be referred to here, by their prefix: the workflow's top list, and each loop's."""
    definition: Definition | None = None
    """The workflow whose top list this is, if it is one."""


class Located(Struct, frozen=True):
    """A step found by its path, in its lane."""

    step: Step
    lane: Lane

    @property
    def parent(self) -> str:
        """The path of the step that contains it."""
        return self.lane.parent

    @property
    def prefix(self) -> str:
        """What the paths of its siblings start with."""
        return self.lane.prefix


def locate(definition: Definition, path: str) -> Located:
    """The step that a path names; NotFound with the nearest names otherwise."""
    lane = top_lane(definition)
    head, _, last = path[:PATH_LENGTH_MAX].rpartition(".")
    if head:
        for segment in head.split("."):
            lane = _lane_at(definition, lane, segment, path)
    return Located(_named(lane.course, last, path), lane)


def top_lane(definition: Definition) -> Lane:
    """The lane of a definition's top list."""
    course = course_of(definition.steps)
    return Lane(course, outer=(("", course),), definition=definition)


def lane_in(definition: Definition, found: Located, number: int = 0) -> Lane:
    """The lane inside a step that contains steps, in this round."""
    step, lane = found.step, found.lane
    path = lane.prefix + step.id
    if isinstance(step.work, Call):
        return _called(definition, path, f"{path}.", step.work)
    item = step.work.as_ if isinstance(step.work, Each) else ""
    course, prefix = course_of(step.body), f"{path}[{number}]."
    return Lane(
        course=course,
        prefix=prefix,
        parent=path,
        root=lane.root,
        caller=lane.caller,
        loops=(*lane.loops, Loop(step.id, path, number, item)),
        outer=(*lane.outer, (prefix, course)),
    )


def undo_lane(definition: Definition, found: Located) -> Lane | None:
    """The lane of the workflow that undoes a step; None if no workflow does."""
    path = found.lane.prefix + found.step.id
    undo = found.step.undo
    return _called(definition, path, f"{path}{UNDO}.", undo) if isinstance(undo, Call) else None


def _called(definition: Definition, path: str, prefix: str, call: Call) -> Lane:
    called = definition.pinned[call.workflow]
    course = course_of(called.steps)
    outer = ((prefix, course),)
    return Lane(course, prefix, path, root=prefix, caller=path, outer=outer, definition=called)


def container_of(path: str) -> str:
    """The path of the step that contains this one; empty if none does."""
    head, _, _ = path.rpartition(".")
    if head.endswith("]"):
        return head[: head.rindex("[")]
    return head.removesuffix(UNDO)


def is_in_undo(path: str) -> bool:
    """Whether the step belongs to a workflow that undoes another step."""
    return UNDO in path


def _lane_at(definition: Definition, lane: Lane, segment: str, path: str) -> Lane:
    found = _segment.match(segment)
    if found is None:
        raise NotFound(f"{path!r} is not a step path", hint="write it as in `build[2].make`")
    step, number, is_undo = _named(lane.course, found[1], path), found[2], found[3]
    if is_undo:
        undoing = undo_lane(definition, Located(step, lane))
        if undoing is None:
            raise NotFound(f"no workflow undoes step {step.id!r} in {path!r}")
        return undoing
    match step.work:
        case Each() | Repeat() if number is not None:
            return lane_in(definition, Located(step, lane), int(number))
        case Call(workflow=workflow) if number is None and workflow in definition.pinned:
            return lane_in(definition, Located(step, lane))
        case Each() | Repeat():
            raise NotFound(f"{path!r} does not say which round of {step.id!r}", hint=f"write `{step.id}[0].<step>`")
        case _:
            raise NotFound(f"step {step.id!r} in {path!r} contains no steps")


def _named(course: Course, name: str, path: str) -> Step:
    step = course.named.get(name)
    if step is not None:
        return step
    names = list(course.named)
    near = get_close_matches(name, names, 3) or names[:5]
    raise NotFound(f"there is no step {path!r}", hint=f"the nearest are: {', '.join(near)}")
