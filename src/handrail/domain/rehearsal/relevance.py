"""Relevance: which inputs, variables and outputs the forks of a workflow depend on, and what to try for each.

Pure. Follows values through inlined workflows, into `with` and out of `outputs`, as long as they are passed on
unchanged. Values computed from several others on the way are not followed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from handrail.domain.checks.finding import Path
from handrail.domain.definition.model import Call, Definition, Each, Prompt, Repeat, Step, Tool
from handrail.domain.errors import Invalid
from handrail.domain.language.shape import ANY
from handrail.domain.language.template import compile_value, has_templates
from handrail.domain.rehearsal.hints import Hint, condition_hints, list_hints, path_in
from handrail.domain.rehearsal.samples import EACH

TOP: Final = ""
INPUTS: Final = "inputs"
VARS: Final = "vars"
OUTPUTS: Final = "outputs"
DEPTH_MAX: Final = 12

Place: TypeAlias = tuple[str, str]
"""A workflow (the top one, or one by its pinned name), and the source of a value: inputs, vars, or a step by name."""
Items: TypeAlias = Mapping[str, Path | None]
"""For each loop around a place, by item name: the path of the list that it iterates over."""

_only = re.compile(r"^\{\{-?\s*(.+?)\s*-?\}\}$", re.DOTALL)


class Relevant(Struct, frozen=True):
    """What to try at each place, what is read there, and which variables are read."""

    tries: Mapping[Place, Mapping[Path, tuple[Any, ...]]]
    reads: Mapping[Place, tuple[Path, ...]]
    readers: Mapping[Place, Mapping[str, bool]]
    """By value: the outermost steps that read it, or OUTPUTS; and whether control flow depends on it."""
    variables: tuple[str, ...]


def relevant(definition: Definition) -> Relevant:
    """Everything that the forks of a definition, and of those it inlines, depend on."""
    gathering = _Gathering(definition)
    gathering.gather()
    tries = {place: {path: tuple(known) for path, known in paths.items()} for place, paths in gathering.found.items()}
    reads = {place: tuple(paths) for place, paths in gathering.reads.items()}
    return Relevant(tries, reads, gathering.readers, tuple(gathering.variables))


class _Gathering:
    def __init__(self, definition: Definition) -> None:
        self.scopes: Mapping[str, Definition] = {TOP: definition, **definition.pinned}
        self.found: dict[Place, dict[Path, dict[Any, None]]] = {}
        self.reads: dict[Place, dict[Path, None]] = {}
        self.readers: dict[Place, dict[str, bool]] = {}
        self.variables: dict[str, None] = {}
        self.calls: list[tuple[str, Call, Items]] = []
        self.named: dict[Place, Step] = {}
        for scope, one in self.scopes.items():
            for name, step, items in _placed(one.steps, "", {}):
                self.named[scope, name] = step
                if isinstance(step.work, Call):
                    self.calls.append((scope, step.work, items))

    def gather(self) -> None:
        for scope, one in self.scopes.items():
            for name, step, items in _placed(one.steps, "", {}):
                for path, tries in _hints(step):
                    self.note(scope, path, tries, items)
                names = (INPUTS, VARS, "steps", "run", "output", "index", *items)
                for source in _conditions(step):
                    self._read(scope, name, _paths(f"{{{{ {source} }}}}", names), items, decides=True)
                for value in _texts(step):
                    decides = isinstance(step.work, Call)
                    self._read(scope, name, _paths(value, names), items, decides=decides)
            for source in one.outputs.values():
                self._read(scope, OUTPUTS, _paths(f"{{{{ {source} }}}}", (INPUTS, VARS, "steps", "run")), {})

    def _read(self, scope: str, reader: str, paths: Iterable[Path], items: Items, *, decides: bool = False) -> None:
        first = reader.split(".")[0]
        for path in paths:
            self.note(scope, path, (), items)
            whose = self._owner(path)
            if whose:
                known = self.readers.setdefault((scope, whose), {})
                known[first] = decides or known.get(first, False)

    def _owner(self, path: Path) -> str:
        """The source of the value at a path: `inputs.name`, `vars.name`, or a step."""
        if path[0] in {INPUTS, VARS}:
            return ".".join(map(str, path[:2]))
        end = next((at for at, key in enumerate(path) if key in {"output", "status"}), 0)
        return ".".join(map(str, path[1:end])) if path[0] == "steps" else ""

    def _note_variable(self, path: Path) -> None:
        if path[:1] == (VARS,) and len(path) > 1:
            self.variables[str(path[1])] = None

    def note(self, scope: str, path: Path, tries: tuple[Any, ...], items: Items, depth: int = 0) -> None:
        """Note what to try at a path, at the place that its value comes from."""
        if depth > DEPTH_MAX or not path:
            return
        match path[0]:
            case "vars":
                self._note_variable(path)
                self._keep((TOP, VARS), path[1:], tries)
            case "inputs":
                self._keep((scope, INPUTS), path[1:], tries)
                self._note_given(scope, path, tries, depth)
            case "steps":
                self._note_output(scope, path[1:], tries, depth)
            case item:
                source = items.get(str(item)) or ()
                self.note(scope, (*source, EACH, *path[1:]) if source else (), tries, items, depth + 1)

    def _note_output(self, scope: str, path: Path, tries: tuple[Any, ...], depth: int) -> None:
        end = path.index("output") if "output" in path else len(path)
        name, rest = ".".join(map(str, path[:end])), path[end + 1 :]
        step = self.named.get((scope, name))
        if step is not None and isinstance(step.work, Call):
            self._note_inlined_output(step.work.workflow, rest, tries, depth)
        elif step is not None and end < len(path) and isinstance(step.work, Prompt | Tool):
            self._keep((scope, name), rest, tries)

    def _note_inlined_output(self, scope: str, path: Path, tries: tuple[Any, ...], depth: int) -> None:
        """Note the values inside an inlined workflow that its output depends on."""
        if scope in self.scopes and path:
            inner = path_in(self.scopes[scope].outputs.get(str(path[0]), "")) or ()
            self.note(scope, (*inner, *path[1:]) if inner else (), tries, {}, depth + 1)

    def _note_given(self, scope: str, path: Path, tries: tuple[Any, ...], depth: int) -> None:
        """Note the values that an input of an inlined workflow depends on, at each of its calls."""
        for caller, call, items in self.calls:
            given = call.with_.get(str(path[1])) if call.workflow == scope and path[1:] else None
            only = _only.match(given) if isinstance(given, str) else None
            inner = path_in(only[1]) if only else None
            if inner is not None:
                self.note(caller, (*inner, *path[2:]), tries, items, depth + 1)

    def _keep(self, place: Place, path: Path, tries: tuple[Any, ...]) -> None:
        self.reads.setdefault(place, {})[path] = None
        if tries:
            self.found.setdefault(place, {}).setdefault(path, {}).update(dict.fromkeys(tries))


def _placed(steps: tuple[Step, ...], prefix: str, items: Items) -> Iterator[tuple[str, Step, Items]]:
    for step in steps:
        name = prefix + step.id
        yield name, step, items
        inner = {**items, step.work.as_: path_in(step.work.items)} if isinstance(step.work, Each) else items
        yield from _placed(step.body, f"{name}.", inner)


def _conditions(step: Step) -> Iterator[str]:
    """The expressions that decide the control flow."""
    rounds = (step.work.repeat.until, step.work.repeat.while_) if isinstance(step.work, Repeat) else ()
    items = (step.work.items,) if isinstance(step.work, Each) else ()
    yield from filter(None, (step.when, *rounds, *items))


def _hints(step: Step) -> list[Hint]:
    conditions = list(_conditions(step))
    if isinstance(step.work, Each):
        *conditions, items = conditions
        return [*(hint for source in conditions for hint in condition_hints(source)), *list_hints(items)]
    return [hint for source in conditions for hint in condition_hints(source)]


def _texts(step: Step) -> Iterator[Any]:
    for work in filter(None, (step.work, step.undo)):
        for key in ("prompt", "args", "approve", "with_"):
            if (value := getattr(work, key, None)) is not None:
                yield value


def _paths(value: Any, names: Iterable[str]) -> tuple[Path, ...]:
    if not has_templates(value):
        return ()
    try:
        return tuple(compile_value(value, dict.fromkeys(names, ANY)).paths)
    except Invalid:
        return ()
