"""Conditions: from their objects ({var, equals, gt, and, ...}) to an expression of ours.

Their equality is lenient about case, numbers and booleans, and so is what comes out of here. Their variables count as
false when they are not set; ours are asked whether they exist. What they would silently take for false because it
can't be read is a fault here. One value against one variable is equality.py's work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from handrail.domain.check import Path
from handrail.domain.errors import Invalid
from handrail.domain.json import Json
from handrail.domain.suggestion import did_you_mean
from handrail.library.schema_words import described
from handrail.library.workrail.equality import (
    Subject,
    among,
    contained,
    counted,
    different,
    equal,
    is_word,
    matched,
    ordered,
    truthy,
    worded,
)
from handrail.library.workrail.literals import literal
from handrail.library.workrail.naming import Names
from handrail.library.workrail.noting import Notes

COMPOSED: Final = ("and", "or", "not")
ORDERS: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
OPERATORS: Final[Mapping[str, Callable[[Subject, Any], str]]] = {
    "equals": equal,
    "not_equals": different,
    "gt": ordered(">"),
    "gte": ordered(">="),
    "lt": ordered("<"),
    "lte": ordered("<="),
    "in": among,
    "contains": contained,
    "startsWith": worded("starts_with"),
    "endsWith": worded("ends_with"),
    "matches": matched,
}


class Read(Struct, frozen=True):
    """A variable that a condition looks at, and what it is compared with, in words."""

    name: str
    sought: tuple[str, ...] = ()


class Asked(Struct, frozen=True):
    """A condition as an expression, and the variables that must be set for it."""

    source: str
    reads: tuple[Read, ...] = ()

    def negated(self) -> Asked:
        """The opposite."""
        return Asked(f"not ({self.source})", self.reads)

    def joined(self, other: Asked | None, word: str = "and") -> Asked:
        """Both, or one of the two."""
        if other is None:
            return self
        return Asked(f"({self.source}) {word} ({other.source})", (*self.reads, *other.reads))


class Unclear(Exception):
    """A condition whose meaning is unknown."""

    def __init__(self, message: str, path: Path, fix: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.fix = fix


def asked(condition: Json, names: Names, path: Path, notes: Notes) -> Asked | None:
    """The condition as an expression; None if there is none, or it is a fault."""
    if condition is None or condition == {}:
        return None  # no condition: it always holds
    try:
        return _Translator(names, notes).translate(condition, path)
    except Unclear as unclear:
        notes.fault(unclear.path, str(unclear), unclear.fix)
        return None


def not_texts(value: Json) -> frozenset[str]:
    """The variables that are, anywhere in a file, compared with something else than words."""
    found: set[str] = set()
    pending: list[Any] = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, list | tuple):
            pending += one
        elif isinstance(one, Mapping):
            pending += one.values()
            name = one.get("var")
            if isinstance(name, str) and not all(map(is_word, _compared_with(one))):
                found.add(name.strip())
    return frozenset(found)


def _compared_with(condition: Mapping[str, Any]) -> list[Any]:
    """All that a condition compares its variable with; null if it only asks for the variable."""
    used = [condition[key] for key in OPERATORS if key in condition]
    return [item for one in used for item in (one if isinstance(one, list | tuple) else [one])] or [None]


class _Translator:
    """Translates one condition."""

    def __init__(self, names: Names, notes: Notes) -> None:
        self.names = names
        self.notes = notes

    def translate(self, condition: Json, path: Path) -> Asked:
        if not isinstance(condition, Mapping):
            raise Unclear(
                f"a condition is an object, not {described(condition)}", path, "write {var: ..., equals: ...}"
            )
        self._check_keys(condition, path)
        parts = [self._composed(condition, key, path) for key in COMPOSED if key in condition]
        parts += self._compared(condition, path)
        if not parts:
            raise Unclear("the condition asks nothing", path, "write {var: ..., equals: ...}")
        if len(parts) > 1:
            self.notes.note(path, "WorkRail looks only at the first part of this condition; here all parts count")
        return _all(parts, "and")

    def _check_keys(self, condition: Mapping[str, Any], path: Path) -> None:
        known = ("var", *COMPOSED, *OPERATORS)
        for key in condition:
            if key not in known:
                fix = did_you_mean(key, known)
                raise Unclear(f"`{key[:60]}` is not something that a condition can ask", (*path, key), fix)
        if "var" not in condition and (lost := next((key for key in condition if key in OPERATORS), "")):
            raise Unclear(f"of which variable is `{lost}` asked?", path, "add `var`")

    def _composed(self, condition: Mapping[str, Any], key: str, path: Path) -> Asked:
        value, here = condition[key], (*path, key)
        if key == "not":
            return self.translate(value, here).negated()
        if not isinstance(value, list | tuple):
            raise Unclear(f"`{key}` needs a list of conditions, not {described(value)}", here)
        if not value:
            return Asked("true" if key == "and" else "false")
        return _all([self.translate(item, (*here, index)) for index, item in enumerate(value)], key)

    def _compared(self, condition: Mapping[str, Any], path: Path) -> list[Asked]:
        if "var" not in condition:
            return []
        name = condition["var"]
        if not isinstance(name, str) or not name.strip(". "):
            raise Unclear(f"`var` is the name of a variable, not {described(name)}", (*path, "var"))
        used = [key for key in OPERATORS if key in condition]
        if not used:
            return [self._asked(name.strip(), None, None, (*path, "var"))]
        return [self._asked(name.strip(), key, condition[key], (*path, key)) for key in used]

    def _asked(self, name: str, operator: str | None, value: Json, path: Path) -> Asked:
        counter = self.names.counter(name)
        try:
            if counter is not None:
                return Asked(counted(operator, value, counter.ahead))
            subject = Subject(self.names.path(name), name not in self.names.not_texts)
            source = OPERATORS[operator](subject, value) if operator else truthy(subject)
        except Invalid as error:
            raise Unclear(str(error), path) from None
        if not self.names.is_variable(name):
            return Asked(source)
        return Asked(source, (Read(name, _sought(operator, value)),))


def _all(parts: list[Asked], word: str) -> Asked:
    if len(parts) == 1:
        return parts[0]
    source = f" {word} ".join(f"({part.source})" if " " in part.source else part.source for part in parts)
    return Asked(source, tuple(read for part in parts for read in part.reads))


def _sought(operator: str | None, value: Json) -> tuple[str, ...]:
    """What a later step looks for, as an agent would say it."""
    if operator in (None, "matches"):
        return ()
    items = value if isinstance(value, list | tuple) else [value]
    words = [literal(item) for item in items if isinstance(item, str | int | float)]
    return tuple(f"{ORDERS[operator]} {word}" if operator in ORDERS else word for word in words)
