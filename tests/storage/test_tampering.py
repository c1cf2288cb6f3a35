"""Tampering: whoever has the database file, and no key, changes nothing unseen. All on a real SQLite file."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import astuple, replace

from engine.history import KEY, OTHER_KEY, PLAN, RUN_A, RUN_B, RUN_C, fill, notary_of, write
from handrail.domain.errors import HandrailError
from handrail.domain.journal.chain import GENESIS, Break, Record, body_digest, chained
from handrail.domain.journal.checkpoint import checkpoint_bytes, checkpoint_from, checkpoint_line, sealed_with
from handrail.domain.journal.event import ActionRecorded, DecisionRecorded
from handrail.engine.proving.audit import AuditResult, verify
from handrail.engine.proving.erasure import erase_payload
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.keys import PrivateKey
from handrail.storage.sqlite.store import SqliteStore
from support import record_writer, seeded_entropy, ticking_clock

COLUMNS = "seq, stream, n, at, kind, actor, step, attempt, format, salt, body, hash, erased"
FLIPS = 1_000

Raw = sqlite3.Connection


@pytest.fixture(scope="module")
async def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a journal: two checkpoints, an older copy from before the second, an erased event, and two events
    that are not sealed yet."""
    home = tmp_path_factory.mktemp("home")
    async with await SqliteStore.open(home / "journal.db") as store:
        by = await fill(store)
        checkpointer = notary_of(store, home / "checkpoints")
        await checkpointer.seal()
    shutil.copy(home / "journal.db", home / "older.db")
    async with await SqliteStore.open(home / "journal.db") as store:
        checkpointer = notary_of(store, home / "checkpoints")
        await write(store, RUN_B, DecisionRecorded(decision="go", reason="all green"), by=by)
        await write(store, RUN_C, ActionRecorded(description="told the team"), by=by)
        clock, entropy = ticking_clock(), seeded_entropy(3)
        await erase_payload(store, store, RUN_B, 3, reason="asked", actor="person:ada", clock=clock, entropy=entropy)
        await write(store, RUN_A, DecisionRecorded(decision="keep", reason="useful"), by=by)
        await checkpointer.seal()
        await write(store, RUN_C, DecisionRecorded(decision="again", reason="tomorrow"), by=by)
        await write(store, RUN_A, DecisionRecorded(decision="well", reason="done"), by=by)
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "home"
    shutil.copytree(made, copy)
    return copy


async def audited(home: Path, *, replay: bool = False, key: PrivateKey = KEY, **options: Any) -> AuditResult:
    async with await SqliteStore.open(home / "journal.db") as store:
        return await verify(store, CheckpointFile(home / "checkpoints"), key, replay=replay, **options)


def first(verdict: AuditResult) -> tuple[str, int]:
    assert not verdict.ok
    assert verdict.first_bad == verdict.breaks[0]
    return verdict.first_bad.stream, verdict.first_bad.n


@contextmanager
def attack(home: Path) -> Iterator[Raw]:
    """The database as an attacker has it: no triggers, no constraints that matter."""
    with closing(sqlite3.connect(home / "journal.db")) as raw:
        triggers = raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            raw.execute(f"DROP TRIGGER {name}")
        with raw:
            yield raw
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def records(raw: Raw, stream: str) -> list[Record]:
    rows = raw.execute(f"SELECT {COLUMNS} FROM event WHERE stream = ? ORDER BY n", (stream,))
    return [Record(*row[1:]) for row in rows]


def put(raw: Raw, record: Record) -> None:
    raw.execute(
        "UPDATE event SET actor = ?, body = ?, hash = ?, salt = ? WHERE stream = ? AND n = ?",
        (record.actor, record.body, record.hash, record.salt, record.stream, record.n),
    )


def rehash(raw: Raw, stream: str, *, after: int) -> None:
    """What a careful forger does: all hashes from here on made anew, and the row brought along."""
    prev = GENESIS
    for record in records(raw, stream):
        if record.n > after:
            put(raw, chained(prev, record))
        prev = records(raw, stream)[record.n - 1].hash
    count = len(records(raw, stream))
    raw.execute("UPDATE run SET n = ?, head = ? WHERE id = ?", (count, prev, stream))


