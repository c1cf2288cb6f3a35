"""Asks the agent for the variables that later conditions read, in the prompts of the steps that should set them.

In WorkRail, agents set their context when a prompt mentions it. Here `vars` are submitted with a step: the steps whose
text names a variable ask for it, or else the last step before it is needed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from handrail.library.workrail.conditions import Read
from handrail.library.workrail.prompts import appended
from handrail.library.workrail.texts import bullets

SETTERS_MAX: Final = 20
"""How many steps ask for one variable at most: those nearest to where it is needed."""

_shown = re.compile(r"\{\{[^{}]*\}\}")
_word = re.compile(r"\w+")


class Slot(Struct, frozen=True):
    """A prompt step, and the original text that it was made from."""

    step: dict[str, Any]
    raw: str


class Use(Struct, frozen=True, kw_only=True):
    """A variable that is read; one of the slots from `first` to before `last` should set it."""

    read: Read
    first: int
    last: int
    is_shown: bool = False
    """Whether it is only shown in text: no condition depends on it."""

    @property
    def name(self) -> str:
        """The variable to set: the part before the first dot."""
        return self.read.name.partition(".")[0]


Wanted = dict[str, dict[str, None]]
"""Variables to set, each with the expected values."""


def request_variables(slots: Sequence[Slot], uses: Iterable[Use]) -> list[str]:
    """Add the needed variables to the prompts; returns those that must be set before the first step."""
    named = _named(slots)
    all_wanted: list[Wanted] = [{} for _ in slots]
    start: Wanted = {}
    for use in dict.fromkeys(uses):
        setters = _setters(named, use)
        for index in setters:
            _add(all_wanted[index], use)
        if not setters and not use.is_shown:
            _add(start, use)
    for slot, wanted in zip(slots, all_wanted, strict=True):
        if wanted:
            ask = f"Set these in `vars` when you submit this step; later steps read them:\n{bullets(_lines(wanted))}"
            slot.step["prompt"] = appended(slot.step["prompt"], [ask])
    return _lines(start)


def _named(slots: Sequence[Slot]) -> Mapping[str, list[int]]:
    """The slots in which each word occurs; placeholders do not count: showing a variable is no reason to set it."""
    found: dict[str, list[int]] = {}
    for index, slot in enumerate(slots):
        for word in dict.fromkeys(_word.findall(_shown.sub(" ", slot.raw))):
            found.setdefault(word, []).append(index)
    return found


def _setters(named: Mapping[str, Sequence[int]], use: Use) -> Sequence[int]:
    """The slots that should set a variable; none if there is no step before it is needed."""
    known = named.get(use.name, ())
    naming = known[bisect_left(known, use.first) : bisect_left(known, use.last)][-SETTERS_MAX:]
    if naming or use.is_shown:
        return naming
    return range(use.first, use.last)[-1:]


def _add(wanted: Wanted, use: Use) -> None:
    wanted.setdefault(use.name, {}).update(dict.fromkeys(use.read.sought))


def _lines(wanted: Wanted) -> list[str]:
    return [f"`{name}`" + (f" (expected: {' or '.join(words)})" if words else "") for name, words in wanted.items()]
