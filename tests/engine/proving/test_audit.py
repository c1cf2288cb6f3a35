"""The audit: what was written is proved, and whatever is not what was written is named."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.history import KEY, OTHER_KEY, PLAN, RUN_A, RUN_B, RUN_C, STARTED, fill, notary_of, write
from handrail.domain.errors import IntegrityBroken, Invalid, NotFound, Unavailable
from handrail.domain.journal.chain import GENESIS, Break, Record, body_digest, chained, receipt
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_digest, checkpoint_from, checkpoint_line
from handrail.domain.journal.event import Entry, RunPaused
from handrail.domain.journal.mark import START, Mark
from handrail.domain.journal.projection import NO_CHANGE, Change, PlanRow, RunRow, StepRow
from handrail.domain.journal.store_event import JournalAccepted, PayloadErased
from handrail.engine.journal import Row
from handrail.engine.proving import audit as audits
from handrail.engine.proving.audit import KEYLESS, AuditResult, verify
from handrail.engine.proving.projection_repair import rebuild
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.memory import MemoryStore
from support import record_writer


class Tampered(MemoryStore):
    """A store whose events, rows and texts can be changed behind everyone's back."""

    unreadable: frozenset[int] = frozenset()
    unreadable_streams: frozenset[str] = frozenset()
    rows_are_unreadable = False
    told_flaws: Sequence[str] = ()

    def change(self, stream: str, n: int, **fields: object) -> None:
        place = self._streams[stream][n - 1]
        self._places[place] = replace(self._places[place], **fields)

    def change_run(self, run: str, **fields: object) -> None:
        self._runs[run] = replace(self._runs[run], **fields)

    async def rows(
        self, *, after: Mark = START, stops: Sequence[Mark] = (), size: int = 2_000
    ) -> AsyncIterator[list[Row]]:
        async for batch in super().rows(after=after, stops=stops, size=size):
            for _, seq, *_rest in batch:
                if seq in self.unreadable:
                    raise IntegrityBroken(f"the event at place {seq} can't be read")
            yield batch

    async def read(self, stream: str, *, after: int = 0, limit: int = 100_000) -> list[Record]:
        if stream in self.unreadable_streams:
            raise IntegrityBroken(f"{stream} can't be read")
        return await super().read(stream, after=after, limit=limit)

    async def runs(
        self, *, status: Sequence[str] = (), after: str = "", limit: int = 50, project: str | None = None
    ) -> list[RunRow]:
        if self.rows_are_unreadable:
            raise IntegrityBroken("a stored RunRow can't be read")
        return await super().runs(status=status, after=after, limit=limit, project=project)

    async def flaws(self, *, thorough: bool = True) -> list[str]:
        return list(self.told_flaws)


@pytest.fixture
async def store() -> Tampered:
    store = Tampered()
    await fill(store)
    return store


async def audited(store: MemoryStore, folder: Path, **options: object) -> AuditResult:
    return await verify(store, CheckpointFile(folder), KEY, **options)  # type: ignore[arg-type]


def places(verdict: AuditResult) -> list[tuple[str, int]]:
    return [(broken.stream, broken.n) for broken in verdict.breaks]


# --- a journal that nobody touched ----------------------------------------------------------------


async def test_a_journal_as_it_was_written_is_proved(store: Tampered, tmp_path: Path) -> None:
    await notary_of(store, tmp_path).seal()
    await write(store, RUN_B, RunPaused(reason="x"), by=record_writer(5))
    verdict = await audited(store, tmp_path, replay=True)
    assert verdict == AuditResult(
        ok=True,
        events=17,
        streams=5,
        checkpoints=1,
        signed_events=16,
        notes=("1 events since the last checkpoint are not signed",),
    )


async def test_an_empty_store_is_proved(tmp_path: Path) -> None:
    verdict = await audited(MemoryStore(), tmp_path, replay=True)
    assert (verdict.ok, verdict.events, verdict.streams) == (True, 0, 0)


async def test_a_store_without_checkpoints_is_shown_so_and_is_no_broken_one(store: Tampered, tmp_path: Path) -> None:
    verdict = await audited(store, tmp_path)
    assert (verdict.ok, verdict.checkpoints, verdict.signed_events) == (True, 0, 0)
    assert verdict.notes == ("there is no checkpoint: nothing is signed",)


