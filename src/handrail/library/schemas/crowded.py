"""Limits how many names that can't be right are looked at: the validator's time grows with their square.

It reports each such name with all names around it. So only as many are left in the value that it sees as are ever
listed; the rest is one flaw. A document without so many is not touched."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.json import Json
from handrail.library.documents.document import FINDINGS_MAX

NAMED: Final = ("inputs", "outputs")
"""Objects whose keys are names of the author's choice."""
PATH_MAX: Final = 100
"""How deep steps in steps are looked into; deeper ones are refused for that."""


class CrowdedKeys:
    """Leaves out what is too much, of one document."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        """`definitions` are those of the schema of workflows."""
        self._step: Mapping[str, Any] = definitions["step_keys"]["properties"]
        self._undo: Mapping[str, Any] = definitions["undo"]["properties"]
        self._name = re.compile(definitions["variable"]["pattern"])
        self._length_max: int = definitions["variable"]["maxLength"]
        self._left = FINDINGS_MAX
        self._dropped = 0
        self.first: Path = ()
        """Where the first key is that was left out."""

    def looked_at(self, value: Json) -> Json:
        """The document with as many wrong names as are listed at most."""
        if not isinstance(value, dict):
            return value
        named = {
            key: self._kept(value[key], (key,), self._is_name) for key in NAMED if isinstance(value.get(key), dict)
        }
        steps = {"steps": self._steps(value["steps"], ("steps",))} if isinstance(value.get("steps"), list) else {}
        return {**value, **named, **steps} if self._dropped else value

    def flaws(self) -> list[Flaw]:
        """One flaw for all that was left out."""
        if not self._dropped:
            return []
        message = f"this key and {self._dropped - 1:,} more were not looked at: too many keys can't be right"
        fix = "fix the others first"
        return [Flaw(rule="size", severity=Severity.CRITICAL, path=self.first, message=message, fix=fix, on_key=True)]

    def _is_name(self, key: str) -> bool:
        return len(key) <= self._length_max and bool(self._name.search(key))

    def _steps(self, steps: list[Json], path: Path) -> list[Json]:
        if len(path) > PATH_MAX:
            return steps
        return [
            self._of_step(step, (*path, index)) if isinstance(step, dict) else step for index, step in enumerate(steps)
        ]

    def _of_step(self, step: dict[str, Json], path: Path) -> dict[str, Json]:
        kept = self._kept(step, path, self._step.__contains__)
        if isinstance(undo := kept.get("undo"), dict):
            kept = {**kept, "undo": self._kept(undo, (*path, "undo"), self._undo.__contains__)}
        if isinstance(inner := kept.get("steps"), list):
            kept = {**kept, "steps": self._steps(inner, (*path, "steps"))}
        return kept

    def _kept(self, held: dict[str, Json], path: Path, is_known: Callable[[str], bool]) -> dict[str, Json]:
        unknown = [key for key in held if not is_known(key)]
        dropped = set(unknown[self._left :])
        if dropped and not self._dropped:
            self.first = (*path, unknown[self._left])
        self._left = max(0, self._left - len(unknown))
        self._dropped += len(dropped)
        return {key: value for key, value in held.items() if key not in dropped} if dropped else held
