"""Their engine: a model of how WorkRail chooses the next step, to compare our runs with. Not a test file.

It looks for the next step from the first one on, each time; a loop is looked at first while one is open. Before each
step of a round it asks whether the round may go on, and after the most rounds it leaves the loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Data = dict[str, Any]

TRUE, FALSE = ("true", "1", "yes"), ("false", "0", "no")


def is_met(condition: Any, given: Mapping[str, Any]) -> bool:
    """Whether they take a condition for true."""
    if not isinstance(condition, dict) or not condition:
        return True
    return _is_met(condition, given)


def _is_met(condition: Data, given: Mapping[str, Any]) -> bool:
    if "var" in condition:
        value = given.get(condition["var"])
        for key, ask in OPERATORS.items():
            if key in condition:
                return bool(ask(value, condition[key]))
        return value not in (False, 0, "", None) or value == []
    if "and" in condition:
        return all(_is_met(one, given) for one in condition["and"])
    if "or" in condition:
        return any(_is_met(one, given) for one in condition["or"])
    return not _is_met(condition["not"], given)


def alike(one: Any, other: Any) -> bool:
    """Their lenient equality."""
    if one is None or other is None:
        return one is other
    if isinstance(one, str) and isinstance(other, str):
        return one.strip().lower() == other.strip().lower()
    if isinstance(one, bool) and isinstance(other, str):
        one, other = other, one
    if isinstance(one, str) and isinstance(other, bool):
        return one.strip().lower() in (TRUE if other else FALSE)
    if isinstance(one, str) != isinstance(other, str) and not isinstance(one, list) and not isinstance(other, list):
        try:
            return float(one) == float(other)
        except ValueError:
            return False
    return type(one) is type(other) and not isinstance(one, list) and one == other


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return "" if value is None else str(value).strip().lower()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ordered(ask: Any) -> Any:
    return lambda value, bound: _is_number(value) and ask(value, bound)


OPERATORS: Mapping[str, Any] = {
    "equals": alike,
    "not_equals": lambda one, other: not alike(one, other),
    "gt": _ordered(lambda one, other: one > other),
    "lte": _ordered(lambda one, other: one <= other),
    "contains": lambda one, part: part.strip().lower() in _text(one),
    "startsWith": lambda one, part: _text(one).startswith(part.strip().lower()),
}


class TheirEngine:
    """One run of theirs: `next` is the path of the step to do, `done` says that it is done."""

    def __init__(self, workflow: Data, given: Data) -> None:
        self.steps = workflow["steps"]
        self.given = given
        self.completed: set[str] = set()
        self.loop: Data | None = None
        self.round = 0
        self.place = 0
        self.within: set[str] = set()

    def next(self) -> str:
        """The path of the next step; empty if there is none."""
        while True:
            if self.loop is not None:
                found = self._in_loop(self.loop)
                if found:
                    return found
                if self.loop is not None:
                    continue
            step = next((one for one in self.steps if self._is_due(one)), None)
            if step is None:
                return ""
            if step.get("type") != "loop":
                return str(step["id"])
            self.loop, self.round, self.place, self.within = step, 0, 0, set()

    def done(self, path: str, given: Mapping[str, Any]) -> None:
        """A step is done, and has set these variables."""
        self.given.update(given)
        (self.within if self.loop is not None else self.completed).add(path)

    def _is_due(self, step: Data) -> bool:
        return step["id"] not in self.completed and is_met(step.get("runCondition"), self.given)

    def _in_loop(self, loop: Data) -> str:
        if not self._may_enter(loop, self.round):
            return self._leave(loop)
        seen = {**self.given, "currentIteration": self.round + 1}
        for place in range(self.place, len(loop["body"])):
            step = loop["body"][place]
            path = f"{loop['id']}[{self.round}].{step['id']}"
            if path not in self.within and is_met(step.get("runCondition"), seen):
                self.place = place
                return path
        if self.round + 1 >= loop["loop"]["maxIterations"] or not self._may_enter(loop, self.round + 1):
            return self._leave(loop)
        self.round, self.place = self.round + 1, 0
        return ""

    def _leave(self, loop: Data) -> str:
        self.completed.add(loop["id"])
        self.loop = None
        return ""

    def _may_enter(self, loop: Data, number: int) -> bool:
        config = loop["loop"]
        match config["type"]:
            case "for":
                return bool(number < config["count"])
            case "forEach":
                return number < len(self.given[config["items"]])
            case kind:
                seen = {**self.given, "currentIteration": number + 1}
                return is_met(config["condition"], seen) is (kind == "while")
