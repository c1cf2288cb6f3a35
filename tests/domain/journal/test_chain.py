"""The hash chain: whatever is changed, removed, inserted or moved shows; what is erased does not break it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from handrail.domain.journal.chain import (
    GENESIS,
    Break,
    Head,
    Record,
    body_digest,
    chain_hash,
    chained,
    first_break,
    receipt,
)

STREAM = "run_chain234"


def chain(count: int, *, stream: str = STREAM) -> list[Record]:
    records: list[Record] = []
    for n in range(1, count + 1):
        prev = records[-1].hash if records else GENESIS
        body = b'{"n":%d}' % n
        record = Record(stream, n, 1_000 + n, "step_opened", "ada", "build", 1, 1, bytes([n]) * 16, body, b"")
        records.append(chained(prev, record))
    return records


def test_a_stream_as_it_was_written_holds_and_ends_at_its_last_event() -> None:
    records = chain(5)
    assert first_break(Head(STREAM), records) == (Head(STREAM, 5, records[-1].hash), None)


def test_a_stream_can_be_followed_from_any_point() -> None:
    records = chain(5)
    middle = Head(STREAM, 3, records[2].hash)
    assert first_break(middle, records[3:]) == (Head(STREAM, 5, records[4].hash), None)


@pytest.mark.parametrize(
    "change",
    [
        {"stream": "run_other234"},
        {"at": 1},
        {"kind": "step_skipped"},
        {"actor": "eve"},
        {"step": None},
        {"step": "other"},
        {"attempt": None},
        {"attempt": 2},
        {"format": 2},
        {"salt": bytes(16)},
        {"body": b"{}"},
        {"hash": bytes(32)},
        {"erased": bytes(32)},
    ],
    ids=lambda change: "-".join(change),
)
def test_every_part_of_an_event_is_covered_by_its_hash(change: dict[str, Any]) -> None:
    records = chain(5)
    records[2] = replace(records[2], **change)
    _, broken = first_break(Head(STREAM), records)
    assert broken is not None
    assert broken.n == 3


def test_a_removed_event_is_named() -> None:
    records = chain(5)
    del records[2]
    head, broken = first_break(Head(STREAM), records)
    assert head.n == 2
    assert broken == Break(STREAM, 3, "event 3 is missing: 4 follows 2")


def test_a_removed_event_shows_even_when_the_rest_is_renumbered() -> None:
    records = chain(5)
    renumbered = [*records[:2], *(replace(record, n=record.n - 1) for record in records[3:])]
    _, broken = first_break(Head(STREAM), renumbered)
    assert broken == Break(STREAM, 3, "its hash does not match its content and place")


def test_an_inserted_or_swapped_event_shows() -> None:
    records = chain(5)
    inserted = [*records[:2], records[1], *records[2:]]
    assert first_break(Head(STREAM), inserted)[1] is not None
    swapped = [records[0], replace(records[2], n=2), replace(records[1], n=3), *records[3:]]
    _, broken = first_break(Head(STREAM), swapped)
    assert broken is not None
    assert broken.n == 2


def test_an_event_moved_to_another_stream_shows() -> None:
    other = chain(3, stream="run_other234")
    _, broken = first_break(Head(STREAM), [replace(record, stream=STREAM) for record in other])
    assert broken is not None
    assert broken.n == 1


def test_an_erased_event_leaves_the_chain_whole() -> None:
    records = chain(5)
    digest = body_digest(records[2].salt, records[2].body)
    records[2] = replace(records[2], salt=b"", body=b'{"erased":true}', erased=digest)
    assert first_break(Head(STREAM), records)[1] is None


def test_the_parts_of_an_event_can_not_flow_into_each_other() -> None:
    one = Record(STREAM, 1, 1, "ab", "c", None, None, 1, b"", b"{}", b"")
    two = Record(STREAM, 1, 1, "a", "bc", None, None, 1, b"", b"{}", b"")
    assert chain_hash(GENESIS, one) != chain_hash(GENESIS, two)
    assert chain_hash(GENESIS, replace(one, step="None")) != chain_hash(GENESIS, one)


def test_a_receipt_is_the_number_and_the_start_of_the_hash() -> None:
    assert receipt(14, bytes.fromhex("9f2c41d07ab3e655" + "00" * 24)) == "14:9f2c41d07ab3e655"


@given(st.binary(min_size=1, max_size=60), st.integers(0, 59), st.integers(0, 7))
def test_any_flipped_bit_of_a_body_shows(body: bytes, place: int, bit: int) -> None:
    record = chained(GENESIS, Record(STREAM, 1, 1, "kind", "ada", None, None, 1, b"s" * 16, body, b""))
    flipped = bytearray(body)
    flipped[place % len(body)] ^= 1 << bit
    _, broken = first_break(Head(STREAM), [replace(record, body=bytes(flipped))])
    assert broken is not None
