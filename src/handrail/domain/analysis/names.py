"""Names: what an expression or template may refer to at each place of a definition.

Pure. VisibleNames has the shapes of all names, so that types are known, and the levels that say which steps have ended
at that place. Definitions are walked, and flaws reported, in name_findings.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import Path
from handrail.domain.definition.graph import Ancestry, ancestors
from handrail.domain.definition.model import Call, Definition, Each, Prompt, Repeat, Step, Tool, Work
from handrail.domain.language.shape import ANY, NUMBER, STRING, Shape, array_shape, object_shape, shape_of

RESERVED_NAMES: Final = frozenset({"inputs", "vars", "steps", "run", "output", "index"})
OWN_RESULTS: Final = ((), ("output",), ("status",))
"""How a path continues that refers to a loop itself, not to a step of the current round."""


class StepListLevel(Struct, frozen=True):
    """One list of steps, seen from one of them; without ancestry, the whole list has ended."""

    ancestry: Ancestry | None = None
    step: str = ""
    has_ended: bool = False
    """Whether the step itself has ended too, as in its undo."""

    def sees(self, name: str) -> bool:
        """Whether the step of this name has ended by now."""
        if self.ancestry is None:
            return True
        return self.ancestry.is_before(name, self.step) or (self.has_ended and name == self.step)


class VisibleNames(Struct, frozen=True):
    """The names at one place with their shapes, and which steps have ended, outermost list first."""

    scope: Mapping[str, Shape]
    levels: tuple[StepListLevel, ...]
    pinned: Mapping[str, Definition]
    tools: Mapping[str, Shape]
    """The shapes of tool outputs, as far as the tools declare them."""

    def at(self, level: StepListLevel) -> VisibleNames:
        """The names seen from a step of this list."""
        return replace(self, levels=(*self.levels, level))

    def undoing(self) -> VisibleNames:
        """The names in a step's undo: the step itself has ended."""
        return replace(self, levels=(*self.levels[:-1], replace(self.levels[-1], has_ended=True)))

    def knowing(self, **shapes: Shape) -> VisibleNames:
        """With more names."""
        return replace(self, scope={**self.scope, **shapes})

    def inside(self, loop: Step, item: Shape = ANY) -> VisibleNames:
        """The names in a loop's body: the steps of this round are under the loop's name."""
        trail = [level.step for level in self.levels]
        steps = _with_body(self.scope["steps"], trail, _step_shapes(loop.body, self.pinned, self.tools))
        names = {loop.work.as_: item} if isinstance(loop.work, Each) else {}
        return self.knowing(**{**names, "steps": steps, "index": NUMBER})

    def output(self, work: Work) -> Shape:
        """The shape of the output of this work, as far as it is known."""
        return _output_shape(work, self.pinned, self.tools)

    def hidden_step(self, path: Path) -> tuple[str, StepListLevel] | None:
        """The step that a path refers to although it may not have ended here, with the level of its list."""
        if path[0] != "steps":
            return None
        depth = 0
        # Down through the loops around this place: only their names lead on to other steps.
        while depth < len(self.levels) - 1 and path[depth + 2 : depth + 3] not in OWN_RESULTS:
            depth += 1
        level, name = self.levels[depth], path[depth + 1 : depth + 2]
        if not name or not isinstance(name[0], str) or level.sees(name[0]):
            return None
        return name[0], level


def top_view(definition: Definition, tools: Mapping[str, Shape]) -> VisibleNames:
    """The names visible in a definition's own list of steps; `tools` are the declared shapes of tool outputs."""
    scope = {
        "inputs": object_shape({name: shape_of(schema) for name, schema in definition.inputs.items()}),
        "vars": object_shape({}, is_open=True),
        "run": object_shape({"id": STRING}),
        "steps": object_shape(_step_shapes(definition.steps, definition.pinned, tools)),
    }
    return VisibleNames(scope=scope, levels=(), pinned=definition.pinned, tools=tools)


def ancestry_of(steps: Sequence[Step]) -> Ancestry | None:
    """Which steps come before which; None if two steps have the same id, so that this is undefined."""
    return ancestors(steps) if len({step.id for step in steps}) == len(steps) else None


def _output_shape(work: Work, pinned: Mapping[str, Definition], tools: Mapping[str, Shape]) -> Shape:
    """The shape of the output: as the step declares it, else as its tool does."""
    match work:
        case Prompt(output=schema) | Tool(output=schema) if schema is not None:
            return shape_of(schema)
        case Tool(tool=name) if name in tools:
            return tools[name]
        case Each() | Repeat():
            return array_shape()
        case Call(workflow=name) if name in pinned:
            return object_shape(dict.fromkeys(pinned[name].outputs, ANY))
        case _:
            return ANY


def _step_shapes(
    steps: Sequence[Step], pinned: Mapping[str, Definition], tools: Mapping[str, Shape]
) -> dict[str, Shape]:
    outputs = {step.id: _output_shape(step.work, pinned, tools) for step in steps}
    return {name: object_shape({"output": output, "status": STRING}) for name, output in outputs.items()}


def _with_body(shape: Shape, trail: Sequence[str], body: Mapping[str, Shape]) -> Shape:
    """The steps' shape with a loop's body under the loop's name; the trail leads to the loop."""
    if not trail:
        return object_shape({**body, **shape.fields})
    inner = _with_body(shape.fields[trail[0]], trail[1:], body)
    return object_shape({**shape.fields, trail[0]: inner})