def close_up(raw: Raw, removed: int) -> None:
    """Renumber the places behind a removed one, so that no gap is left."""
    (last,) = raw.execute("SELECT max(seq) FROM event").fetchone()
    for seq in range(removed + 1, last + 1):
        raw.execute("UPDATE event SET seq = ? WHERE seq = ?", (seq - 1, seq))


def place_of(raw: Raw, stream: str, n: int) -> int:
    (seq,) = raw.execute("SELECT seq FROM event WHERE stream = ? AND n = ?", (stream, n)).fetchone()
    return int(seq)


# --- a journal that nobody touched ----------------------------------------------------------------


async def test_an_untouched_journal_raises_no_alarm(home: Path) -> None:
    verdict = await audited(home, replay=True)
    assert verdict.breaks == ()
    assert (verdict.events, verdict.checkpoints, verdict.signed_events) == (22, 2, 20)
    async with await SqliteStore.open(home / "journal.db") as store:
        assert await notary_of(store, home / "checkpoints").compare() == []


# --- events: change, removal, insertion, swap, renumbering ----------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "body = x'7b7d'",
        "body = CAST(body || ' ' AS BLOB)",
        "at = at + 1",
        "kind = 'step_failed'",
        "actor = 'eve'",
        "step = 'other'",
        "step = NULL",
        "attempt = 7",
        "format = 0",
        "salt = zeroblob(16)",
        "hash = zeroblob(32)",
        "erased = zeroblob(32)",
    ],
)
async def test_a_changed_event_is_named(home: Path, change: str) -> None:
    with attack(home) as raw:
        raw.execute(f"UPDATE event SET {change} WHERE stream = ? AND n = 2", (RUN_A,))
    assert first(await audited(home)) == (RUN_A, 2)


async def test_a_changed_event_with_a_fitting_hash_breaks_the_chain_behind_it(home: Path) -> None:
    with attack(home) as raw:
        before, record = records(raw, RUN_A)[:2]
        put(raw, chained(before.hash, replace(record, actor="eve")))
    assert first(await audited(home)) == (RUN_A, 3)


async def test_a_stream_rewritten_with_care_is_named_by_the_first_checkpoint_that_knew_it(home: Path) -> None:
    with attack(home) as raw:
        put(raw, replace(records(raw, RUN_A)[1], actor="eve"))
        rehash(raw, RUN_A, after=1)
    verdict = await audited(home, replay=False)
    assert first(verdict) == (RUN_A, 4)
    assert verdict.breaks[0].reason == "its hash is not the one in checkpoint 1: the stream was rewritten"


async def test_a_receipt_names_what_was_rewritten_behind_the_last_checkpoint(home: Path) -> None:
    with attack(home) as raw:
        given = records(raw, RUN_A)[5]
        put(raw, replace(given, actor="eve"))
        rehash(raw, RUN_A, after=5)
    assert (await audited(home)).ok  # the chain alone can't know
    receipt = f"6:{given.hash.hex()[:16]}"
    assert first(await audited(home, receipts=[(RUN_A, receipt)])) == (RUN_A, 6)


async def test_a_receipt_names_what_was_removed(home: Path) -> None:
    with attack(home) as raw:
        given = records(raw, RUN_A)[1]
        raw.execute("DELETE FROM event WHERE stream = ? AND n = 2", (RUN_A,))
    receipt = f"2:{given.hash.hex()[:16]}"
    verdict = await audited(home, receipts=[(RUN_A, receipt)])
    assert Break(RUN_A, 2, f"the receipt {receipt} is for it, but it is gone") in verdict.breaks


@pytest.mark.parametrize(("stream", "n"), [(RUN_A, 2), (RUN_B, 1), (RUN_C, 5), ("store", 1), (PLAN, 2), (RUN_A, 5)])
async def test_a_removed_event_is_named(home: Path, stream: str, n: int) -> None:
    with attack(home) as raw:
        raw.execute("DELETE FROM event WHERE stream = ? AND n = ?", (stream, n))
    assert first(await audited(home)) == (stream, n)


