"""Converts conditions of WorkRail ({var, equals, gt, and, ...}) to expressions.

WorkRail's equality ignores case and mixes numbers, booleans and strings; the expressions do the same. A variable that
is not set is false there; here it is tested with `exists`. A condition that WorkRail can't read is false there, and an
error here. Old files have conditions that are texts, which WorkRail does not read: they count as true, and are shown.
equality.py compares one variable with one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from handrail.domain.checks.finding import Path
from handrail.domain.errors import Invalid
from handrail.domain.json import Json
from handrail.domain.suggestion import did_you_mean
from handrail.library.schemas.schema_words import described
from handrail.library.workrail.equality import (
    among,
    counted,
    different,
    equal,
    matched,
    ordered,
    truthy,
    worded,
)
from handrail.library.workrail.literals import literal
from handrail.library.workrail.naming import Names
from handrail.library.workrail.noting import Notes, Reader

COMPOSED: Final = ("and", "or", "not")
ORDERS: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
OPERATORS: Final[Mapping[str, Callable[[str, Any], str]]] = {
    "equals": equal,
    "not_equals": different,
    "gt": ordered(">"),
    "gte": ordered(">="),
    "lt": ordered("<"),
    "lte": ordered("<="),
    "in": among,
    "contains": worded("contains"),
    "startsWith": worded("starts_with"),
    "endsWith": worded("ends_with"),
    "matches": matched,
}


class Read(Struct, frozen=True):
    """A variable that a condition reads, and what it is compared with, as text."""

    name: str
    sought: tuple[str, ...] = ()


class Condition(Struct, frozen=True):
    """A condition as an expression, and the variables that must be set for it."""

    source: str
    reads: tuple[Read, ...] = ()

    def negated(self) -> Condition:
        """The opposite."""
        return Condition(f"not ({self.source})", self.reads)

    def joined(self, other: Condition | None, word: str = "and") -> Condition:
        """This condition and another, joined by `and` or `or`."""
        if other is None:
            return self
        return Condition(f"({self.source}) {word} ({other.source})", (*self.reads, *other.reads))


class UnclearCondition(Exception):
    """A condition whose meaning is unknown."""

    def __init__(self, message: str, path: Path, fix: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.fix = fix


def condition_text(holder: Reader, key: str, says: str) -> str:
    """A condition of an old file that is a string, for the agent to judge; empty if it is none."""
    condition = holder.value.get(key)
    if not isinstance(condition, str) or not condition.strip():
        return ""
    message = "WorkRail does not read a condition that is a string: it counts as true, and is shown to the agent"
    holder.notes.note(holder.at(key), message, "write {var: ..., equals: ...}")
    return f"{says}: {condition.strip()}"


def run_condition_of(step: Reader, names: Names) -> Condition | None:
    """When a step is done; None if always, or if it is an error."""
    condition = step.value.get("runCondition")
    return None if isinstance(condition, str) else condition_of(condition, names, step.at("runCondition"), step.notes)


def condition_of(condition: Json, names: Names, path: Path, notes: Notes) -> Condition | None:
    """The condition as an expression; None if there is none, or if it is an error."""
    if condition is None or condition == {}:
        return None  # no condition: always true
    try:
        return _Translator(names, notes).translate(condition, path)
    except UnclearCondition as unclear:
        notes.fault(unclear.path, str(unclear), unclear.fix)
        return None


class _Translator:
    """Translates one condition."""

    def __init__(self, names: Names, notes: Notes) -> None:
        self.names = names
        self.notes = notes

    def translate(self, condition: Json, path: Path) -> Condition:
        if not isinstance(condition, Mapping):
            raise UnclearCondition(
                f"a condition is an object, not {described(condition)}", path, "write {var: ..., equals: ...}"
            )
        self._check_keys(condition, path)
        parts = [self._composed(condition, key, path) for key in COMPOSED if key in condition]
        parts += self._compared(condition, path)
        if not parts:
            raise UnclearCondition("the condition is empty", path, "write {var: ..., equals: ...}")
        if len(parts) > 1:
            self.notes.note(path, "WorkRail looks only at the first part of this condition; here all parts count")
        return _all(parts, "and")

    def _check_keys(self, condition: Mapping[str, Any], path: Path) -> None:
        known = ("var", *COMPOSED, *OPERATORS)
        for key in condition:
            if key in known:
                continue
            fix = did_you_mean(key, known)
            if "var" not in condition or fix.startswith("did"):  # a typo, or nothing that has a meaning there
                raise UnclearCondition(f"`{key[:60]}` is not a key of a condition", (*path, key), fix)
            message = (
                f"WorkRail does not know `{key[:60]}`: it asks whether the variable is set and not false, and so here"
            )
            self.notes.note((*path, key), message, "write one of the operators that it knows")
        if "var" not in condition and (lost := next((key for key in condition if key in OPERATORS), "")):
            raise UnclearCondition(f"`{lost}` has no variable", path, "add `var`")

    def _composed(self, condition: Mapping[str, Any], key: str, path: Path) -> Condition:
        value, here = condition[key], (*path, key)
        if key == "not":
            return self.translate(value, here).negated()
        if not isinstance(value, list | tuple):
            raise UnclearCondition(f"`{key}` needs a list of conditions, not {described(value)}", here)
        if not value:
            return Condition("true" if key == "and" else "false")
        return _all([self.translate(item, (*here, index)) for index, item in enumerate(value)], key)

    def _compared(self, condition: Mapping[str, Any], path: Path) -> list[Condition]:
        if "var" not in condition:
            return []
        name = condition["var"]
        if not isinstance(name, str) or not name.strip(". "):
            raise UnclearCondition(f"`var` is the name of a variable, not {described(name)}", (*path, "var"))
        used = [key for key in OPERATORS if key in condition]
        if not used:
            return [self._compare(name.strip(), None, None, (*path, "var"))]
        return [self._compare(name.strip(), key, condition[key], (*path, key)) for key in used]

    def _compare(self, name: str, operator: str | None, value: Json, place: Path) -> Condition:
        counter = self.names.counter(name)
        try:
            if counter is not None:
                return Condition(counted(operator, value, counter.ahead))
            path = self.names.path(name)
            source = OPERATORS[operator](path, value) if operator else truthy(path)
        except Invalid as error:
            raise UnclearCondition(str(error), place) from None
        if not self.names.is_variable(name):
            return Condition(source)
        return Condition(source, (Read(name, _sought(operator, value)),))


def _all(parts: list[Condition], word: str) -> Condition:
    if len(parts) == 1:
        return parts[0]
    source = f" {word} ".join(f"({part.source})" if " " in part.source else part.source for part in parts)
    return Condition(source, tuple(read for part in parts for read in part.reads))


def _sought(operator: str | None, value: Json) -> tuple[str, ...]:
    """The values that a later step expects, as text for the agent."""
    if operator in (None, "matches"):
        return ()
    items = value if isinstance(value, list | tuple) else [value]
    words = [literal(item) for item in items if isinstance(item, str | int | float)]
    return tuple(f"{ORDERS[operator]} {word}" if operator in ORDERS else word for word in words)
