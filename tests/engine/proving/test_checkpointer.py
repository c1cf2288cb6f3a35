"""The notary: what was sealed can't be cut, rewritten or replaced unseen."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.history import KEY, OTHER_KEY, PLAN, RUN_A, RUN_B, RUN_C, fill, notary_of, write
from handrail.domain.errors import IntegrityBroken, Unavailable
from handrail.domain.journal.chain import Break, Record
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_bytes, checkpoint_digest
from handrail.domain.journal.event import RunPaused
from handrail.domain.journal.store_event import JournalAccepted
from handrail.engine.proving import checkpointer as notaries
from handrail.engine.proving.checkpointer import Checkpointer, found_text, signature_problem, store_id
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.memory import MemoryStore
from support import record_writer, ticking_clock


class Tampered(MemoryStore):
    """A store that can be cut and rewritten behind everyone's back."""

    def cut(self, events: int) -> None:
        gone = self._places[events:]
        del self._places[events:]
        for record in gone:
            self._streams[record.stream].pop()

    def rewrite(self, stream: str, n: int, record: Record) -> None:
        self._places[self._streams[stream][n - 1]] = record


class Unreadable(MemoryStore):
    """A store in which one stream can't be read."""

    damaged = ""

    async def read(self, stream: str, *, after: int = 0, limit: int = 100_000) -> list[Record]:
        if stream == self.damaged:
            raise IntegrityBroken("the event at place 3 can't be read")
        return await super().read(stream, after=after, limit=limit)


async def test_a_seal_names_the_ends_of_all_streams_and_the_next_only_those_that_changed(tmp_path: Path) -> None:
    store = MemoryStore()
    by = await fill(store)
    checkpointer = notary_of(store, tmp_path)
    first = await checkpointer.seal()
    assert first is not None
    assert (first.number, first.store, first.events, first.previous) == (1, "st_one", 16, "")
    assert [(stream, n) for stream, n, _ in first.heads] == [
        (PLAN, 2),
        (RUN_A, 4),
        (RUN_B, 4),
        (RUN_C, 5),
        ("store", 1),
    ]
    records = await write(store, RUN_B, RunPaused(reason="lunch"), by=by)
    second = await checkpointer.seal()
    assert second is not None
    assert (second.number, second.events) == (2, 17)
    assert second.heads == ((RUN_B, 5, records[0].hash.hex()),)
    assert second.previous == checkpoint_digest(first)


async def test_nothing_is_sealed_twice(tmp_path: Path) -> None:
    store = MemoryStore()
    checkpointer = notary_of(store, tmp_path)
    assert await checkpointer.seal() is None
    await fill(store)
    assert await checkpointer.seal() is not None
    assert await checkpointer.seal() is None
    assert len([one async for one in checkpointer.log.all()]) == 1


async def test_a_seal_is_signed_over_its_exact_bytes(tmp_path: Path) -> None:
    store = MemoryStore()
    await fill(store)
    checkpointer = notary_of(store, tmp_path)
    checkpoint = await checkpointer.seal()
    sealed = await checkpointer.log.last()
    assert sealed is not None
    assert sealed.checkpoint == checkpoint
    assert KEY.holds(checkpoint_bytes(sealed.checkpoint), sealed.signature_bytes)
    assert signature_problem(sealed, KEY) is None


async def test_two_notaries_at_once_keep_one_chain(tmp_path: Path) -> None:
    store = MemoryStore()
    by = await fill(store)
    one, two = notary_of(store, tmp_path), notary_of(store, tmp_path)
    for n in range(10):
        await write(store, RUN_B, RunPaused(reason=str(n)), by=by)
        await asyncio.gather(one.seal(), two.seal())
    sealed = [each.checkpoint async for each in one.log.all()]
    assert [each.number for each in sealed] == list(range(1, 11))
    assert all(after.previous == checkpoint_digest(before) for before, after in pairwise(sealed))