async def test_a_removed_event_is_named_when_places_and_numbers_are_closed_up(home: Path) -> None:
    with attack(home) as raw:
        place = place_of(raw, RUN_A, 2)
        raw.execute("DELETE FROM event WHERE seq = ?", (place,))
        close_up(raw, place)
        for n in range(3, 7):
            raw.execute("UPDATE event SET n = ? WHERE stream = ? AND n = ?", (n - 1, RUN_A, n))
    assert first(await audited(home)) == (RUN_A, 2)


async def test_a_removed_event_shows_even_when_everything_behind_it_is_made_again(home: Path) -> None:
    with attack(home) as raw:
        place = place_of(raw, RUN_A, 2)
        raw.execute("DELETE FROM event WHERE seq = ?", (place,))
        close_up(raw, place)
        for n in range(3, 7):
            raw.execute("UPDATE event SET n = ? WHERE stream = ? AND n = ?", (n - 1, RUN_A, n))
        rehash(raw, RUN_A, after=1)
    verdict = await audited(home)
    assert first(verdict)[0] == RUN_A
    assert "checkpoint 1" in verdict.breaks[0].reason


async def test_an_inserted_event_is_named(home: Path) -> None:
    with attack(home) as raw:
        record = records(raw, RUN_B)[0]
        for n in range(5, 1, -1):
            raw.execute("UPDATE event SET n = ? WHERE stream = ? AND n = ?", (n + 1, RUN_B, n))
        place = place_of(raw, RUN_B, 1)
        for seq in range(22, place, -1):
            raw.execute("UPDATE event SET seq = ? WHERE seq = ?", (seq + 1, seq))
        forged = chained(record.hash, replace(record, n=2, actor="eve"))
        row = (place + 1, *astuple(forged))
        raw.execute(f"INSERT INTO event ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    assert first(await audited(home)) == (RUN_B, 3)


async def test_an_event_that_the_checkpoint_does_not_know_is_named(home: Path) -> None:
    with attack(home) as raw:
        for seq in range(22, 10, -1):
            raw.execute("UPDATE event SET seq = ? WHERE seq = ?", (seq + 1, seq))
        record = records(raw, RUN_A)[0]
        forged = chained(GENESIS, replace(record, stream="notes", n=1))
        row = (11, *astuple(forged))
        raw.execute(f"INSERT INTO event ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        # The store stays as long as it was: the forger takes the place of one that slid out of the checkpoint.
    verdict = await audited(home)
    assert not verdict.ok
    assert any("checkpoint 1" in broken.reason for broken in verdict.breaks)


async def test_events_whose_words_were_swapped_are_named(home: Path) -> None:
    with attack(home) as raw:
        _, two, three, *_ = records(raw, RUN_A)
        put(raw, replace(two, body=three.body, salt=three.salt))
        put(raw, replace(three, body=two.body, salt=two.salt))
    verdict = await audited(home)
    assert [(broken.stream, broken.n) for broken in verdict.breaks[:2]] == [(RUN_A, 2), (RUN_A, 3)]


@pytest.mark.parametrize("column", ["n", "seq"])
async def test_events_of_one_stream_that_changed_places_are_named(home: Path, column: str) -> None:
    with attack(home) as raw:
        one, two = place_of(raw, RUN_A, 2), place_of(raw, RUN_A, 3)
        swap = f"UPDATE event SET {column} = ? WHERE {column} = ? AND stream = ?"
        a, b = (one, two) if column == "seq" else (2, 3)
        for new, old in ((900, a), (a, b), (b, 900)):
            raw.execute(swap, (new, old, RUN_A))
    assert first(await audited(home)) == (RUN_A, 2)


async def test_events_of_two_streams_that_changed_places_are_seen_by_their_checkpoint(home: Path) -> None:
    with attack(home) as raw:
        a, b = place_of(raw, RUN_A, 3), place_of(raw, RUN_B, 3)
        assert b == a + 1
        for new, old in ((900, a), (a, b), (b, 900)):
            raw.execute("UPDATE event SET seq = ? WHERE seq = ?", (new, old))
    verdict = await audited(home)
    assert verdict.breaks == (Break("journal", 1, "places 1 to 16 are not in the order of checkpoint 1"),)


async def test_an_event_moved_to_the_end_of_the_store_is_named(home: Path) -> None:
    with attack(home) as raw:
        raw.execute("UPDATE event SET seq = 23 WHERE stream = ? AND n = 2", (RUN_A,))
    assert first(await audited(home)) == (RUN_A, 2)


async def test_an_event_moved_to_another_stream_is_named(home: Path) -> None:
    with attack(home) as raw:
        raw.execute("UPDATE event SET stream = ? WHERE stream = ? AND n = 6", (PLAN, RUN_C))
    verdict = await audited(home)
    assert first(verdict)[0] in (RUN_C, PLAN)


@pytest.mark.parametrize("column", ["seq", "n"])
async def test_a_store_that_was_renumbered_as_a_whole_is_seen(home: Path, column: str) -> None:
    with attack(home) as raw:
        raw.execute(f"UPDATE event SET {column} = {column} + 1000")
    assert not (await audited(home)).ok


# --- cut, rolled back, swapped --------------------------------------------------------------------


async def test_a_cut_tail_is_named(home: Path) -> None:
    with attack(home) as raw:
        raw.execute("DELETE FROM event WHERE seq > 18")
    verdict = await audited(home)
    assert first(verdict) in {(RUN_A, 5), ("store", 2)}
    words = "the journal is shorter than checkpoint 2 (18 < 20): it was cut, or an older copy was restored"
    assert verdict.breaks[0].reason == words


async def test_a_tail_cut_with_care_is_named(home: Path) -> None:
    with attack(home) as raw:
        raw.execute("DELETE FROM event WHERE seq > 19")
        rehash(raw, RUN_A, after=99)
        rehash(raw, RUN_C, after=99)
    assert first(await audited(home)) == (RUN_A, 5)


async def test_an_older_copy_put_back_is_seen_by_the_audit_and_at_start(home: Path) -> None:
    shutil.copy(home / "older.db", home / "journal.db")
    verdict = await audited(home, replay=True)
    assert not verdict.ok
    assert "(16 < 20): it was cut, or an older copy was restored" in verdict.breaks[0].reason
    assert {(broken.stream, broken.n) for broken in verdict.breaks} == {
        (RUN_A, 5),
        (RUN_B, 5),
        (RUN_C, 6),
        ("store", 2),
    }
    async with await SqliteStore.open(home / "journal.db") as store:
        found = await notary_of(store, home / "checkpoints").compare()
        assert "(16 < 20)" in found[0].reason


async def test_an_older_copy_that_went_on_is_seen(home: Path) -> None:
    shutil.copy(home / "older.db", home / "journal.db")
    async with await SqliteStore.open(home / "journal.db") as store:
        for n in range(10):
            await write(store, RUN_B, DecisionRecorded(decision=str(n), reason="other"), by=record_writer(n + 20))
    verdict = await audited(home)
    assert {(broken.stream, broken.n) for broken in verdict.breaks} == {(RUN_A, 5), (RUN_C, 6), ("store", 2)}


async def test_another_database_put_in_place_is_seen_by_the_audit_and_at_start(home: Path) -> None:
    (home / "journal.db").unlink()
    async with await SqliteStore.open(home / "journal.db") as store:
        await fill(store, name="st_two", seed=1)
    verdict = await audited(home)
    assert first(verdict) == ("store", 1)
    assert "the database was replaced by another" in verdict.breaks[0].reason
    async with await SqliteStore.open(home / "journal.db") as store:
        (found,) = await notary_of(store, home / "checkpoints").compare()
        assert "the database was replaced by another" in found.reason


async def test_another_database_that_claims_to_be_this_one_is_seen(home: Path) -> None:
    (home / "journal.db").unlink()
    async with await SqliteStore.open(home / "journal.db") as store:
        await fill(store, seed=1)
        await fill_up(store)
    assert "the stream was rewritten" in (await audited(home)).breaks[0].reason


async def fill_up(store: SqliteStore) -> None:
    for n in range(10):
        await write(store, RUN_B, DecisionRecorded(decision=str(n), reason="other"), by=record_writer(n + 20))


# --- the checkpoint log ---------------------------------------------------------------------------


def edit_log(home: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path = home / "checkpoints" / "log.jsonl"
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def backdated(line: bytes, key: PrivateKey | None = None) -> bytes:
    sealed = checkpoint_from(line)
    checkpoint = replace(sealed.checkpoint, at=1)
    if key is None:
        return checkpoint_line(replace(sealed, checkpoint=checkpoint))
    return checkpoint_line(sealed_with(checkpoint, key=sealed.key, signature=key.sign(checkpoint_bytes(checkpoint))))


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda lines: [lines[1], lines[0]], 1),
        (lambda lines: [lines[1]], 1),
        (lambda lines: [lines[0], lines[0]], 2),
        (lambda lines: [backdated(lines[0]), lines[1]], 1),
        (lambda lines: [lines[0], backdated(lines[1])], 2),
        (lambda lines: [lines[0], backdated(lines[1], OTHER_KEY)], 2),
        (lambda lines: [lines[0], b"{}\n", lines[1]], 2),
        (lambda lines: [lines[0].replace(b'"key"', b' "key"'), lines[1]], 1),
    ],
    ids=["reordered", "first removed", "repeated", "edited", "last edited", "signed anew", "inserted", "respaced"],
)
async def test_a_checkpoint_log_that_was_touched_is_named(
    home: Path, change: Callable[[list[bytes]], list[bytes]], number: int
) -> None:
    edit_log(home, change)
    assert first(await audited(home)) == ("checkpoints", number)