async def test_checkpoints_that_can_not_be_checked_prove_nothing(store: Tampered, tmp_path: Path) -> None:
    await notary_of(store, tmp_path).seal()
    verdict = await verify(store, CheckpointFile(tmp_path), None)
    assert (verdict.ok, [one.reason for one in verdict.breaks]) == (False, [KEYLESS])


class Busy(Tampered):
    """A store to which others append while it is looked at."""

    by = record_writer(6)
    appends = 2

    async def plans(self, *, after: str = "", limit: int = 50, project: str | None = None) -> list[PlanRow]:
        await self.go_on()
        return await super().plans(after=after, limit=limit, project=project)

    async def steps(self, run: str) -> list[StepRow]:
        await self.go_on()
        return await super().steps(run)

    async def go_on(self) -> None:
        if self.appends:
            self.appends -= 1
            await write(self, RUN_A, RunPaused(reason="meanwhile"), by=self.by)
            await write(self, f"run_dddddd{self.appends:02d}", STARTED, by=self.by)


async def test_an_audit_of_a_store_in_use_raises_no_false_alarm(tmp_path: Path) -> None:
    busy = Busy()
    busy.appends = 0
    await fill(busy)
    busy.appends = 3
    verdict = await audited(busy, tmp_path, replay=True)
    assert verdict.breaks == ()
    assert busy.appends == 0


# --- events ---------------------------------------------------------------------------------------


async def test_a_changed_event_is_named(store: Tampered, tmp_path: Path) -> None:
    store.change(RUN_A, 3, body=b'{"step":"tag","output":"forged"}')
    verdict = await audited(store, tmp_path)
    assert not verdict.ok
    assert verdict.first_bad == Break(RUN_A, 3, "its hash does not match its content and place")


async def test_the_first_of_several_is_named_first(store: Tampered, tmp_path: Path) -> None:
    for stream, n in ((RUN_C, 2), (RUN_A, 1), (RUN_B, 3)):
        store.change(stream, n, actor="eve")
    verdict = await audited(store, tmp_path)
    assert places(verdict)[:3] == [(RUN_A, 1), (RUN_B, 3), (RUN_C, 2)]
    assert verdict.first_bad == verdict.breaks[0]


async def test_an_event_that_can_not_be_read_is_a_break_and_no_crash(store: Tampered, tmp_path: Path) -> None:
    await notary_of(store, tmp_path).seal()
    store.unreadable = frozenset({5, 9})
    verdict = await audited(store, tmp_path)
    assert places(verdict) == [(RUN_B, 2), (RUN_A, 4)]
    assert verdict.breaks[0].reason == "the event at place 5 can't be read"


async def test_an_unsealed_end_of_a_stream_that_can_not_be_read_is_named_by_its_row(
    store: Tampered, tmp_path: Path
) -> None:
    store.unreadable = frozenset({9})
    store.unreadable_streams = frozenset({RUN_A})
    verdict = await audited(store, tmp_path)
    assert places(verdict) == [("journal", 9), (RUN_A, 4)]


async def test_a_store_that_can_not_be_read_at_all_is_given_up_soon(
    store: Tampered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audits, "DAMAGES_MAX", 3)
    store.unreadable = frozenset(range(100))
    verdict = await audited(store, tmp_path)
    assert verdict.events == 0
    assert not verdict.ok


async def test_an_event_of_the_store_that_is_no_event_is_named(store: Tampered, tmp_path: Path) -> None:
    for body in (b"\xff", b'{"store":"\xff"}', b"[" * 5_000):
        store.change("store", 1, body=body)
        verdict = await audited(store, tmp_path)
        assert verdict.first_bad is not None
        assert verdict.first_bad.stream == "store"


async def test_an_event_of_the_store_that_no_handrail_knows_is_named(store: Tampered, tmp_path: Path) -> None:
    (record,) = await store.read("store")
    forged = chained(GENESIS, replace(record, kind="store_danced"))
    store.change("store", 1, kind="store_danced", hash=forged.hash)
    verdict = await audited(store, tmp_path)
    assert places(verdict) == [("store", 1)]
    assert "store_danced" in verdict.breaks[0].reason


# --- checkpoints ----------------------------------------------------------------------------------


