"""Needs: which variables a later condition reads, shown to the agent in the step that should set them.

WorkRail's agents set their context when a prompt mentions it. In ours `vars` are submitted with a step: the steps
whose text names a variable say so, or else the last step before it is needed."""

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
"""How many steps mention one variable: those nearest to where it is needed."""

_shown = re.compile(r"\{\{[^{}]*\}\}")
_word = re.compile(r"\w+")


class Slot(Struct, frozen=True):
    """A step for an agent, in the order in which they come, and the words it was made of."""

    step: dict[str, Any]
    raw: str


class Use(Struct, frozen=True, kw_only=True):
    """A variable that is read; one of the slots from `first` to before `last` should set it."""

    read: Read
    first: int
    last: int
    is_shown: bool = False
    """Whether it is only shown in a text, so that nothing depends on it."""

    @property
    def name(self) -> str:
        """The variable that is set; its parts are set with it."""
        return self.read.name.partition(".")[0]


Wish = dict[str, dict[str, None]]
"""Names to set, each with what is looked for."""


def tell_needs(slots: Sequence[Slot], uses: Iterable[Use]) -> list[str]:
    """Let the prompts ask for the variables that are needed; what must be set before all of them is given back."""
    named = _named(slots)
    wishes: list[Wish] = [{} for _ in slots]
    start: Wish = {}
    for use in dict.fromkeys(uses):
        setters = _setters(named, use)
        for index in setters:
            _add(wishes[index], use)
        if not setters and not use.is_shown:
            _add(start, use)
    for slot, wish in zip(slots, wishes, strict=True):
        if wish:
            ask = f"Set these in `vars` when you hand this in; what comes later looks at them:\n{bullets(_lines(wish))}"
            slot.step["prompt"] = appended(slot.step["prompt"], [ask])
    return _lines(start)


def _named(slots: Sequence[Slot]) -> Mapping[str, list[int]]:
    """In which slots each word stands; a text that only shows a variable has no reason to set it."""
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


def _add(wish: Wish, use: Use) -> None:
    wish.setdefault(use.name, {}).update(dict.fromkeys(use.read.sought))


def _lines(wish: Wish) -> list[str]:
    return [f"`{name}`" + (f" (looked for: {' or '.join(words)})" if words else "") for name, words in wish.items()]