async def test_a_log_signed_by_another_key_is_named(home: Path) -> None:
    assert first(await audited(home, key=OTHER_KEY)) == ("store", 1)
    assert "another key" in (await audited(home, key=OTHER_KEY)).breaks[-1].reason


# --- texts, rows, erasures ------------------------------------------------------------------------


async def test_a_changed_definition_is_named(home: Path) -> None:
    with attack(home) as raw:
        raw.execute("UPDATE definition SET body = CAST('{}' AS BLOB)")
    verdict = await audited(home)
    assert first(verdict)[0] == "definitions"
    assert "has changed" in verdict.breaks[0].reason


async def test_a_removed_definition_is_named(home: Path) -> None:
    with attack(home) as raw:
        raw.execute("DELETE FROM definition")
    assert "its definition sha256:" in (await audited(home)).breaks[0].reason


@pytest.mark.parametrize(
    ("change", "stream", "needs_replay"),
    [
        (f"UPDATE run SET n = 1 WHERE id = '{RUN_A}'", RUN_A, False),
        (f"UPDATE run SET head = zeroblob(32) WHERE id = '{RUN_B}'", RUN_B, False),
        (f"UPDATE run SET id = 'run_zzzzzzzz' WHERE id = '{RUN_B}'", RUN_B, False),
        ("UPDATE plan SET n = 1", PLAN, False),
        ("DELETE FROM plan", PLAN, False),
        (f"UPDATE run SET status = 'running' WHERE id = '{RUN_A}'", RUN_A, True),
        (f"UPDATE run SET goal = 'other' WHERE id = '{RUN_C}'", RUN_C, True),
        (f"UPDATE run SET ended = NULL WHERE id = '{RUN_C}'", RUN_C, True),
        ("UPDATE step SET message = 'fine' WHERE message = '403'", RUN_C, True),
        ("UPDATE step SET attempts = attempts + 1 WHERE path = 'notes'", RUN_B, True),
        ("DELETE FROM step WHERE path = 'notes'", RUN_B, True),
        ("UPDATE step SET path = 'other' WHERE path = 'notes'", RUN_B, True),
        ("UPDATE plan SET name = 'Other'", PLAN, True),
        ("UPDATE plan SET retired = NULL", PLAN, True),
    ],
)
async def test_a_changed_projection_is_named(home: Path, change: str, stream: str, needs_replay: bool) -> None:
    with attack(home) as raw:
        assert raw.execute(change).rowcount == 1
    assert first(await audited(home, replay=True))[0] == stream
    assert (await audited(home)).ok == needs_replay