async def test_a_notary_that_is_always_second_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: CheckpointFile, sealed: SealedCheckpoint, *, after: str) -> bool:
        return False

    store = MemoryStore()
    await fill(store)
    monkeypatch.setattr(CheckpointFile, "append", refuse)
    with pytest.raises(Unavailable, match="too many writers"):
        await notary_of(store, tmp_path).seal()


async def test_a_store_that_nobody_touched_is_what_its_checkpoint_says(tmp_path: Path) -> None:
    store = MemoryStore()
    checkpointer = notary_of(store, tmp_path)
    assert await checkpointer.compare() == []
    by = await fill(store)
    assert await checkpointer.compare() == []
    await checkpointer.seal()
    assert await checkpointer.compare() == []
    await write(store, RUN_B, RunPaused(reason="more"), by=by)
    assert await checkpointer.compare() == []


async def test_a_cut_journal_is_seen_at_start(tmp_path: Path) -> None:
    store = Tampered()
    await fill(store)
    checkpointer = notary_of(store, tmp_path)
    await checkpointer.seal()
    store.cut(14)
    journal, *streams = await checkpointer.compare()
    words = "the journal is shorter than its last checkpoint (14 < 16): it was cut, or an older copy was restored"
    assert journal == Break("journal", 15, words)
    assert {(broken.stream, broken.n) for broken in streams} == {(PLAN, 2), (RUN_C, 5)}
    with pytest.raises(IntegrityBroken, match="14 < 16"):
        await checkpointer.seal()


async def test_an_emptied_journal_is_seen_at_start(tmp_path: Path) -> None:
    store = MemoryStore()
    await fill(store)
    await notary_of(store, tmp_path).seal()
    found = await notary_of(MemoryStore(), tmp_path).compare()
    assert found[0].reason.startswith("the journal is shorter than its last checkpoint (0 < 16)")


async def test_another_database_in_its_place_is_seen_at_start(tmp_path: Path) -> None:
    store, other = MemoryStore(), MemoryStore()
    await fill(store)
    await fill(other, name="st_two", seed=1)
    await notary_of(store, tmp_path).seal()
    (broken,) = await notary_of(other, tmp_path).compare()
    assert (broken.stream, broken.n) == ("store", 1)
    assert broken.reason.startswith("the database was replaced by another")
    with pytest.raises(IntegrityBroken, match="replaced by another"):
        await notary_of(other, tmp_path).seal()


async def test_a_rewritten_end_of_a_stream_is_seen_at_start(tmp_path: Path) -> None:
    store, forged = Tampered(), MemoryStore()
    await fill(store)
    await fill(forged, seed=1)
    checkpointer = notary_of(store, tmp_path)
    await checkpointer.seal()
    store.rewrite(RUN_A, 4, (await forged.read(RUN_A))[-1])
    (broken,) = await checkpointer.compare()
    assert (broken.stream, broken.n) == (RUN_A, 4)
    assert "the stream was rewritten" in broken.reason


async def test_changed_words_at_the_end_of_a_stream_are_seen_at_start(tmp_path: Path) -> None:
    store = Tampered()
    await fill(store)
    checkpointer = notary_of(store, tmp_path)
    await checkpointer.seal()
    for stream, n in ((RUN_A, 4), ("store", 1)):
        record = (await store.read(stream))[n - 1]
        store.rewrite(stream, n, replace(record, actor="eve"))
    assert [(broken.stream, broken.n) for broken in await checkpointer.compare()] == [(RUN_A, 4), ("store", 1)]


async def test_a_stream_that_can_not_be_read_is_named_at_start(tmp_path: Path) -> None:
    store = Unreadable()
    await fill(store)
    checkpointer = notary_of(store, tmp_path)
    await checkpointer.seal()
    store.damaged = RUN_A
    assert await checkpointer.compare() == [Break(RUN_A, 4, "the event at place 3 can't be read")]
    store.damaged = "store"
    assert await checkpointer.compare() == [Break("journal", 0, "the event at place 3 can't be read")]


