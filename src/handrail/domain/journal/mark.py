"""Marks: how far a store was read, whatever its places look like. Pure.

A store numbers its events in one or more lanes, in each from 1 without gaps. One writer needs one lane; many writers
that must not wait for each other need several. A mark says for each lane how many of its events are known. Callers keep
marks, compare them and pass them back; only stores know what lanes mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from handrail.domain.errors import Invalid

ONE_LANE: Final = 0
"""The lane of a store that has only one."""
LANES_MAX: Final = 1_024
"""How many lanes a mark may name: what a client sends is bounded by it."""
TEXT_LENGTH_MAX: Final = 32 * LANES_MAX

_number: Final = re.compile(r"[0-9]{1,18}")
_lanes: Final = re.compile(r"[1-9][0-9]{0,8}\.[1-9][0-9]{0,17}(?:-[1-9][0-9]{0,8}\.[1-9][0-9]{0,17})*")


class Mark(Struct, frozen=True):
    """How many events of each lane are known: those of one lane, or of several, sorted, none of them 0."""

    lanes: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, counts: Mapping[int, int]) -> Mark:
        """The mark with these counts by lane."""
        return cls(tuple(sorted((lane, count) for lane, count in counts.items() if count > 0)))

    @classmethod
    def at(cls, count: int) -> Mark:
        """The mark of a store with one lane."""
        return cls(((ONE_LANE, count),) if count > 0 else ())

    @property
    def events(self) -> int:
        """How many events are known."""
        return sum(count for _, count in self.lanes)

    @property
    def counts(self) -> dict[int, int]:
        """How many events are known, by lane."""
        return dict(self.lanes)

    @property
    def place(self) -> int:
        """The count in the one lane; 0 if nothing of it is known."""
        return next((count for lane, count in self.lanes if lane == ONE_LANE), 0)

    @property
    def text(self) -> str:
        """The mark as clients carry it: a number if there is one lane, and nothing that they should read if not."""
        if not self.lanes or (len(self.lanes) == 1 and self.lanes[0][0] == ONE_LANE):
            return str(self.place)
        return "-".join(f"{lane}.{count}" for lane, count in self.lanes)

    @property
    def json(self) -> int | str:
        """The mark as a value of JSON: a number as long as it is one."""
        text = self.text
        return int(text) if text.isdigit() else text

    def has(self, lane: int, number: int) -> bool:
        """Whether the event at this place of a lane is known."""
        return any(number <= count for known, count in self.lanes if known == lane)

    def covers(self, other: Mark) -> bool:
        """Whether everything that the other mark knows is known."""
        if self.lanes == other.lanes:
            return True
        counts = self.counts
        return all(counts.get(lane, 0) >= count for lane, count in other.lanes)

    def joined(self, other: Mark) -> Mark:
        """What one of two marks knows."""
        if not other.lanes:
            return self
        counts = self.counts
        return Mark.of({**counts, **{lane: max(count, counts.get(lane, 0)) for lane, count in other.lanes}})

    def shared(self, other: Mark) -> Mark:
        """What both of two marks know."""
        counts = self.counts
        return Mark.of({lane: min(count, counts.get(lane, 0)) for lane, count in other.lanes})

    def after(self, places: Iterable[tuple[int, int]]) -> Mark:
        """The mark when these places, each a lane and a number there, are known too: the next ones of their lanes."""
        return Mark.of({**self.counts, **dict(places)})

    def without_last(self, events: int) -> Mark:
        """The mark without about so many of the last events; exactly so many if there is one lane."""
        total = max(1, self.events)
        return Mark.of({lane: count - -(-events * count // total) for lane, count in self.lanes})


START: Final = Mark()
"""Nothing is known."""


def mark_from(text: str, what: str) -> Mark:
    """The mark in a string; Invalid if no store would have written it. `what` names where the string came from."""
    if _number.fullmatch(text):
        return Mark.at(int(text))
    is_short = len(text) <= TEXT_LENGTH_MAX and text.count("-") < LANES_MAX
    if not is_short or not _lanes.fullmatch(text):
        raise Invalid(f"{what} is no place of this store", hint="leave it out, and take a fresh snapshot")
    parts = (part.split(".") for part in text.split("-"))
    return Mark.of({int(lane): int(count) for lane, count in parts})
