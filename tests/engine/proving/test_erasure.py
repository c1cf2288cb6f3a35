"""Erasure: the words are gone for good, the chain holds, and everyone can see that it was done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from engine.history import KEY, PLAN, RUN_A, RUN_B, RUN_C, fill, notary_of, write
from handrail.domain.errors import Conflict, Forbidden, JournalConflict, NotFound, OtherProject
from handrail.domain.journal.chain import Head, Record, body_digest, first_break
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import DecisionRecorded, RunPaused
from handrail.domain.journal.projection import Change
from handrail.domain.journal.store_event import JournalAccepted, PayloadErased
from handrail.domain.project import unknown_project
from handrail.engine.proving import erasure as erasures
from handrail.engine.proving.audit import verify
from handrail.engine.proving.erasure import Within, erase_payload
from handrail.engine.proving.projection_repair import WholeStore
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.memory import MemoryStore
from handrail.storage.sqlite.store import SqliteStore
from support import record_writer, seeded_entropy, ticking_clock


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[WholeStore]:
    made = MemoryStore() if request.param == "memory" else await SqliteStore.open(tmp_path / "journal.db")
    async with made:
        await fill(made)
        yield made


async def erase(store: WholeStore, stream: str, n: int, *, reason: str = "asked by Bob") -> Record:
    return await erase_payload(
        store, store, stream, n, reason=reason, actor="person:ada", clock=ticking_clock(), entropy=seeded_entropy(4)
    )


async def test_the_words_are_gone_and_the_chain_holds(store: WholeStore, tmp_path: Path) -> None:
    await notary_of(store, tmp_path).seal()
    before = await store.read(RUN_B)
    erased = await erase(store, RUN_B, 3)
    after = await store.read(RUN_B)
    assert after == [*before[:2], erased, *before[3:]]
    assert b"tests are red" not in erased.body
    assert (erased.salt, erased.hash) == (b"", before[2].hash)
    assert erased.erased == body_digest(before[2].salt, before[2].body)
    assert entry_of(erased).event == DecisionRecorded(decision="[erased]", reason="[erased]", step="notes")
    assert first_break(Head(RUN_B), after)[1] is None
    verdict = await verify(store, CheckpointFile(tmp_path), KEY, replay=True)
    assert verdict.breaks == ()


async def test_the_erasure_is_an_event_with_both_digests(store: WholeStore) -> None:
    erased = await erase(store, RUN_B, 3)
    records = await store.read("store")
    assert first_break(Head("store"), records)[1] is None
    assert records[-1].actor == "person:ada"
    assert entry_of(records[-1]).event == PayloadErased(
        stream=RUN_B,
        event=3,
        digest=(erased.erased or b"").hex(),
        residue=body_digest(b"", erased.body).hex(),
        reason="asked by Bob",
    )


async def test_words_in_projections_are_gone_too(store: WholeStore, tmp_path: Path) -> None:
    await erase(store, RUN_A, 1)
    await erase(store, RUN_C, 3)
    await erase(store, RUN_C, 4)
    run = await store.run(RUN_A)
    assert run is not None
    assert (run.goal, run.status) == ("[erased]", "completed")
    assert [(step.status, step.message) for step in await store.steps(RUN_C)] == [("failed", "[erased]")]
    assert (await verify(store, CheckpointFile(tmp_path), KEY, replay=True)).ok


async def test_a_plans_note_can_be_erased(store: WholeStore, tmp_path: Path) -> None:
    erased = await erase(store, PLAN, 1)
    assert b"first" not in erased.body
    assert b"Ship it" in erased.body
    assert (await verify(store, CheckpointFile(tmp_path), KEY, replay=True)).ok


async def test_nothing_is_erased_twice(store: WholeStore) -> None:
    await erase(store, RUN_B, 3)
    with pytest.raises(Conflict, match="erased already"):
        await erase(store, RUN_B, 3)
    assert len(await store.read("store")) == 2


@pytest.mark.parametrize(("stream", "n"), [(RUN_B, 99), (RUN_B, 0), (RUN_B, -1), ("run_nowhere2", 1)])
async def test_what_never_was_is_not_found(store: WholeStore, stream: str, n: int) -> None:
    with pytest.raises(NotFound, match="there is no event"):
        await erase(store, stream, n)


async def test_the_stores_own_stream_can_not_be_erased(store: WholeStore) -> None:
    with pytest.raises(Forbidden, match="nothing in it can be erased"):
        await erase(store, "store", 1)


async def test_a_secret_in_the_reason_does_not_reach_the_journal(store: WholeStore) -> None:
    await erase(store, RUN_B, 3, reason="it held sk" + "-a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ")
    assert b"[redacted:api key]" in (await store.read("store"))[-1].body


class Raced(MemoryStore):
    """A store to which others write while an event is being erased."""

    races = 1
    late = 0

    async def erase(self, record: Record, note: Sequence[Record], change: Change) -> None:
        if self.races:
            self.races -= 1
            await write(
                self, "store", JournalAccepted(reason="meanwhile", found="nothing"), by=record_writer(self.races)
            )
        if self.late:
            self.late -= 1
            await write(self, RUN_B, RunPaused(reason="meanwhile"), by=record_writer(9))
        await super().erase(record, note, change)


async def test_a_note_that_others_overtake_is_written_again_behind_theirs(tmp_path: Path) -> None:
    store = Raced()
    await fill(store)
    await erase(store, RUN_B, 3)
    assert [record.kind for record in await store.read("store")] == [
        "store_created",
        "journal_accepted",
        "payload_erased",
    ]
    assert (await verify(store, CheckpointFile(tmp_path), KEY, replay=True)).ok


async def test_an_append_during_an_erasure_is_not_lost_from_the_projections(tmp_path: Path) -> None:
    store = Raced()
    store.races, store.late = 0, 1
    await fill(store)
    await erase(store, RUN_B, 3)
    assert len(await store.read(RUN_B)) == 5
    assert (await verify(store, CheckpointFile(tmp_path), KEY, replay=True)).breaks == ()


async def test_a_store_that_is_always_ahead_is_reported() -> None:
    store = Raced()
    store.races = erasures.TRIES_MAX
    await fill(store)
    with pytest.raises(JournalConflict, match="too many writers"):
        await erase(store, RUN_B, 3)


async def test_no_copy_of_the_words_is_left_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with await SqliteStore.open(path) as store:
        await fill(store)
        await erase(store, RUN_B, 3)
        files = [path, path.with_name("journal.db-wal")]
        assert not [file for file in files if file.exists() and b"tests are red" in file.read_bytes()]
    assert b"tests are red" not in path.read_bytes()


async def test_within_a_project_only_its_own_events_are_erased(store: WholeStore) -> None:
    before = await store.read(RUN_B)
    with pytest.raises(OtherProject, match="belongs to no project") as refused:
        await erase_payload(
            store,
            store,
            RUN_B,
            3,
            reason="x",
            actor="person:ada",
            clock=ticking_clock(),
            entropy=seeded_entropy(4),
            within=Within("prj_22222222", unknown_project),
        )
    assert "--all-projects" in refused.value.hint
    assert await store.read(RUN_B) == before
