"""The trail: verifies all streams of a store at once, event by event, and against the checkpoints.

Pure: batches in, breaks out. engine/proving/audit.py reads the batches and checks everything else. Every event passes
through here, so the loop decodes no events and creates no objects."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from handrail.domain.journal.chain import GENESIS, Break, Record
from handrail.domain.journal.checkpoint import JOURNAL, Checkpoint, Order, shorter
from handrail.domain.journal.event import STORE_STREAM
from handrail.domain.journal.mark import ONE_LANE, Mark

NEVER: Final = 2**63
NO_LANE: Final = -1
_encode = msgspec.json.Encoder().encode
_sha256 = hashlib.sha256
FOUND_MAX: Final = 1_000


Row: TypeAlias = tuple[Any, ...]
"""A place in the store (lane, number there), then the fields of the record, of any type: they may be damaged."""


class Gap(Struct):
    """Unreadable places in the store, and why; explained once a stream is found to miss an event there."""

    first: int
    last: int
    reason: str
    is_explained: bool = False


class Trail:
    """Verifies the streams of a store in store order.

    With several lanes, what a checkpoint covers has to come before what it does not cover; events of a stream have to
    come in their order. A position is then the number of the event in this walk, else its place in the store."""

    def __init__(self, checkpoints: Sequence[Checkpoint] = ()) -> None:
        self.events = 0
        self.ends: dict[str, tuple[int, bytes, int]] = {}
        """By stream: the number of its last event, that event's hash, and its position."""
        self.store: list[Record] = []
        """The events of the store's own stream."""
        self.erased: list[tuple[int, Record]] = []
        self.removed: dict[str, Any] = {}
        """By stream whose events are archived: the digest of the hashes that are left of them."""
        self._found: dict[tuple[str, int], tuple[int, str]] = {}
        self._gaps: list[Gap] = []
        self._checkpoints = list(reversed(checkpoints))
        self._due = self._next_due()
        self._sealed = 0
        self._known: dict[str, int] = {}
        self._places: dict[int, int] = {}
        self._orders: dict[int, Order] = {}

    @property
    def mark(self) -> Mark:
        """How far the store was followed."""
        return Mark.of(self._places)

    @property
    def breaks(self) -> list[tuple[int, Break]]:
        """All breaks with their places, in store order."""
        found = [(place, Break(stream, n, reason)) for (stream, n), (place, reason) in self._found.items()]
        gaps = [(gap.first, Break(JOURNAL, gap.first, gap.reason)) for gap in self._gaps if not gap.is_explained]
        return sorted(found + gaps, key=lambda one: one[0])

    def follow(self, batch: Sequence[Row]) -> None:
        """Verify the next events."""
        ends, lane, place, due = self.ends, NO_LANE, 0, NEVER
        hashes: list[bytes] = []
        at_place = self.events
        for row in batch:
            row_lane, seq, stream, n, _, kind, _, _, _, _, _, _, event_hash, erased = row
            if row_lane != lane:
                self._leave(lane, place, hashes)
                hashes = []
                lane, place, due = row_lane, self._places.get(row_lane, 0), self._due_in(row_lane)
            at_place = seq if lane == ONE_LANE else at_place + 1
            if seq != place + 1:
                self._note_gap(lane, place, seq, at_place)
            # A checkpoint is compared exactly where it was made: later events must not change the ends it speaks of.
            if seq > due:
                self._leave(lane, place, hashes)
                hashes = []
                self._judge_due(lane, seq)
                due = self._due_in(lane)
            place = seq
            # SQLite stores any type in a damaged or hand-edited row; such a row can't even be named by its stream.
            if type(stream) is not str or type(n) is not int or type(event_hash) is not bytes:
                self._add_gap(Gap(at_place, at_place, f"the event at {_place_text(lane, seq)} is damaged"))
                continue
            last_n, prev, _ = ends.get(stream, _BEFORE)
            if n != last_n + 1:
                self._note_number(stream, n, at_place, last_n)
                if n <= last_n:
                    continue  # it was moved after its successors: the stream's end stays where it is
            elif kind is None:  # only the hash is left: the event that says so vouches for it, and checkpoints
                self.removed.setdefault(stream, _sha256()).update(event_hash)
            elif not _is_chained(prev, row):
                self._note(stream, n, at_place, "its hash does not match its content and place")
            # Also after a break, so that one changed event is one break and not one for every event behind it.
            ends[stream] = (n, event_hash, at_place)
            hashes.append(event_hash)
            if stream == STORE_STREAM:
                self.store.append(Record(*row[2:]))
            if erased is not None:
                self.erased.append((at_place, Record(*row[2:])))
        self._leave(lane, place, hashes)
        self.events += len(batch)

    def skip(self, reason: str) -> None:
        """Note that the next place of a store with one lane can't be read."""
        self._places[ONE_LANE] = place = self._places.get(ONE_LANE, 0) + 1
        self._add_gap(Gap(place, place, reason))

    def finish(self) -> None:
        """Note the end of the store: everything sealed that was not seen is missing."""
        while self._checkpoints and self.mark.covers(self._checkpoints[-1].mark):
            self._judge_next()
        for checkpoint in reversed(self._checkpoints):
            reason = shorter(self.events, checkpoint.events, f"checkpoint {checkpoint.number}")
            is_named = False
            for stream, n, _ in checkpoint.heads:
                end_n, _, end_place = self.ends.get(stream, _BEFORE)
                if end_n < n:
                    is_named = True
                    self._note_missing(stream, end_n + 1, (end_place, NEVER), reason)
            if not is_named and not self._found:
                self._note(JOURNAL, self._position + 1, self._position + 1, reason)
        self._checkpoints.clear()

    @property
    def _position(self) -> int:
        """The position of the last event."""
        return self._places.get(ONE_LANE, self.events)

    def _next_due(self) -> dict[int, int] | None:
        """How far the next checkpoint goes, by lane."""
        return self._checkpoints[-1].mark.counts if self._checkpoints else None

    def _due_in(self, lane: int) -> int:
        return NEVER if self._due is None else self._due.get(lane, 0)

    def _leave(self, lane: int, place: int, hashes: list[bytes]) -> None:
        """Note how far a lane was followed."""
        if lane != NO_LANE:
            self._places[lane] = place
        if hashes:
            self._orders.setdefault(lane, Order()).add(hashes)

    def _note(self, stream: str, n: int, place: int, reason: str) -> None:
        if len(self._found) < FOUND_MAX:
            self._found.setdefault((stream, n), (place, reason))  # keep the first reason: it is closest to the cause

    def _note_gap(self, lane: int, place: int, seq: int, position: int) -> None:
        of_lane = _of_lane(lane)
        if seq <= place:
            reason = f"place {seq} follows place {place}{of_lane}: the store is out of order"
            self._note(JOURNAL, seq, place if lane == ONE_LANE else position, reason)
            return
        is_one = seq == place + 2
        places = f"place {place + 1}{of_lane} is" if is_one else f"places {place + 1} to {seq - 1}{of_lane} are"
        first, last = (place + 1, seq - 1) if lane == ONE_LANE else (position, position)
        self._add_gap(Gap(first, last, f"{places} empty: an event was removed or moved"))

    def _add_gap(self, gap: Gap) -> None:
        if len(self._gaps) < FOUND_MAX:
            self._gaps.append(gap)

    def _note_number(self, stream: str, n: int, seq: int, last_n: int) -> None:
        if n > last_n + 1:
            _, _, place = self.ends.get(stream, _BEFORE)
            self._note_missing(stream, last_n + 1, (place, seq), f"it is missing: {n} follows {last_n}")
        else:
            self._note(stream, n, seq, f"it is after event {last_n}: it was moved or inserted")

    def _note_missing(self, stream: str, n: int, between: tuple[int, int], reason: str) -> None:
        """Note a missing event; an unreadable place between its neighbours is where it was."""
        after, before = between
        place = before if before < NEVER else self._position + 1
        for gap in self._gaps:
            if after < gap.first and gap.last < before:
                gap.is_explained = True
                place, reason = gap.first, gap.reason if gap.first == gap.last else reason
                break
        self._note(stream, n, place, reason)

    def _judge_due(self, lane: int, seq: int) -> None:
        """Compare with every checkpoint made before place `seq` of a lane was written."""
        while self._due_in(lane) < seq:
            self._judge_next()

    def _judge_next(self) -> None:
        checkpoint = self._checkpoints.pop()
        self._judge(checkpoint)
        self._known.update((stream, n) for stream, n, _ in checkpoint.heads)
        self._sealed, self._orders = checkpoint.events, {}
        self._due = self._next_due()

    def _judge(self, checkpoint: Checkpoint) -> None:
        missing = [head for head in checkpoint.heads if self.ends.get(head[0], _BEFORE)[0] < head[1]]
        for stream, n, _ in missing:
            end_n, _, place = self.ends.get(stream, _BEFORE)
            reason = f"checkpoint {checkpoint.number} has {n} events of {stream}, the store has {end_n}"
            self._note_missing(stream, end_n + 1, (place, checkpoint.events + 1), reason)
        for stream, n, hash_hex in () if missing else checkpoint.heads:  # a missing event shifts others
            end_n, end_hash, place = self.ends[stream]
            if end_n > n:
                reason = f"it is among the events of checkpoint {checkpoint.number}, which has only {n}"
                self._note(stream, n + 1, place, reason)
            elif end_hash.hex() != hash_hex:
                reason = f"its hash is not the one in checkpoint {checkpoint.number}: the stream was rewritten"
                self._note(stream, n, place, reason)
        # Every end may match although events of two streams have changed places: only the order over all shows it.
        if not self._found and not self._is_in_order(checkpoint):
            self._explain_order(checkpoint)

    def _is_in_order(self, checkpoint: Checkpoint) -> bool:
        orders = {lane: order.text() for lane, order in self._orders.items()}
        return orders == {lane: digest for lane, digest in checkpoint.orders.items() if digest}

    def _explain_order(self, checkpoint: Checkpoint) -> None:
        """All stream ends match, but the events differ from the sealed ones, or their order does."""
        known = {stream for stream, _, _ in checkpoint.heads}
        for stream, (_, _, place) in self.ends.items():
            if place > self._sealed and stream not in known:
                n = self._known.get(stream, 0) + 1
                reason = f"it is among the events of checkpoint {checkpoint.number}, which does not have it"
                self._note(stream, n, place, reason)
        if not self._found:
            first = self._sealed + 1
            reason = f"places {first} to {checkpoint.events} are not in the order of checkpoint {checkpoint.number}"
            self._note(JOURNAL, first, first, reason)


def _is_chained(prev: bytes, row: Row) -> bool:
    """chain_hash over plain columns: this runs for every event."""
    _, _, stream, n, at, kind, actor, step, attempt, version, salt, body, event_hash, erased = row
    try:
        inner = _sha256(salt + body).digest() if erased is None else erased
        header = _encode((version, stream, n, at, kind, actor, step, attempt))
        return bool(_sha256(prev + header + inner).digest() == event_hash)
    except TypeError:  # a column has a type that handrail never writes
        return False


def _of_lane(lane: int) -> str:
    return "" if lane == ONE_LANE else f" of lane {lane}"


def _place_text(lane: int, seq: int) -> str:
    return f"place {seq}{_of_lane(lane)}"


_BEFORE: Final = (0, GENESIS, 0)
