"""Step paths: how a step of a run is named in the journal: `tag`, `build[2].make`, `announce.post`.

Pure. A path is a step's id, behind the path of the step that holds it; a loop's round stands in brackets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from handrail.domain.definition import Call, Definition, Each, Repeat, Step
from handrail.domain.errors import NotFound

_segment = re.compile(r"^([^.\[\]]+)(?:\[(\d{1,9})\])?$")
PATH_LENGTH_MAX: Final = 1_000


class Located(Struct, frozen=True):
    """A step found by its path, with the path of the step that holds it and the prefix of its siblings' paths."""

    step: Step
    parent: str
    prefix: str


def locate(definition: Definition, path: str) -> Located:
    """The step that a path names; NotFound with the nearest names otherwise."""
    pins = definition.pinned
    scope, parent, prefix = definition.steps, "", ""
    segments = path[:PATH_LENGTH_MAX].split(".")
    for segment in segments[:-1]:
        step, index = _holder(scope, segment, path)
        parent = prefix + step.id
        prefix = f"{parent}." if index is None else f"{parent}[{index}]."
        scope = _inside(step, index, pins, path)
    return Located(_named(scope, segments[-1], path), parent, prefix)


def _holder(scope: tuple[Step, ...], segment: str, path: str) -> tuple[Step, str | None]:
    found = _segment.match(segment)
    if found is None:
        raise NotFound(f"{path!r} is not a step path", hint="write it as in `build[2].make`")
    return _named(scope, found[1], path), found[2]


def _inside(step: Step, index: str | None, pins: Mapping[str, Definition], path: str) -> tuple[Step, ...]:
    match step.work:
        case Each(steps=steps) | Repeat(steps=steps) if index is not None:
            return steps
        case Call(workflow=workflow) if index is None and workflow in pins:
            return pins[workflow].steps
        case Each() | Repeat():
            raise NotFound(f"{path!r} does not say which round of {step.id!r}", hint=f"write `{step.id}[0].<step>`")
        case _:
            raise NotFound(f"step {step.id!r} in {path!r} holds no steps")


def _named(scope: tuple[Step, ...], name: str, path: str) -> Step:
    for step in scope:
        if step.id == name:
            return step
    near = get_close_matches(name, [step.id for step in scope], 3) or [step.id for step in scope[:5]]
    raise NotFound(f"there is no step {path!r}", hint=f"the nearest are: {', '.join(near)}")