async def sealed_thrice(store: Tampered, folder: Path) -> list[bytes]:
    checkpointer = notary_of(store, folder)
    by = record_writer(8)
    for n in range(3):
        await write(store, RUN_B, RunPaused(reason=str(n)), by=by)
        await checkpointer.seal()
    return (folder / "log.jsonl").read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("kept", "bad"), [([1, 0, 2], 1), ([1, 2], 1), ([0, 2], 2), ([0, 1, 1], 3), ([0, 2, 1], 2)], ids=str
)
async def test_a_log_with_lines_removed_or_moved_is_named(
    store: Tampered, tmp_path: Path, kept: list[int], bad: int
) -> None:
    lines = await sealed_thrice(store, tmp_path)
    (tmp_path / "log.jsonl").write_bytes(b"".join(lines[index] for index in kept))
    verdict = await audited(store, tmp_path)
    assert places(verdict) == [("checkpoints", bad)]


async def test_an_edited_checkpoint_is_named(store: Tampered, tmp_path: Path) -> None:
    lines = await sealed_thrice(store, tmp_path)
    sealed = checkpoint_from(lines[1])
    edited = replace(sealed, checkpoint=replace(sealed.checkpoint, at=7))
    (tmp_path / "log.jsonl").write_bytes(b"".join([lines[0], checkpoint_line(edited), lines[2]]))
    verdict = await audited(store, tmp_path)
    assert verdict.breaks == (Break("checkpoints", 2, "its signature is invalid: it was edited"),)
    assert verdict.checkpoints == 1


async def test_a_line_that_is_no_checkpoint_is_named(store: Tampered, tmp_path: Path) -> None:
    lines = await sealed_thrice(store, tmp_path)
    (tmp_path / "log.jsonl").write_bytes(b"".join([lines[0], b"\xff\n", lines[2]]))
    verdict = await audited(store, tmp_path)
    assert places(verdict) == [("checkpoints", 2)]
    assert "line 2 of the checkpoint log is damaged" in verdict.breaks[0].reason


async def test_a_log_signed_by_another_key_is_named(tmp_path: Path) -> None:
    store = Tampered()
    await fill(store)
    await notary_of(store, tmp_path, key=OTHER_KEY).seal()
    verdict = await audited(store, tmp_path)
    assert places(verdict) == [("checkpoints", 1)]
    assert "another key" in verdict.breaks[0].reason


async def test_a_store_made_with_another_key_is_named_until_somebody_accepts_it(tmp_path: Path) -> None:
    store = Tampered()
    await fill(store, key=OTHER_KEY.public)
    await notary_of(store, tmp_path).seal()
    verdict = await audited(store, tmp_path)
    assert places(verdict) == [("store", 1)]
    assert "created with a different key" in verdict.breaks[0].reason
    accepted = JournalAccepted(reason="the key was lost", found="another key")
    await write(store, "store", accepted, by=record_writer(9), actor="person:ada")
    assert not (await audited(store, tmp_path)).ok  # whoever has no key can write this too
    await notary_of(store, tmp_path).seal(restart=True)
    verdict = await audited(store, tmp_path)
    assert verdict.ok
    assert "person:ada accepted a journal that differed from its checkpoint (the key was lost)" in verdict.notes[0]


async def test_a_rewritten_stream_is_seen_by_its_checkpoint(store: Tampered, tmp_path: Path) -> None:
    await notary_of(store, tmp_path).seal()
    prev = (await store.read(RUN_A))[2].hash
    forged = chained(prev, replace((await store.read(RUN_A))[3], actor="eve"))
    store.change(RUN_A, 4, actor="eve", hash=forged.hash)
    store.change_run(RUN_A, head=forged.hash)
    verdict = await audited(store, tmp_path)
    assert places(verdict) == [(RUN_A, 4)]
    assert "checkpoint 1: the stream was rewritten" in verdict.breaks[0].reason


async def test_another_database_is_named_as_such_and_nothing_else(store: Tampered, tmp_path: Path) -> None:
    await notary_of(store, tmp_path).seal()
    other = MemoryStore()
    await fill(other, name="st_two", seed=1)
    verdict = await audited(other, tmp_path)
    assert places(verdict) == [("store", 1)]
    assert verdict.breaks[0].reason.startswith("the database was replaced by another")
    assert verdict.signed_events == 0


