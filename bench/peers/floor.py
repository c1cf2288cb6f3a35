"""The reference core: the least that a durable engine in Python can do. A ceiling for handrail, not a product.

    python -m bench.peers.floor --shape pure --runs 200 --steps 10 --db FILE

Plain sqlite3, WAL, synchronous=FULL; one thread commits whatever has queued; a step is two event rows with a small JSON
body each, in one commit, or for a step with an effect in two: the intent first. `--shape commits`: rows committed one
by one, without any engine. Here too is what every engine shares that is measured: its command line, its clock, its one
line of answer. Only the standard library is used, because the peers' own interpreters read this file as well."""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
import sys
import threading
import time
import uuid
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

SHAPES = ("pure", "effect", "sequential", "fanout")
ONE_RUN = frozenset({"sequential", "fanout", "commits"})
AT_ONCE = 16
"""How many runs are under way at once."""
WARM_RUNS, WARM_STEPS = 4, 3

TABLE = """
CREATE TABLE IF NOT EXISTS event (
    run TEXT NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run, n)
) WITHOUT ROWID
"""
PUT = "INSERT INTO event VALUES (?, ?, ?, ?)"

Row: TypeAlias = tuple[str, int, str, str]


@dataclass
class Spent:
    """What the measured part took."""

    seconds: float
    cpu_seconds: float


def command_line(about: str | None, *more_shapes: str) -> ArgumentParser:
    """The command line that all engines share."""
    parser = ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--shape", choices=(*SHAPES, *more_shapes), required=True)
    parser.add_argument("--runs", type=int, default=200, help="how many; sequential and fanout are one run")
    parser.add_argument("--steps", type=int, default=10, help="of each run")
    parser.add_argument("--db", type=Path, required=True, help="a file in a folder of its own")
    return parser


class Clock:
    """Runs from its making: wall time, and CPU time over all threads."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def spent(self) -> Spent:
        return Spent(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def report(options: Namespace, spent: Spent) -> None:
    """Print the one line of answer; the store is closed by now, so that its file is all there is of it."""
    steps = options.steps * (1 if options.shape in ONE_RUN else options.runs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = {
        "steps": steps,
        "seconds": spent.seconds,
        "cpu_seconds": spent.cpu_seconds,
        "rss_kb": peak // 1024 if sys.platform == "darwin" else peak,
        "db_bytes": sum(file.stat().st_size for file in options.db.parent.glob(f"{options.db.name}*")),
    }
    print(json.dumps(answer))


async def at_once(runs: int, one: Callable[[], Awaitable[object]]) -> None:
    """Do one thing `runs` times, at most AT_ONCE of them at the same time."""
    left = iter(range(runs))

    async def work() -> None:
        for _ in left:
            await one()

    await asyncio.gather(*(work() for _ in range(min(runs, AT_ONCE))))


class Journal:
    """One thread that owns the connection and commits together whatever has queued meanwhile."""

    def __init__(self, file: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[list[Row], asyncio.Future[None]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, args=(file,))
        self._thread.start()

    async def append(self, *rows: Row) -> None:
        """Return when the rows are on disk."""
        done = self._loop.create_future()
        self._queue.put((list(rows), done))
        await done

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _write(self, file: Path) -> None:
        with closing(database(file)) as connection:
            while waiting := self._waiting():
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(PUT, [row for rows, _ in waiting for row in rows])
                connection.execute("COMMIT")
                self._loop.call_soon_threadsafe(_tell, [done for _, done in waiting])

    def _waiting(self) -> list[tuple[list[Row], asyncio.Future[None]]]:
        entry = self._queue.get()
        waiting = []
        while entry is not None:
            waiting.append(entry)
            try:
                entry = self._queue.get_nowait()
            except Empty:
                break
        return waiting


def _tell(all_done: list[asyncio.Future[None]]) -> None:
    for done in all_done:
        done.set_result(None)


def database(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(TABLE)
    return connection


async def tool(number: int) -> dict[str, Any]:
    return {"number": number, "ok": True}


async def step(journal: Journal, run: str, number: int, *, intent_first: bool = False) -> None:
    started = (run, 2 * number, "step_started", json.dumps({"step": number, "attempt": 1}))
    if intent_first:
        await journal.append(started)
    output = await tool(number)
    completed = (run, 2 * number + 1, "step_completed", json.dumps({"step": number, "output": output}))
    await journal.append(*([] if intent_first else [started]), completed)


async def do(journal: Journal, shape: str, runs: int, steps: int) -> None:
    """The work of one shape."""

    async def one() -> None:
        run = uuid.uuid4().hex
        for number in range(steps):
            await step(journal, run, number, intent_first=shape == "effect")

    if shape == "fanout":
        run = uuid.uuid4().hex
        await asyncio.gather(*(step(journal, run, number) for number in range(steps)))
    else:
        await at_once(1 if shape in ONE_RUN else runs, one)


async def engine(options: Namespace) -> Spent:
    journal = Journal(options.db)
    await do(journal, options.shape, WARM_RUNS, WARM_STEPS)
    clock = Clock()
    await do(journal, options.shape, options.runs, options.steps)
    spent = clock.spent()
    journal.close()
    return spent


def commits(options: Namespace) -> Spent:
    """Rows committed one by one, as fast as this disk allows."""
    run, body = uuid.uuid4().hex, json.dumps({"step": 0, "output": {"number": 0, "ok": True}})
    with closing(database(options.db)) as connection:
        for number in range(WARM_RUNS * WARM_STEPS):
            connection.execute(PUT, (run, -1 - number, "step_completed", body))
        clock = Clock()
        for number in range(options.steps):
            connection.execute(PUT, (run, number, "step_completed", body))
        return clock.spent()


if __name__ == "__main__":
    chosen = command_line(__doc__, "commits").parse_args()
    report(chosen, commits(chosen) if chosen.shape == "commits" else asyncio.run(engine(chosen)))
