"""Scripts: what agents, tools and people do in a rehearsed run, and the expected result. Values and their lookup.

Pure. Scripts are read from files in library/test_script.py and followed in walk.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from handrail.domain.definition.model import Call, Definition, Step
from handrail.domain.run.step_path import UNDO

EXHAUSTED: Final = object()
"""Returned by a list of answers when all have been used."""

_round = re.compile(r"\[\d+\]")


class Expected(Struct, frozen=True, kw_only=True):
    """What a test expects; None where it says nothing, empty where it expects none."""

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
    """The answers of a script for each step, in order: `try` for tries, `each` for rounds."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self._said = said
        self._places: dict[str, int] = {}
        self._tries: dict[str, int] = {}
        self.asked: set[str] = set()

    def has(self, path: str) -> bool:
        """Whether the script has an answer for a step."""
        return path in self._said or plain(path) in self._said

    def next(self, path: str, default: Any = None) -> Any:
        """The next answer of the script for a step; EXHAUSTED if its list has no more."""
        name = path if path in self._said else plain(path)
        if name not in self._said:
            return default
        self.asked.add(name)
        return self._next_try(path, self._in_round(name, path))

    def tries_left(self, path: str) -> int:
        """How many tries the script has left for the step in this round."""
        name = path if path in self._said else plain(path)
        answers = listed(self._in_round(name, path), "try") if name in self._said else None
        return max(0, len(answers) - self._tries.get(path, 0)) if answers is not None else 0

    def _in_round(self, name: str, path: str) -> Any:
        """The answer for this round: each path gets the next place in the list when it is first asked for."""
        answers = listed(self._said[name], "each")
        if answers is None:
            return self._said[name]
        if path not in self._places:
            self._places[path] = sum(1 for known in self._places if plain(known) == plain(path))
        place = self._places[path]
        return answers[place] if place < len(answers) else EXHAUSTED

    def _next_try(self, path: str, said: Any) -> Any:
        answers = listed(said, "try")
        if answers is None:
            return said
        number = self._tries.get(path, 0)
        self._tries[path] = number + 1
        return answers[number] if number < len(answers) else EXHAUSTED


def listed(value: Any, word: str) -> list[Any] | None:
    """The list in `{word: [...]}` if there is nothing else in it; else None."""
    if isinstance(value, Mapping) and set(value) == {word} and isinstance(value[word], list | tuple):
        return list(value[word])
    return None


def plain(path: str) -> str:
    """A path without round numbers: `look[2].read` becomes `look.read`."""
    return _round.sub("", path)


def is_named(name: str, path: str) -> bool:
    """Whether a name in a script means this path: exactly, or in any round."""
    return name in {path, plain(path)}


def names_in(definition: Definition) -> Iterator[tuple[str, Step]]:
    """Every step by its name in scripts, including those of inlined workflows."""
    yield from _names(definition, definition.steps, "")


def _names(definition: Definition, steps: tuple[Step, ...], prefix: str) -> Iterator[tuple[str, Step]]:
    for step in steps:
        name = prefix + step.id
        yield name, step
        yield from _names(definition, step.body, f"{name}.")
        for call, inner in ((step.work, f"{name}."), (step.undo, f"{name}{UNDO}.")):
            if isinstance(call, Call) and call.workflow in definition.pinned:
                yield from _names(definition, definition.pinned[call.workflow].steps, inner)