# --- erasures, definitions, receipts, the database itself -------------------------------------------


async def test_words_that_are_gone_without_a_note_are_named(store: Tampered, tmp_path: Path) -> None:
    record = (await store.read(RUN_B))[2]
    store.change(RUN_B, 3, salt=b"", body=b'{"decision":"x","reason":"y"}', erased=body_of(record))
    verdict = await audited(store, tmp_path)
    assert places(verdict) == [(RUN_B, 3)]
    assert "no payload_erased event says so" in verdict.breaks[0].reason


def body_of(record: Record) -> bytes:
    return body_digest(record.salt, record.body)


@pytest.mark.parametrize(
    ("digest", "salt", "body", "words"),
    [
        ("00", b"", b"{}", "its digest is not the one"),
        ("", b"s" * 16, b"{}", "what is left of it differs"),
        ("", b"", b"[]", "what is left of it differs"),
    ],
)
async def test_what_an_erasure_left_must_be_what_its_note_says(
    store: Tampered, tmp_path: Path, digest: str, salt: bytes, body: bytes, words: str
) -> None:
    record = (await store.read(RUN_B))[2]
    digest = digest or body_of(record).hex()
    note = PayloadErased(stream=RUN_B, event=3, digest=digest, residue=body_digest(b"", b"{}").hex(), reason="asked")
    await write(store, "store", note, by=record_writer(9))
    store.change(RUN_B, 3, salt=salt, body=body, erased=body_of(record))
    verdict = await audited(store, tmp_path)
    assert places(verdict) == [(RUN_B, 3)]
    assert words in verdict.breaks[0].reason
    assert places(await audited(store, tmp_path, stream=RUN_B)) == [(RUN_B, 3)]


async def test_words_that_stand_where_an_erasure_was_noted_are_named(store: Tampered, tmp_path: Path) -> None:
    note = PayloadErased(stream=RUN_B, event=3, digest="00", residue="00", reason="asked")
    await write(store, "store", note, by=record_writer(9))
    verdict = await audited(store, tmp_path)
    assert verdict.breaks == (Break(RUN_B, 3, "it was erased, but has content again"),)


async def test_a_changed_or_missing_definition_is_named(store: Tampered, tmp_path: Path) -> None:
    (content_hash,) = store._definitions
    store._definitions[content_hash] = b"{}"
    verdict = await audited(store, tmp_path)
    assert verdict.breaks == (Break("definitions", 0, f"the text of {content_hash} has changed"),)
    store._definitions.clear()
    assert places(await audited(store, tmp_path)) == [(RUN_A, 1)]
    assert places(await audited(store, tmp_path, replay=True)) == [(RUN_C, 1)]


async def test_definitions_that_can_not_be_read_are_a_break(
    store: Tampered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: MemoryStore) -> list[tuple[str, bytes]]:
        raise IntegrityBroken("a stored definition can't be read")

    monkeypatch.setattr(Tampered, "definitions", fail)
    assert (await audited(store, tmp_path)).breaks == (Break("definitions", 0, "a stored definition can't be read"),)


async def test_a_receipt_is_borne_out_by_its_event(store: Tampered, tmp_path: Path) -> None:
    records = await store.read(RUN_A)
    given = [(RUN_A, receipt(record.n, record.hash)) for record in records]
    assert (await audited(store, tmp_path, receipts=given)).ok
    assert (await audited(store, tmp_path, receipts=given, stream=RUN_A)).ok
    gone, other = (RUN_A, "5:" + "00" * 8), (RUN_B, given[1][1])
    verdict = await audited(store, tmp_path, receipts=[*given, gone, other])
    assert places(verdict) == [(RUN_A, 5), (RUN_B, 2)]
    assert "it is gone" in verdict.breaks[0].reason
    assert "a different event in its place" in verdict.breaks[1].reason


@pytest.mark.parametrize("text", ["", "14", "14:", "14:9f2c", "0:" + "00" * 8, "x:" + "00" * 8, "1:" + "zz" * 8])
async def test_what_is_no_receipt_is_refused(store: Tampered, tmp_path: Path, text: str) -> None:
    with pytest.raises(Invalid, match="is not a receipt"):
        await audited(store, tmp_path, receipts=[(RUN_A, text)])


