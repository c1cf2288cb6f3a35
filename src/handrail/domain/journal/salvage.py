"""Salvage: which streams can be proved from rows that were found in a damaged file, and what is lost.

Pure. Rows are candidates: several may claim the same place. A stream is brought out only if its chain holds from its
first event to the last that anything knows of: an older state of a run must not be executed again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.chain import GENESIS, Head, Record, chain_hash
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import RunStarted
from handrail.domain.journal.store_event import PlanSaved

WHOLE: Final = ""


class FoundEvent(Struct, frozen=True, gc=False):
    """A row that may be an event, with the position that it claims."""

    seq: int
    record: Record


class LostStream(Struct, frozen=True):
    """A stream that can't be brought out: how many events it had at least, how many of them can be proved, and why."""

    stream: str
    events: int
    proved: int
    reason: str


class SalvageResult(Struct, frozen=True):
    """What was proved: whole streams in the order of the store, and the beginnings of others, for reading only."""

    whole: Mapping[str, Sequence[FoundEvent]] = field(default_factory=dict)
    partial: Mapping[str, Sequence[FoundEvent]] = field(default_factory=dict)
    lost: tuple[LostStream, ...] = ()

    def in_order(self) -> list[FoundEvent]:
        """The events of all whole streams, in the order of the store."""
        return sorted((one for events in self.whole.values() for one in events), key=_place)


def salvaged(
    candidates: Iterable[FoundEvent], *, ends: Iterable[Head], rows: Iterable[Head], definitions: frozenset[str]
) -> SalvageResult:
    """What can be proved; `ends` are signed ends of streams, `rows` ends as projections have them."""
    found: dict[str, dict[int, list[FoundEvent]]] = {}
    for one in candidates:
        found.setdefault(one.record.stream, {}).setdefault(one.record.n, []).append(one)
    signed = _known(ends)
    known = {stream: dict(at) for stream, at in _known(rows).items()}
    whole, partial, lost = dict[str, list[FoundEvent]](), dict[str, list[FoundEvent]](), list[LostStream]()
    for stream in sorted({*found, *signed, *known}):
        chain = list(_chain(found.get(stream, {})))
        claimed = max([*found.get(stream, {}), *signed.get(stream, {}), *known.get(stream, {})])
        reason = _flaw(chain, claimed, signed.get(stream, {}), definitions)
        if reason == WHOLE:
            whole[stream] = chain
            continue
        lost.append(LostStream(stream, claimed, len(chain), reason))
        if chain:
            partial[stream] = chain
    return SalvageResult(whole, partial, tuple(lost))


def _known(heads: Iterable[Head]) -> dict[str, dict[int, bytes]]:
    known: dict[str, dict[int, bytes]] = {}
    for head in heads:
        known.setdefault(head.stream, {})[head.n] = head.hash
    return known


def _chain(events: Mapping[int, Sequence[FoundEvent]]) -> Iterator[FoundEvent]:
    """The events of a stream from its first, as far as each follows the one before."""
    prev, n = GENESIS, 1
    while True:
        # An erased one first: the same event with its content may be left in an old page, and must stay erased.
        at_place = sorted(events.get(n, ()), key=lambda one: one.record.erased is None)
        found = next((one for one in at_place if _follows(prev, one.record)), None)
        if found is None:
            return
        yield found
        prev, n = found.record.hash, n + 1


def _follows(prev: bytes, record: Record) -> bool:
    return chain_hash(prev, record) == record.hash


def _flaw(chain: Sequence[FoundEvent], claimed: int, signed: Mapping[int, bytes], definitions: frozenset[str]) -> str:
    """Why a stream is not whole; empty if it is."""
    if len(chain) < claimed:
        return f"event {len(chain) + 1} is damaged or gone"
    for n, digest in signed.items():
        if chain[n - 1].record.hash != digest:
            return f"event {n} is not the one that a checkpoint has signed"
    for one in chain:
        try:
            event = entry_of(one.record).event
        except IntegrityBroken as error:
            return f"event {one.record.n} can't be read: {error}"
        if isinstance(event, RunStarted | PlanSaved) and event.definition not in definitions:
            return "its definition is damaged or gone"
    return WHOLE


def _place(one: FoundEvent) -> tuple[int, str, int]:
    return one.seq, one.record.stream, one.record.n
