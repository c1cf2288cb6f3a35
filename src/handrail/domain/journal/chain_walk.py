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

NEVER: Final = 2**63
_encode = msgspec.json.Encoder().encode
_sha256 = hashlib.sha256
FOUND_MAX: Final = 1_000


Row: TypeAlias = tuple[Any, ...]
"""A place in the store, then the fields of the record there, of any type: they may be damaged."""


class Gap(Struct):
    """Unreadable places in the store, and why; explained once a stream is found to miss an event there."""

    first: int
    last: int
    reason: str
    is_explained: bool = False


class Trail:
    """Verifies the streams of a store in store order."""

    def __init__(self, checkpoints: Sequence[Checkpoint] = ()) -> None:
        self.events = 0
        self.place = 0
        self.ends: dict[str, tuple[int, bytes, int]] = {}
        """By stream: the number of its last event, that event's hash, and its place."""
        self.store: list[Record] = []
        """The events of the store's own stream."""
        self.erased: list[tuple[int, Record]] = []
        self._found: dict[tuple[str, int], tuple[int, str]] = {}
        self._gaps: list[Gap] = []
        self._checkpoints = list(reversed(checkpoints))
        self._due = self._next_due()
        self._sealed = 0
        self._known: dict[str, int] = {}
        self._order = Order()

    @property
    def breaks(self) -> list[tuple[int, Break]]:
        """All breaks with their places, in store order."""
        found = [(place, Break(stream, n, reason)) for (stream, n), (place, reason) in self._found.items()]
        gaps = [(gap.first, Break(JOURNAL, gap.first, gap.reason)) for gap in self._gaps if not gap.is_explained]
        return sorted(found + gaps, key=lambda one: one[0])

    def follow(self, batch: Sequence[Row]) -> None:
        """Verify the next events."""
        ends, place, due = self.ends, self.place, self._due
        hashes: list[bytes] = []
        for row in batch:
            seq, stream, n, at, kind, actor, step, attempt, version, salt, body, event_hash, erased = row
            if seq != place + 1:
                self._note_gap(place, seq)
            if seq > due:
                self._order.add(hashes)
                hashes = []
                self._judge_due(seq)
                due = self._due
            place = seq
            if type(stream) is not str or type(n) is not int or type(event_hash) is not bytes:
                self._add_gap(Gap(seq, seq, f"the event at place {seq} is damaged"))
                continue
            last_n, prev, _ = ends.get(stream, _BEFORE)
            if n != last_n + 1:
                self._note_number(row, last_n)
                if n <= last_n:
                    continue  # it was moved after its successors: the stream's end stays where it is
            else:
                try:  # chain_hash, inlined: this runs for every event
                    inner = _sha256(salt + body).digest() if erased is None else erased
                    header = _encode((version, stream, n, at, kind, actor, step, attempt))
                    is_valid = _sha256(prev + header + inner).digest() == event_hash
                except TypeError:  # a column has a type that handrail never writes
                    is_valid = False
                if not is_valid:
                    self._note(stream, n, seq, "its hash does not match its content and place")
            ends[stream] = (n, event_hash, seq)
            hashes.append(event_hash)
            if stream == STORE_STREAM:
                self.store.append(Record(*row[1:]))
            if erased is not None:
                self.erased.append((seq, Record(*row[1:])))
        self._order.add(hashes)
        self.events += len(batch)
        self.place = place

    def skip(self, reason: str) -> None:
        """Note that the next place can't be read."""
        self.place += 1
        self._add_gap(Gap(self.place, self.place, reason))

    def finish(self) -> None:
        """Note the end of the store: everything sealed that was not seen is missing."""
        self._judge_due(self.place + 1)
        for checkpoint in reversed(self._checkpoints):
            reason = shorter(self.events, checkpoint.events, f"checkpoint {checkpoint.number}")
            is_named = False
            for stream, n, _ in checkpoint.heads:
                end_n, _, end_place = self.ends.get(stream, _BEFORE)
                if end_n < n:
                    is_named = True
                    self._note_missing(stream, end_n + 1, (end_place, NEVER), reason)
            if not is_named and not self._found:
                self._note(JOURNAL, self.place + 1, self.place + 1, reason)
        self._checkpoints.clear()

    def _next_due(self) -> int:
        return self._checkpoints[-1].events if self._checkpoints else NEVER

    def _note(self, stream: str, n: int, place: int, reason: str) -> None:
        if len(self._found) < FOUND_MAX:
            self._found.setdefault((stream, n), (place, reason))  # keep the first reason: it is closest to the cause

    def _note_gap(self, place: int, seq: int) -> None:
        if seq <= place:
            self._note(JOURNAL, seq, place, f"place {seq} follows place {place}: the store is out of order")
            return
        places = f"place {place + 1} is" if seq == place + 2 else f"places {place + 1} to {seq - 1} are"
        self._add_gap(Gap(place + 1, seq - 1, f"{places} empty: an event was removed or moved"))

    def _add_gap(self, gap: Gap) -> None:
        if len(self._gaps) < FOUND_MAX:
            self._gaps.append(gap)

    def _note_number(self, row: Row, last_n: int) -> None:
        seq, stream, n = row[:3]
        if n > last_n + 1:
            _, _, place = self.ends.get(stream, _BEFORE)
            self._note_missing(stream, last_n + 1, (place, seq), f"it is missing: {n} follows {last_n}")
        else:
            self._note(stream, n, seq, f"it is after event {last_n}: it was moved or inserted")

    def _note_missing(self, stream: str, n: int, between: tuple[int, int], reason: str) -> None:
        """Note a missing event; an unreadable place between its neighbours is where it was."""
        after, before = between
        place = before if before < NEVER else self.place + 1
        for gap in self._gaps:
            if after < gap.first and gap.last < before:
                gap.is_explained = True
                place, reason = gap.first, gap.reason if gap.first == gap.last else reason
                break
        self._note(stream, n, place, reason)

    def _judge_due(self, seq: int) -> None:
        """Compare with every checkpoint made before place `seq` was written."""
        while self._checkpoints and self._checkpoints[-1].events < seq:
            checkpoint = self._checkpoints.pop()
            self._judge(checkpoint)
            self._known.update((stream, n) for stream, n, _ in checkpoint.heads)
            self._sealed, self._order = checkpoint.events, Order()
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
        if not self._found and self._order.text() != checkpoint.order:
            self._explain_order(checkpoint)

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


_BEFORE: Final = (0, GENESIS, 0)
