"""The trail over lanes: what a checkpoint by lane reveals, wherever the events of a stream are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec import Struct
from msgspec.structs import astuple, replace

from handrail.domain.journal.chain import Head, Record, chained
from handrail.domain.journal.chain_walk import Row, Trail
from handrail.domain.journal.checkpoint import (
    Checkpoint,
    Order,
    checkpoint_from,
    checkpoint_line,
    misplaced,
    next_checkpoint,
    sealed_with,
)
from handrail.domain.journal.mark import START, Mark

A, B, C = "run_a", "run_b", "run_c"
SCRIPT = [(A, 128), (B, 129), (A, 129), (A, 130), (B, 128), (C, 130), (A, 128), (B, 129), (C, 129), (C, 128)]


class Place(Struct, frozen=True):
    lane: int
    number: int
    record: Record

    @property
    def row(self) -> Row:
        return (self.lane, self.number, *astuple(self.record))


def journal(script: Sequence[tuple[str, int]] = SCRIPT) -> list[Place]:
    ends: dict[str, Head] = {}
    counts: dict[int, int] = {}
    places = []
    for at, (stream, lane) in enumerate(script):
        end = ends.get(stream, Head(stream))
        record = Record(stream, end.n + 1, at, "step_opened", "ada", None, None, 1, b"s", b"{}", b"")
        record = chained(end.hash, record)
        ends[stream] = Head(stream, record.n, record.hash)
        counts[lane] = counts.get(lane, 0) + 1
        places.append(Place(lane, counts[lane], record))
    return places


def sealed(places: Sequence[Place], *ends: int) -> list[Checkpoint]:
    made: list[Checkpoint] = []
    mark, after = START, 0
    for end in ends:
        part = places[after:end]
        heads = {one.record.stream: Head(one.record.stream, one.record.n, one.record.hash) for one in part}
        orders: dict[int, Order] = {}
        for one in part:
            orders.setdefault(one.lane, Order()).add([one.record.hash])
        mark = mark.after((one.lane, one.number) for one in part)
        digests = {lane: order.text() for lane, order in orders.items()}
        previous = made[-1] if made else None
        made.append(next_checkpoint(previous, store="st", at=0, mark=mark, orders=digests, heads=heads.values()))
        after = end
    return made


def walked(places: Sequence[Place], checkpoints: Sequence[Checkpoint] = (), *, size: int = 3) -> Trail:
    trail = Trail(checkpoints)
    for start in range(0, len(places), size):
        trail.follow([place.row for place in places[start : start + size]])
    trail.finish()
    return trail


def closed(places: Sequence[Place]) -> list[Place]:
    """The same with each lane numbered anew, as a careful forger would."""
    counts: dict[int, int] = {}
    made = []
    for one in places:
        counts[one.lane] = counts.get(one.lane, 0) + 1
        made.append(Place(one.lane, counts[one.lane], one.record))
    return made


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_journal_as_it_was_written_holds(size: int) -> None:
    places = journal()
    trail = walked(places, sealed(places, 4, 7, 10), size=size)
    assert trail.breaks == []
    assert (trail.events, trail.mark) == (10, Mark.of({128: 4, 129: 4, 130: 2}))


def test_a_checkpoint_need_not_change_every_lane_and_events_may_follow_it() -> None:
    places = journal([(A, 128), (B, 129), (A, 129), (A, 129), (B, 128)])
    checkpoints = sealed(places, 2, 4)
    assert [digest for _, _, digest in checkpoints[1].lanes or () if not digest] == [""]
    assert walked(places, checkpoints).breaks == []


def test_checkpoints_over_lanes_are_written_and_read() -> None:
    first, second = sealed(journal(), 4, 10)
    line = checkpoint_line(sealed_with(second, key="k", signature=b"s"))
    assert checkpoint_from(line).checkpoint == second
    assert second.mark == Mark.of({128: 4, 129: 4, 130: 2})
    assert misplaced(first, second) is None
    fewer = replace(second, lanes=((128, 10, "00"),), previous=second.previous)
    assert misplaced(first, fewer) == "it has fewer events in a lane than the checkpoint before it"


def _without(index: int) -> Callable[[list[Place]], list[Place]]:
    return lambda places: places[:index] + places[index + 1 :]


def _swapped(places: list[Place]) -> list[Place]:
    """Two events of different streams exchanged in their lane."""
    one, other = places[1], places[2]
    assert one.lane == other.lane
    places[1], places[2] = Place(one.lane, 1, other.record), Place(one.lane, 2, one.record)
    return [places[0], places[2], places[1], *places[3:]]


def _elsewhere(places: list[Place]) -> list[Place]:
    return closed([Place(131, 1, one.record) if index == 5 else one for index, one in enumerate(places)])


def _changed(places: list[Place]) -> list[Place]:
    places[3] = replace(places[3], record=replace(places[3].record, actor="eve"))
    return places


ATTACKS: dict[str, Callable[[list[Place]], list[Place]]] = {
    "an event is gone": _without(2),
    "an event in the middle is gone, and the gap closed": lambda places: closed(_without(2)(places)),
    "the newest of a stream is cut, and the gap closed": lambda places: closed(_without(9)(places)),
    "a whole stream is gone, and all gaps closed": lambda p: closed([one for one in p if one.record.stream != C]),
    "all after the first checkpoint is rolled back": lambda places: places[:4],
    "two events swap places in a lane": _swapped,
    "an event moved to another lane": _elsewhere,
    "an event was changed": _changed,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_was_sealed_does_not_change_unseen(attack: str) -> None:
    places = journal()
    checkpoints = sealed(places, 4, 10)
    assert walked(places, checkpoints).breaks == []
    assert walked(ATTACKS[attack](places), checkpoints).breaks != []


def test_a_gap_names_its_lane() -> None:
    places = _without(1)(journal([(A, 128), (B, 129), (C, 129)]))
    assert [broken.reason for _, broken in walked(places).breaks] == [
        "place 1 of lane 129 is empty: an event was removed or moved"
    ]
