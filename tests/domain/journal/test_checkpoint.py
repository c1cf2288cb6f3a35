"""Checkpoints: one exact form, and no way to edit, reorder or leave one out unseen."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from msgspec.structs import replace

from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.chain import Head
from handrail.domain.journal.checkpoint import (
    Checkpoint,
    Order,
    checkpoint_bytes,
    checkpoint_digest,
    checkpoint_from,
    checkpoint_line,
    misplaced,
    next_checkpoint,
    sealed_with,
)
from handrail.domain.journal.mark import ONE_LANE, Mark


def following(previous: Checkpoint | None, *, store: str = "st_one", more: int = 5) -> Checkpoint:
    events = (previous.events if previous else 0) + more
    heads = [Head("run_b", 2, b"\x02" * 32), Head("run_a", 3, b"\x01" * 32)]
    mark, at = Mark.at(events), 1_763_230_000_000
    return next_checkpoint(previous, store=store, at=at, mark=mark, orders={ONE_LANE: "00"}, heads=heads)


FIRST = following(None)
SECOND = following(FIRST)
SEALED = sealed_with(SECOND, key="abc", signature=b"\x00\x01\x02")


def test_the_form_of_a_checkpoint_is_for_ever() -> None:
    assert checkpoint_bytes(FIRST) == (
        b'{"format":1,"number":1,"store":"st_one","at":1763230000000,"events":5,"order":"00",'
        b'"heads":[["run_a",3,"' + b"01" * 32 + b'"],["run_b",2,"' + b"02" * 32 + b'"]],"previous":"","anew":false}'
    )
    assert checkpoint_digest(FIRST) == hashlib.sha256(checkpoint_bytes(FIRST)).hexdigest()


def test_a_line_holds_the_exact_bytes_that_were_signed() -> None:
    line = checkpoint_line(SEALED)
    assert line == b'{"checkpoint":' + checkpoint_bytes(SECOND) + b',"key":"abc","signature":"AAEC"}\n'
    assert checkpoint_from(line) == SEALED
    assert SEALED.signature_bytes == b"\x00\x01\x02"
    assert replace(SEALED, signature="no base64!").signature_bytes == b""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((b'"key"', b' "key"'), "not in the form that handrail writes"),
        ((b'"number":2', b'"number":2.0'), "can't be read"),
        ((b'"number":2', b'"number": 2'), "not in the form that handrail writes"),
        ((b'"number":2', b'"number":"2"'), "can't be read"),
        ((b'"number":2,', b""), "can't be read"),
        ((b'"number":2', b'"number":2,"more":1'), "can't be read"),
        ((b'"key":"abc"', b'"key":"abc","key":"abc"'), "not in the form that handrail writes"),
        ((b'"format":1', b'"format":2'), "it has no lanes"),
        ((b'"format":1', b'"format":3'), "format 3 is not known"),
        ((b'"anew":false', b'"anew":false,"lanes":[[1,10,"00"]]'), "do not add up"),
        ((b"}\n", b"}"), "not in the form that handrail writes"),
        ((b'"store":"st_one"', b'"store":"st_\xff"'), "can't be read"),
        ((b"{", b""), "can't be read"),
    ],
)
def test_a_line_that_handrail_would_not_have_written_is_refused(change: tuple[bytes, bytes], reason: str) -> None:
    with pytest.raises(IntegrityBroken, match=reason):
        checkpoint_from(checkpoint_line(SEALED).replace(*change, 1))


def test_a_checkpoint_follows_the_one_before_it() -> None:
    assert misplaced(None, FIRST) is None
    assert misplaced(FIRST, SECOND) is None
    assert SECOND.previous == checkpoint_digest(FIRST)


def test_a_checkpoint_that_was_left_out_moved_or_edited_shows() -> None:
    third = following(SECOND)
    assert misplaced(None, SECOND) == "checkpoint 1 is missing: 2 is in its place"
    assert misplaced(FIRST, third) == "checkpoint 2 is missing: 3 is in its place"
    assert misplaced(SECOND, FIRST) == "checkpoint 3 is missing: 1 is in its place"
    assert misplaced(replace(SECOND, at=1), third) == "it does not refer to the checkpoint before it"
    assert misplaced(None, replace(FIRST, previous="00")) == "it does not refer to the checkpoint before it"
    assert misplaced(FIRST, following(FIRST, store="st_two")) == "it is of another store"
    assert misplaced(FIRST, replace(SECOND, is_restart=True)) == "it restarts the log, but is not the first"
    assert misplaced(None, replace(FIRST, is_restart=True)) is None
    assert misplaced(FIRST, following(FIRST, more=0)) == "it has no more events than the checkpoint before it"


def test_the_order_of_events_is_part_of_what_is_sealed() -> None:
    one, two, apart = Order(), Order(), Order()
    one.add([b"a" * 32, b"b" * 32])
    two.add([b"b" * 32, b"a" * 32])
    apart.add([b"a" * 32])
    apart.add([b"b" * 32])
    assert one.text() != two.text()
    assert one.text() == apart.text() == hashlib.sha256(b"a" * 32 + b"b" * 32).hexdigest()


def test_a_checkpoint_is_plain_json_for_other_tools() -> None:
    line = msgspec.json.decode(checkpoint_line(SEALED))
    assert line["checkpoint"]["heads"][0] == ["run_a", 3, "01" * 32]
