"""The trail: one walk through all streams names what was changed, removed, inserted, moved or cut."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import Struct
from msgspec.structs import astuple, replace

from handrail.domain.journal import chain_walk as trails
from handrail.domain.journal.chain import GENESIS, Head, Record, chained
from handrail.domain.journal.chain_walk import Row, Trail
from handrail.domain.journal.checkpoint import Checkpoint, Order, next_checkpoint
from handrail.domain.journal.mark import ONE_LANE, Mark

A, B, C = "run_a", "run_b", "run_c"
SCRIPT = [A, B, A, A, B, C, A, B, C, C]


class Place(Struct, frozen=True):
    seq: int
    record: Record


def rows(places: Sequence[Place]) -> list[Row]:
    return [(ONE_LANE, place.seq, *astuple(place.record)) for place in places]


def journal(script: Sequence[str], *, salt: int = 0) -> list[Place]:
    ends: dict[str, Head] = {}
    places = []
    for seq, stream in enumerate(script, 1):
        end = ends.get(stream, Head(stream))
        record = Record(stream, end.n + 1, seq, "step_opened", "ada", None, None, 1, bytes([salt]), b"{}", b"")
        record = chained(end.hash, record)
        ends[stream] = Head(stream, record.n, record.hash)
        places.append(Place(seq, record))
    return places


def sealed(places: Sequence[Place], *ends: int) -> list[Checkpoint]:
    """Checkpoints at these places."""
    made: list[Checkpoint] = []
    after = 0
    for end in ends:
        heads = {p.record.stream: Head(p.record.stream, p.record.n, p.record.hash) for p in places[after:end]}
        order = Order()
        order.add(place.record.hash for place in places[after:end])
        previous = made[-1] if made else None
        orders = {ONE_LANE: order.text()}
        made.append(next_checkpoint(previous, store="st", at=0, mark=Mark.at(end), orders=orders, heads=heads.values()))
        after = end
    return made


def walked(places: Sequence[Place], checkpoints: Sequence[Checkpoint] = (), *, size: int = 3) -> Trail:
    trail = Trail(checkpoints)
    for start in range(0, len(places), size):
        trail.follow(rows(places[start : start + size]))
    trail.finish()
    return trail


def found(trail: Trail) -> list[tuple[str, int]]:
    return [(broken.stream, broken.n) for _, broken in trail.breaks]


def rehashed(places: Sequence[Place]) -> list[Place]:
    """The same places with all hashes made anew, as a careful forger would."""
    ends: dict[str, bytes] = {}
    forged = []
    for place in places:
        record = chained(ends.get(place.record.stream, GENESIS), place.record)
        ends[record.stream] = record.hash
        forged.append(Place(place.seq, record))
    return forged


def renumbered(places: Sequence[Place]) -> list[Place]:
    return [Place(seq, place.record) for seq, place in enumerate(places, 1)]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_journal_as_it_was_written_holds(size: int) -> None:
    places = journal(SCRIPT)
    trail = walked(places, sealed(places, 4, 7, 10), size=size)
    assert trail.breaks == []
    assert (trail.events, trail.mark) == (10, Mark.at(10))
    assert {stream: end[0] for stream, end in trail.ends.items()} == {A: 4, B: 3, C: 3}


def test_events_behind_the_last_checkpoint_hold_too() -> None:
    places = journal(SCRIPT)
    assert walked(places, sealed(places, 4)).breaks == []


def test_a_changed_event_is_named_and_the_rest_is_still_looked_at() -> None:
    places = journal(SCRIPT)
    for index in (2, 8):
        places[index] = Place(places[index].seq, replace(places[index].record, actor="eve"))
    assert found(walked(places, sealed(journal(SCRIPT), 10))) == [(A, 2), (C, 2)]


def test_a_changed_event_with_a_hash_of_its_own_breaks_its_successor() -> None:
    places = journal(SCRIPT)
    changed = replace(places[2].record, actor="eve")
    places[2] = Place(3, chained(places[0].record.hash, changed))
    assert found(walked(places)) == [(A, 3)]


def test_a_rewritten_stream_is_seen_by_its_checkpoint() -> None:
    places = journal(SCRIPT)
    checkpoints = sealed(places, 5, 10)
    places[2] = Place(3, replace(places[2].record, actor="eve"))
    trail = walked(rehashed(places), checkpoints)
    assert found(trail) == [(A, 3), (A, 4)]
    assert "checkpoint 1: the stream was rewritten" in trail.breaks[0][1].reason


def test_a_removed_event_is_named_where_it_stood() -> None:
    places = journal(SCRIPT)
    del places[2]
    trail = walked(places)
    assert trail.breaks[0][0] == 3
    assert found(trail) == [(A, 2)]
    assert "place 3 is empty" in trail.breaks[0][1].reason


def test_a_removed_end_of_a_stream_is_named_by_its_checkpoint() -> None:
    places = journal(SCRIPT)
    checkpoints = sealed(places, 10)
    del places[6]
    assert found(walked(places, checkpoints)) == [(A, 4)]


def test_a_removed_end_of_a_stream_that_nobody_sealed_leaves_an_empty_place() -> None:
    places = journal(SCRIPT)
    del places[6]
    assert found(walked(places)) == [("journal", 7)]


def test_a_removed_event_shows_even_when_all_places_are_closed_up() -> None:
    places = journal(SCRIPT)
    checkpoints = sealed(places, 5, 10)
    del places[2]
    assert found(walked(renumbered(places), checkpoints))[0] == (A, 2)
    places = journal(SCRIPT)
    del places[6]
    trail = walked(renumbered(places), checkpoints)
    assert found(trail)[0] == (A, 4)
    assert "shorter than checkpoint 2 (9 < 10)" in trail.breaks[0][1].reason


def test_several_places_that_are_empty_are_shown_together() -> None:
    places = journal(SCRIPT)
    del places[3:5]
    trail = walked(places)
    assert [(place, broken.n, broken.stream) for place, broken in trail.breaks] == [(4, 3, A), (4, 2, B)]
    assert "is missing: 4 follows 2" in trail.breaks[0][1].reason


def test_an_event_moved_behind_its_successors_is_named() -> None:
    places = journal(SCRIPT)
    moved = places.pop(2)
    places.append(Place(20, moved.record))
    trail = walked(places)
    assert found(trail)[0] == (A, 2)
    assert trail.ends[A][0] == 4


def test_an_event_inserted_twice_is_named() -> None:
    places = journal(SCRIPT)
    places.insert(4, places[3])
    assert found(walked(renumbered(places)))[0] == (A, 3)


def test_two_swapped_events_of_one_stream_are_named() -> None:
    places = journal(SCRIPT)
    places[2], places[3] = Place(3, places[3].record), Place(4, places[2].record)
    assert found(walked(places))[0] == (A, 2)


def test_two_swapped_events_of_different_streams_are_seen_by_their_checkpoint() -> None:
    places = journal(SCRIPT)
    checkpoints = sealed(places, 3, 8, 10)
    places[4], places[5] = Place(5, places[5].record), Place(6, places[4].record)
    trail = walked(places, checkpoints)
    assert found(trail) == [("journal", 4)]
    assert trail.breaks[0][1].reason == "places 4 to 8 are not in the order of checkpoint 2"
    assert walked(places).breaks == []  # nothing but a checkpoint ties two streams to each other


def test_two_events_swapped_over_a_checkpoint_are_named() -> None:
    places = journal(SCRIPT)
    checkpoints = sealed(places, 5, 10)
    places[4], places[5] = Place(5, places[5].record), Place(6, places[4].record)
    trail = walked(places, checkpoints)
    assert (B, 2) in found(trail)


def test_an_event_among_the_sealed_ones_that_the_checkpoint_does_not_know_is_named() -> None:
    places = journal([A, B, C])
    checkpoints = sealed(journal([A, B]), 2)
    checkpoints = [replace(checkpoints[0], events=3)]
    trail = walked(places, checkpoints)
    assert found(trail) == [(C, 1)]
    assert "which does not have it" in trail.breaks[0][1].reason


def test_more_events_of_a_stream_than_the_checkpoint_knows_are_named() -> None:
    places = journal([A, B, A])
    checkpoints = [replace(sealed(journal([A, B]), 2)[0], events=3)]
    assert found(walked(places, checkpoints)) == [(A, 2)]


def test_a_cut_tail_names_the_first_missing_event_of_every_stream() -> None:
    places = journal(SCRIPT)
    trail = walked(places[:6], sealed(places, 3, 10))
    assert sorted(found(trail)) == [(A, 4), (B, 3), (C, 2)]
    words = "the journal is shorter than checkpoint 2 (6 < 10): it was cut, or an older copy was restored"
    assert {broken.reason for _, broken in trail.breaks} == {words}


def test_a_journal_that_is_too_short_for_reasons_no_stream_explains_is_reported() -> None:
    places = journal([A])
    checkpoints = [replace(sealed(places, 1)[0], events=5)]
    assert found(walked(places, checkpoints)) == [("journal", 2)]


def test_an_empty_store_under_a_checkpoint_is_cut() -> None:
    assert sorted(found(walked([], sealed(journal(SCRIPT), 10)))) == [(A, 1), (B, 1), (C, 1)]


def test_a_place_that_can_not_be_read_is_shown_as_the_event_that_stood_there() -> None:
    places = journal(SCRIPT)
    trail = Trail()
    trail.follow(rows(places[:2]))
    trail.skip("place 3 can't be read")
    trail.follow(rows(places[3:]))
    trail.finish()
    assert [(broken.stream, broken.n, broken.reason) for _, broken in trail.breaks] == [(A, 2, "place 3 can't be read")]


def test_places_out_of_order_are_reported() -> None:
    places = journal([A, B, C])
    assert ("journal", 1) in found(walked([Place(2, places[0].record), Place(1, places[1].record)]))


def test_the_stores_own_stream_and_erased_events_are_put_aside() -> None:
    places = journal(["store", A])
    places[1] = Place(2, replace(places[1].record, erased=b"x"))
    trail = walked(places)
    assert trail.store == [places[0].record]
    assert trail.erased == [(2, places[1].record)]


def test_what_is_found_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trails, "FOUND_MAX", 5)
    places = [Place(place.seq, replace(place.record, actor="eve")) for place in journal([A] * 50)]
    assert len(walked(places).breaks) == 5
    gaps = [Place(2 * place.seq, place.record) for place in journal([A] * 50)]
    assert len(walked(gaps).breaks) == 5
