"""Scripts: what everybody does in a rehearsed run, and what is expected to come of it. Values and their lookup.

Pure. Reading them from a file is library/script.py's work; following one is walk.py's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from handrail.domain.definition import Call, Definition, Step
from handrail.domain.path import UNDO

EXHAUSTED: Final = object()
"""What a list of answers gives when all have been used."""

_round = re.compile(r"\[\d+\]")


class Expected(Struct, frozen=True, kw_only=True):
    """What a test expects; None where it says nothing, empty where it says: nothing of that kind."""

    end: str | None = None
    path: tuple[str, ...] | None = None
    skipped: tuple[str, ...] | None = None
    findings: Mapping[str, tuple[str, ...]] | None = None
    undone: tuple[str, ...] | None = None
    outputs: Mapping[str, Any] | None = None


class Script(Struct, frozen=True, kw_only=True):
    """One test of a workflow; steps are named without their rounds: `look.read`, `tag!undo`."""

    name: str
    inputs: Mapping[str, Any] = {}
    outputs: Mapping[str, Any] = {}
    outcomes: Mapping[str, Any] = {}
    tools: Mapping[str, Any] = {}
    approvals: Mapping[str, Any] = {}
    vars: Mapping[str, Any] = {}
    confirmed: bool | Mapping[str, bool] = True
    expect: Expected = Expected()


class Answers:
    """What a script says for each step, taken one after the other: `try` for tries, `each` for rounds."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self._said = said
        self._places: dict[str, int] = {}
        self._tries: dict[str, int] = {}
        self.asked: set[str] = set()

    def has(self, path: str) -> bool:
        """Whether the script says anything for a step."""
        return path in self._said or plain(path) in self._said

    def next(self, path: str, default: Any = None) -> Any:
        """The next thing that the script says for a step; EXHAUSTED if its list has no more."""
        name = path if path in self._said else plain(path)
        if name not in self._said:
            return default
        self.asked.add(name)
        return self._next_try(path, self._in_round(name, path))

    def tries_left(self, path: str) -> int:
        """How many more tries the script has for the step in this round."""
        name = path if path in self._said else plain(path)
        told = listed(self._in_round(name, path), "try") if name in self._said else None
        return max(0, len(told) - self._tries.get(path, 0)) if told is not None else 0

    def _in_round(self, name: str, path: str) -> Any:
        """What is said for this round: each path takes its own place in the list when it first comes."""
        told = listed(self._said[name], "each")
        if told is None:
            return self._said[name]
        if path not in self._places:
            self._places[path] = sum(1 for known in self._places if plain(known) == plain(path))
        place = self._places[path]
        return told[place] if place < len(told) else EXHAUSTED

    def _next_try(self, path: str, said: Any) -> Any:
        told = listed(said, "try")
        if told is None:
            return said
        number = self._tries.get(path, 0)
        self._tries[path] = number + 1
        return told[number] if number < len(told) else EXHAUSTED


def listed(value: Any, word: str) -> list[Any] | None:
    """The list of a `{word: [...]}` that says nothing else; None if it is something else."""
    if isinstance(value, Mapping) and set(value) == {word} and isinstance(value[word], list | tuple):
        return list(value[word])
    return None


def plain(path: str) -> str:
    """A path without the numbers of its rounds: `look[2].read` is `look.read`."""
    return _round.sub("", path)


def is_named(name: str, path: str) -> bool:
    """Whether a name in a script means this path: exactly, or in any round."""
    return name in {path, plain(path)}


def names_in(definition: Definition) -> Iterator[tuple[str, Step]]:
    """Every step by the name that a script calls it, those of inlined workflows included."""
    yield from _names(definition, definition.steps, "")


def _names(definition: Definition, steps: tuple[Step, ...], prefix: str) -> Iterator[tuple[str, Step]]:
    for step in steps:
        name = prefix + step.id
        yield name, step
        yield from _names(definition, step.body, f"{name}.")
        for call, inner in ((step.work, f"{name}."), (step.undo, f"{name}{UNDO}.")):
            if isinstance(call, Call) and call.workflow in definition.pinned:
                yield from _names(definition, definition.pinned[call.workflow].steps, inner)