async def test_a_receipt_for_a_stream_that_can_not_be_read_is_a_break(store: Tampered, tmp_path: Path) -> None:
    store.unreadable_streams = frozenset({"run_nowhere2"})
    verdict = await audited(store, tmp_path, receipts=[("run_nowhere2", "1:" + "00" * 8)])
    assert places(verdict) == [("run_nowhere2", 1)]


async def test_what_the_database_finds_is_shown_last(store: Tampered, tmp_path: Path) -> None:
    store.told_flaws = ["row 3 missing from index"]
    store.change(RUN_A, 3, actor="eve")
    verdict = await audited(store, tmp_path)
    assert verdict.breaks[-1] == Break("database", 0, "row 3 missing from index")
    assert verdict.first_bad is not None
    assert verdict.first_bad.stream == RUN_A


# --- rows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "n", "words"),
    [
        ({"n": 3}, 4, "its row is at event 3, but the stream has more"),
        ({"n": 9}, 9, "there is no event 9"),
        ({"head": bytes(32)}, 4, "its row has a different hash"),
    ],
    ids=str,
)
async def test_a_row_that_does_not_stand_at_the_end_of_its_stream_is_named(
    store: Tampered, tmp_path: Path, fields: dict[str, object], n: int, words: str
) -> None:
    store.change_run(RUN_A, **fields)
    for stream in (None, RUN_A):
        verdict = await audited(store, tmp_path, stream=stream)
        assert places(verdict) == [(RUN_A, n)]
        assert words in verdict.breaks[0].reason


async def test_a_missing_and_a_stray_row_are_named(store: Tampered, tmp_path: Path) -> None:
    store._runs["run_stray234"] = replace(store._runs[RUN_A], id="run_stray234")
    del store._runs[RUN_B]
    store._plans["", "ship-release"] = replace(store._plans["", "ship-release"], n=1)
    verdict = await audited(store, tmp_path)
    assert sorted(places(verdict)) == [(PLAN, 2), (RUN_B, 2), ("run_stray234", 4)]
    assert places(await audited(store, tmp_path, stream="run_stray234")) == [("run_stray234", 4)]


async def test_rows_that_can_not_be_read_are_a_break(store: Tampered, tmp_path: Path) -> None:
    store.rows_are_unreadable = True
    verdict = await audited(store, tmp_path)
    assert verdict.breaks == (Break("rows", 0, "a stored RunRow can't be read"),)
    store.change_run(RUN_A, n=3)
    assert places(await audited(store, tmp_path)) == [(RUN_A, 4)]


async def test_rows_are_compared_with_the_fold_when_asked(store: Tampered, tmp_path: Path) -> None:
    store.change_run(RUN_A, status="running")
    store._steps[RUN_C]["tag"] = replace(store._steps[RUN_C]["tag"], message="fine")
    store._steps[RUN_B]["extra"] = replace(store._steps[RUN_B]["notes"], path="extra")
    store._plans["", "ship-release"] = replace(store._plans["", "ship-release"], name="Other")
    assert (await audited(store, tmp_path)).ok
    verdict = await audited(store, tmp_path, replay=True)
    assert [(broken.stream, broken.reason) for broken in verdict.breaks] == [
        (PLAN, "its row does not match its events"),
        (RUN_A, "its row does not match its events"),
        (RUN_B, "its row of step 'extra' has no events"),
        (RUN_C, "its row of step 'tag' does not match its events"),
    ]
    del store._steps[RUN_C]["tag"]
    verdict = await audited(store, tmp_path, stream=RUN_C, replay=True)
    assert verdict.breaks == (Break(RUN_C, 0, "its row of step 'tag' is missing"),)


async def test_an_event_that_can_not_be_decoded_is_named_when_asked(store: Tampered, tmp_path: Path) -> None:
    records = await store.read(RUN_C)
    forged = chained(records[3].hash, replace(records[4], kind="run_danced"))
    store.change(RUN_C, 5, kind="run_danced", hash=forged.hash)
    store.change_run(RUN_C, head=forged.hash)
    assert (await audited(store, tmp_path)).ok
    verdict = await audited(store, tmp_path, replay=True)
    assert places(verdict) == [(RUN_C, 0)]
    assert "run_danced" in verdict.breaks[0].reason