async def test_words_erased_without_a_note_are_named(home: Path) -> None:
    with attack(home) as raw:
        record = records(raw, RUN_B)[4]
        raw.execute(
            "UPDATE event SET salt = x'', body = ?, erased = ? WHERE stream = ? AND n = 5",
            (b'{"decision":"x","reason":"y"}', body_digest(record.salt, record.body), RUN_B),
        )
    verdict = await audited(home)
    assert first(verdict) == (RUN_B, 5)
    assert "no payload_erased event says so" in verdict.breaks[0].reason


async def test_words_put_into_the_rest_of_an_erased_event_are_named(home: Path) -> None:
    with attack(home) as raw:
        raw.execute(
            "UPDATE event SET body = ? WHERE stream = ? AND n = 3",
            (b'{"decision":"forged","reason":"forged"}', RUN_B),
        )
    verdict = await audited(home)
    assert first(verdict) == (RUN_B, 3)
    assert verdict.breaks[0].reason == "what is left of it differs from what its erasure recorded"


async def test_erased_words_put_back_from_an_older_copy_are_named(home: Path) -> None:
    with closing(sqlite3.connect(home / "older.db")) as raw:
        old = records(raw, RUN_B)[2]
    with attack(home) as raw:
        raw.execute(
            "UPDATE event SET salt = ?, body = ?, erased = NULL WHERE stream = ? AND n = 3", (old.salt, old.body, RUN_B)
        )
    verdict = await audited(home)
    assert first(verdict) == (RUN_B, 3)
    assert verdict.breaks[0].reason == "it was erased, but has content again"


