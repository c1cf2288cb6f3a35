"""How fast is the journal beside raw SQLite, on the same disk, in the same run? And how fast is it verified?

    python bench/journal.py [folder]

Every append is one step event with its run row and its step row, chained and synced; raw SQLite writes the very same
rows, or the event rows alone, from tuples that were made before. Each side is warmed up until its log no longer grows,
then timed; records are made a slice at a time, outside the measured time, as fresh as an engine would hand them over.
Medians of interleaved repeats."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from msgspec.structs import astuple

from handrail.domain.journal.chain import GENESIS, SALT_BYTES, Record, chained
from handrail.domain.journal.codec import FORMAT, encode_body, kind_of
from handrail.domain.journal.event import RUN_PREFIX, StepCompleted
from handrail.domain.journal.projection import Change, RunRow, StepRow
from handrail.domain.json import canonical_bytes, digest
from handrail.engine.clock import new_id, system_entropy
from handrail.engine.proving.audit import verify
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.sqlite.migration import shipped, statements
from handrail.storage.sqlite.queries import PUT_EVENT, PUT_RUN, PUT_STEP
from handrail.storage.sqlite.store import SqliteStore

REPEATS = 7
WRITERS = 64
SLICES_MANY, WARM_MANY = 36, 12
SLICES_ONE, WARM_ONE = 100, 50
RUN_LENGTH = 20
VERIFIED = 256_000
NOW = 1_790_000_000_000

DEFINITION: dict[str, Any] = {"id": "bench", "steps": []}
DEFINITIONS = ((digest(DEFINITION), canonical_bytes(DEFINITION)),)

Appends = list[tuple[Record, Change]]


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    name: str
    value: str
    target: str = ""
    verdict: str = ""


def a_run() -> Appends:
    """What one writer appends: the events of a run, each about one of its steps."""
    run, prev, made = new_id(RUN_PREFIX, system_entropy), GENESIS, Appends()
    for n in range(1, RUN_LENGTH + 1):
        step = f"build/{n // 2}"
        output = {"artifact": f"dist/app-1.4.{n}.tar.gz", "size": 48_213 + n, "digest": "9f86d081884c7d65", "ok": True}
        event = StepCompleted(step=step, output=output)
        salt, body = system_entropy(SALT_BYTES), encode_body(event)
        record = chained(prev, Record(run, n, NOW + n, kind_of(event), "engine", step, 1, FORMAT, salt, body, b""))
        prev = record.hash
        made.append((record, Change(run=_run_row(record), steps=(_step_row(record, step),), definitions=DEFINITIONS)))
    return made


def _run_row(record: Record) -> RunRow:
    return RunRow(
        id=record.stream,
        workflow="release@1.4.0",
        definition=DEFINITIONS[0][0],
        mode="run",
        status="running",
        goal="ship the release",
        started=NOW,
        updated=record.at,
        ended=None,
        done=record.n // 2,
        n=record.n,
        head=record.hash,
    )


def _step_row(record: Record, step: str) -> StepRow:
    return StepRow(
        run=record.stream,
        path=step,
        status="completed",
        attempts=1,
        started=NOW,
        ended=record.at,
        due=None,
        actor="engine",
        proof="verified",
        compensation="",
        category="",
        message="",
    )


@contextlib.contextmanager
def raw_database(folder: Path) -> Iterator[sqlite3.Connection]:
    """SQLite without handrail: the event table, WAL and FULL; everything else as it comes."""
    connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    for migration in shipped():
        for statement in statements(migration.text):
            connection.execute(statement)
    yield connection
    connection.close()


def raw_rate(folder: Path, writers: int, slices: int, warm: int, *, with_rows: bool = False) -> float:
    """Events a second without handrail; `with_rows` also writes the rows of run and step, as handrail does."""
    with raw_database(folder) as connection:
        spent, seq, number_of_run = 0.0, count(1), count(1)
        for number in range(slices):
            work = [a_run() for _ in range(writers)]
            rows, numbers = event_rows(work, seq), [next(number_of_run) for _ in work]
            runs, steps = (run_rows(work, numbers), step_rows(work, numbers)) if with_rows else ([], [])
            start = time.perf_counter()
            for first in range(0, len(rows), writers):
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(PUT_EVENT, rows[first : first + writers])
                connection.executemany(PUT_RUN, runs[first : first + writers])
                connection.executemany(PUT_STEP, steps[first : first + writers])
                connection.execute("COMMIT")
            spent += time.perf_counter() - start if number >= warm else 0.0
    return (slices - warm) * writers * RUN_LENGTH / spent


def run_rows(work: Sequence[Appends], numbers: Sequence[int]) -> list[tuple[Any, ...]]:
    """The rows of the runs, as each append leaves them."""
    return [(number, *astuple(change.run)) for number, change in changes_of(work, numbers) if change.run]


def step_rows(work: Sequence[Appends], numbers: Sequence[int]) -> list[tuple[Any, ...]]:
    """The rows of the steps, as each append leaves them."""
    return [(number, *astuple(step)[1:]) for number, change in changes_of(work, numbers) for step in change.steps]


def changes_of(work: Sequence[Appends], numbers: Sequence[int]) -> Iterator[tuple[int, Change]]:
    for at_once in zip(*work, strict=True):
        yield from ((number, change) for number, (_, change) in zip(numbers, at_once, strict=True))


def event_rows(work: Sequence[Appends], seq: Iterator[int]) -> list[tuple[Any, ...]]:
    """The rows that these appends put into the event table, in the order in which they come."""
    records = (record for record, _ in chain.from_iterable(zip(*work, strict=True)))
    return [(place, *astuple(record)[:-1]) for place, record in zip(seq, records, strict=False)]


async def store_rate(folder: Path, writers: int, slices: int, warm: int) -> float:
    async with await SqliteStore.open(folder / "journal.db") as store:

        async def write(appends: Appends) -> None:
            for record, change in appends:
                await store.append((record,), change)

        spent = 0.0
        for number in range(slices):
            work = [a_run() for _ in range(writers)]
            start = time.perf_counter()
            await asyncio.gather(*map(write, work))
            spent += time.perf_counter() - start if number >= warm else 0.0
    return (slices - warm) * writers * RUN_LENGTH / spent


async def verified(store: SqliteStore, folder: Path) -> int:
    """Prove the whole store, as `handrail journal verify` does: how many events there are."""
    verdict = await verify(store, CheckpointFile(folder / "checkpoints"), None)
    if not verdict.ok:
        raise SystemExit(f"the journal does not hold: {verdict.first_bad}")
    return verdict.events


@contextlib.contextmanager
def fresh(parent: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=parent))
    yield folder
    shutil.rmtree(folder)


async def writing(parent: Path) -> list[Figure]:
    rates: dict[str, list[float]] = {"raw one": [], "one": [], "raw many": [], "raw rows": [], "many": []}
    for _ in range(REPEATS):
        for name, writers, slices, warm in (
            ("one", 1, SLICES_ONE, WARM_ONE),
            ("many", WRITERS, SLICES_MANY, WARM_MANY),
        ):
            with fresh(parent) as folder:
                rates[f"raw {name}"].append(raw_rate(folder, writers, slices, warm))
            with fresh(parent) as folder:
                rates[name].append(await store_rate(folder, writers, slices, warm))
        with fresh(parent) as folder:
            rates["raw rows"].append(raw_rate(folder, WRITERS, SLICES_MANY, WARM_MANY, with_rows=True))
    raw_one, one_rate, raw_many, raw_rows, many_rate = (statistics.median(values) for values in rates.values())
    return [
        Figure("raw SQLite, one row a commit", f"{raw_one:,.0f} events/s"),
        Figure("1 writer", f"{one_rate:,.0f} events/s"),
        compared("  beside raw", one_rate / raw_one, 0.25),
        Figure(f"raw SQLite, {WRITERS} event rows a commit", f"{raw_many:,.0f} events/s"),
        Figure(f"raw SQLite, {WRITERS} event, run and step rows a commit", f"{raw_rows:,.0f} events/s"),
        Figure(f"{WRITERS} writers", f"{many_rate:,.0f} events/s"),
        compared("  beside raw, the same rows", many_rate / raw_rows, 0.5),
        compared("  beside raw, event rows alone", many_rate / raw_many, 0.5),
    ]


async def reading(parent: Path) -> list[Figure]:
    with fresh(parent) as folder:
        path = folder / "journal.db"
        await store_rate(folder, WRITERS, VERIFIED // WRITERS // RUN_LENGTH, 0)
        size = path.stat().st_size
        rates = []
        async with await SqliteStore.open(path, read_only=True) as store:
            for _ in range(REPEATS):
                start = time.perf_counter()
                count = await verified(store, folder)
                rates.append(count / (time.perf_counter() - start))
    rate = statistics.median(rates)
    return [
        compared(f"verify {VERIFIED:,} events, events/s", rate, 200_000, "{:,.0f}"),
        compared("bytes on disk an event, with its run and step rows", size / VERIFIED, 700, "{:,.0f}", most=True),
    ]


def compared(name: str, value: float, target: float, form: str = "{:.2f}", *, most: bool = False) -> Figure:
    is_met = value <= target if most else value >= target
    return Figure(
        name, form.format(value), f"{'<=' if most else '>='} {form.format(target)}", "ok" if is_met else "MISSED"
    )


async def main(parent: Path) -> int:
    figures = [*await writing(parent), *await reading(parent)]
    for figure in figures:
        print(f"{figure.name:52} {figure.value:>20}  {figure.target:>12}  {figure.verdict}")
    return int(any(figure.verdict == "MISSED" for figure in figures))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else os.curdir) as chosen:
        raise SystemExit(asyncio.run(main(Path(chosen))))