async def test_a_history_that_makes_no_sense_is_a_break_and_no_crash(store: Tampered, tmp_path: Path) -> None:
    def stumble(stream: str, entries: Iterable[Entry]) -> Change:
        raise KeyError(stream)

    verdict = await audited(store, tmp_path, replay=True, fold=stumble)
    assert not verdict.ok
    assert "its events can't be replayed" in verdict.breaks[0].reason


# --- one stream -----------------------------------------------------------------------------------


async def test_one_stream_is_proved_by_itself(store: Tampered, tmp_path: Path) -> None:
    await notary_of(store, tmp_path).seal()
    await write(store, RUN_B, RunPaused(reason="x"), by=record_writer(5))
    store.change(RUN_A, 3, actor="eve")
    verdict = await audited(store, tmp_path, stream=RUN_B, replay=True)
    assert (verdict.ok, verdict.events, verdict.streams, verdict.signed_events) == (True, 5, 1, 4)
    assert places(await audited(store, tmp_path, stream=RUN_A)) == [(RUN_A, 3)]


async def test_one_stream_is_compared_with_its_checkpoints(store: Tampered, tmp_path: Path) -> None:
    await notary_of(store, tmp_path).seal()
    records = await store.read(RUN_A)
    forged = chained(records[2].hash, replace(records[3], actor="eve"))
    store.change(RUN_A, 4, actor="eve", hash=forged.hash)
    store.change_run(RUN_A, head=forged.hash)
    assert places(await audited(store, tmp_path, stream=RUN_A)) == [(RUN_A, 4)]
    store._streams[RUN_A].pop()
    verdict = await audited(store, tmp_path, stream=RUN_A)
    assert verdict.breaks == (Break(RUN_A, 4, "a checkpoint has 4 events of it, the store has 3"),)


async def test_a_stream_that_can_not_be_read_is_a_break(store: Tampered, tmp_path: Path) -> None:
    store.unreadable_streams = frozenset({RUN_A})
    assert places(await audited(store, tmp_path, stream=RUN_A)) == [(RUN_A, 1)]


async def test_a_stream_that_never_was_is_not_found(store: Tampered, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="run_nowhere2"):
        await audited(store, tmp_path, stream="run_nowhere2")


async def test_the_stores_own_stream_can_be_proved_by_itself(store: Tampered, tmp_path: Path) -> None:
    assert (await audited(store, tmp_path, stream="store", replay=True)).ok


# --- mending --------------------------------------------------------------------------------------


async def test_nothing_is_fixed_where_nothing_is_broken(store: Tampered) -> None:
    assert await rebuild(store) == 0


async def test_rows_are_fixed_from_the_events_alone(store: Tampered, tmp_path: Path) -> None:
    before = (dict(store._runs), {run: dict(steps) for run, steps in store._steps.items()}, dict(store._plans))
    events = list(store._places)
    store.change_run(RUN_A, status="running")
    del store._runs[RUN_B]
    store._steps[RUN_C]["extra"] = replace(store._steps[RUN_C]["tag"], path="extra")
    store._plans["", "ship-release"] = replace(store._plans["", "ship-release"], name="Other")
    store._runs["run_stray234"] = replace(store._runs[RUN_A], id="run_stray234")
    assert await rebuild(store) == 5
    after = (dict(store._runs), {run: dict(steps) for run, steps in store._steps.items() if steps}, dict(store._plans))
    assert after == before
    assert store._places == events
    assert (await audited(store, tmp_path, replay=True)).ok
    assert await rebuild(store) == 0


async def test_rows_that_never_settle_are_reported(store: Tampered, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ignore(self: MemoryStore, stream: str, change: Change) -> None:
        assert change != NO_CHANGE

    monkeypatch.setattr(Tampered, "rebuild", ignore)
    store.change_run(RUN_A, status="running")
    with pytest.raises(Unavailable, match="changes too fast to be rebuilt"):
        await rebuild(store)


async def test_a_checkpoint_refers_to_the_one_before_by_its_bytes(store: Tampered, tmp_path: Path) -> None:
    lines = await sealed_thrice(store, tmp_path)
    sealed: list[SealedCheckpoint] = [checkpoint_from(line) for line in lines]
    assert sealed[1].checkpoint.previous == checkpoint_digest(sealed[0].checkpoint)