async def test_a_number_where_words_should_be_is_a_break_and_no_crash(home: Path) -> None:
    with attack(home) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'event'")
    with attack(home) as raw:
        raw.execute("UPDATE event SET actor = x'ff' WHERE stream = ? AND n = 2", (RUN_A,))
    assert first(await audited(home, replay=True)) == (RUN_A, 2)


# --- chance ---------------------------------------------------------------------------------------


def dump(path: Path) -> object:
    """Every row of every table, byte for byte; the error itself if that can't be read."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as raw:
            raw.text_factory = bytes
            # When a migration was applied, and under which name, is no part of the journal; that it was, is.
            rows = ["migration", "event", "run", "step", "plan", "definition"]
            columns = ["number, digest", *["*"] * 5]
            return [raw.execute(f"SELECT {c} FROM {t}").fetchall() for c, t in zip(columns, rows, strict=True)]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return error


async def test_of_a_thousand_flipped_bits_every_one_that_changes_a_row_is_seen(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "home")
    path = tmp_path / "home" / "journal.db"
    whole = path.read_bytes()
    untouched = dump(path)
    chance = random.Random(20_261_115)
    changed, unseen = 0, []
    for bit in chance.sample(range(8 * len(whole)), FLIPS):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        if dump(path) == untouched:
            continue
        changed += 1
        if await passes(tmp_path / "home"):
            unseen.append(bit)
    assert changed > FLIPS / 20
    assert unseen == []


async def passes(home: Path) -> bool:
    try:
        async with await SqliteStore.open(home / "journal.db", read_only=True) as store:
            verdict = await verify(store, CheckpointFile(home / "checkpoints"), KEY, replay=True)
    except (HandrailError, UnicodeDecodeError):  # SQLite's words about a damaged schema quote the damage
        return False  # it does not even open: nobody takes that for a sound journal
    return verdict.ok