async def test_a_checkpoint_of_another_key_or_an_edited_one_counts_for_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    await fill(store)
    await notary_of(store, tmp_path).seal()
    (broken,) = await notary_of(store, tmp_path, key=OTHER_KEY).compare()
    assert (broken.stream, broken.n) == ("checkpoints", 1)
    assert "another key" in broken.reason
    log = CheckpointFile(tmp_path / "edited")
    sealed = await CheckpointFile(tmp_path).last()
    assert sealed is not None
    edited = replace(sealed, checkpoint=replace(sealed.checkpoint, at=1))
    await log.append(edited, after="")
    (broken,) = await Checkpointer(store, log, KEY, ticking_clock()).compare()
    assert "its signature is invalid" in broken.reason
    assert signature_problem(replace(sealed, signature="no base64"), KEY) is not None


async def test_a_damaged_log_is_shown_at_start(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b"{}\n")
    (broken,) = await notary_of(MemoryStore(), tmp_path).compare()
    assert broken.stream == "checkpoints"
    assert "the last line of the checkpoint log is damaged" in broken.reason


async def test_sealing_anew_starts_from_what_is_there_and_keeps_the_old_log(tmp_path: Path) -> None:
    store = Tampered()
    await fill(store)
    checkpointer = notary_of(store, tmp_path)
    await checkpointer.seal()
    store.cut(14)
    assert await checkpointer.compare() != []
    checkpoint = await checkpointer.seal(restart=True)
    assert checkpoint is not None
    assert (checkpoint.number, checkpoint.events, checkpoint.previous) == (1, 14, "")
    assert await checkpointer.compare() == []
    assert (tmp_path / "log.1.jsonl").exists()
    await write(store, RUN_B, RunPaused(reason="on we go"), by=record_writer(7))
    after = await checkpointer.seal()
    assert after is not None
    assert after.number == 2


async def test_a_damaged_end_that_an_operator_has_accepted_is_no_news_at_the_next_start(tmp_path: Path) -> None:
    store = Tampered()
    await fill(store)
    checkpointer = notary_of(store, tmp_path)
    await checkpointer.seal()
    store.rewrite(RUN_A, 4, replace((await store.read(RUN_A))[3], actor="eve"))
    assert [(broken.stream, broken.n) for broken in await checkpointer.compare()] == [(RUN_A, 4)]
    checkpoint = await checkpointer.seal(restart=True)
    assert checkpoint is not None
    assert checkpoint.is_restart
    assert await checkpointer.compare() == []
    store.cut(14)
    assert await checkpointer.compare() != []


async def test_nobody_without_the_key_can_accept_a_journal(tmp_path: Path) -> None:
    store = Tampered()
    await fill(store)
    checkpointer = notary_of(store, tmp_path)
    await checkpointer.seal()
    store.rewrite(RUN_A, 4, replace((await store.read(RUN_A))[3], actor="eve"))
    await write(store, "store", JournalAccepted(reason="nothing to see", found="nothing"), by=record_writer(7))
    assert [(broken.stream, broken.n) for broken in await checkpointer.compare()] == [(RUN_A, 4)]


async def test_an_empty_store_is_not_sealed_again(tmp_path: Path) -> None:
    assert await notary_of(MemoryStore(), tmp_path).seal(restart=True) is None


def test_what_was_found_is_shown_in_one_line() -> None:
    assert found_text([]) == "nothing"
    assert found_text([Break("run_a", 3, "gone"), Break("journal", 1, "cut")]) == "run_a 3: gone; journal 1: cut"
    many = [Break("run_a", n, "gone") for n in range(notaries.FOUND_MAX + 5)]
    assert found_text(many).endswith("; and 5 more")


async def test_a_store_says_which_one_it_is() -> None:
    store = MemoryStore()
    assert await store_id(store) == ""
    await fill(store)
    assert await store_id(store) == "st_one"
