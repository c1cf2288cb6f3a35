"""How fast is the store in PostgreSQL, beside raw asyncpg and beside one counter for all, in the same run?

    python bench/fleet.py [seconds] [open runs]        and `bench/placing.py` for hosts, `bench/before.py` for SQLite

A real server out of a wheel, synced as it should be. `raw` writes one row an append and checks nothing. The others are
the whole store: an append is checked, chained, and writes its event, the end of its stream, the rows of run and step.
`counter` is the same store with a single lane; `silent` is the store without NOTIFY; `pooled` goes through pgbouncer in
transaction mode; `steps` appends both events of a step at once, beside steps of DBOS on the same server. Each process
has 64 appends under way. Compare ratios: with fewer cores than processes, the clients' own work is what is measured.

What lanes are for shows where a commit waits: a single counter is locked until the disk has it. So both are also
measured with `commit_delay`, as if a sync took 4 ms, which is what a disk without a write cache or a replica takes."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import asyncpg

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bars import at_least, at_most, exit_code, left_out
from bench.engines import CACHE, MEASURE_S_MAX, PEERS, LeftOut, called, environment
from handrail.domain.journal.chain import GENESIS, SALT_BYTES, Head, Record, chained
from handrail.domain.journal.projection import Change, RunRow, StepRow
from handrail.engine.running.lease import FOR_EVER
from handrail.storage.postgres import queries
from handrail.storage.postgres.news import News
from handrail.storage.postgres.store import PostgresStore
from outside.debian import NotFetched
from storage.postgres import server
from storage.postgres.pooler import Pooler, pooling
from storage.postgres.pooler import found as found_pooler

TASKS, EVENTS_A_RUN, ROUNDS = 64, 20, 3
BODY = b'{"output":"' + b"x" * 235 + b'"}'
SLOW_SYNC_MS = 4
MODES = ("raw", "counter", "lanes", "silent")
RAW = "insert into raw_event select * from unnest($1::text[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[])"
RAW_TABLE = """
    create table raw_event (
        stream text not null, n bigint not null, salt bytea not null, body bytea not null, hash bytea not null,
        unique (stream, n))"""


class Raw:
    """What the store is compared with: rows, as many at once as have queued."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._queue: list[tuple[Record, asyncio.Future[None]]] = []
        self._ready = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._flush())

    async def append(self, records: Sequence[Record], _: Change) -> None:
        future = asyncio.get_running_loop().create_future()
        self._queue.append((records[0], future))
        self._ready.set()
        await future

    async def _flush(self) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            batch, self._queue = self._queue, []
            rows = [(one.stream, one.n, one.salt, one.body, one.hash) for one, _ in batch]
            if rows:
                await self._connection.execute(RAW, *map(list, zip(*rows, strict=True)))
            for _, future in batch:
                future.set_result(None)


def next_event(run: str, head: Head, *, started: bool = False) -> tuple[list[Record], Change]:
    """The next event of a run, with its rows; `started`: after the one that its step has started."""
    now, records, last = int(time.time() * 1_000), list[Record](), head.hash
    step = f"step/{head.n % 10}"
    for kind in ("attempt_started", "step_completed") if started else ("step_completed",):
        n = head.n + 1 + len(records)
        record = Record(run, n, now, kind, "engine", step, 1, 1, os.urandom(SALT_BYTES), BODY, b"")
        records.append(chained(last, record))
        last = records[-1].hash
    n, record = records[-1].n, records[-1]
    row = RunRow(
        id=run,
        workflow="w@1",
        definition="d" * 64,
        mode="run",
        status="running",
        goal="ship it",
        started=now,
        updated=now,
        ended=None,
        done=n,
        n=n,
        head=record.hash,
    )
    done = StepRow(
        run=run,
        path=step,
        status="completed",
        attempts=1,
        started=now,
        ended=now,
        due=None,
        actor="engine",
        proof="",
        compensation="",
        category="",
        message="",
    )
    return records, Change(run=row, steps=(done,))


async def work(mode: str, url: str, name: str, seconds: float, start: float) -> None:
    """One process: append for so long, and print how many and how quickly."""
    if mode == "silent":
        News.wrote = lambda _: None  # type: ignore[method-assign,assignment]
    store: Any = Raw(await asyncpg.connect(url)) if mode == "raw" else await PostgresStore.open(url)
    waits: list[float] = []
    await asyncio.sleep(max(0.0, start - time.time()))
    end = time.monotonic() + seconds

    async def task(number: int) -> None:
        run = 0
        while time.monotonic() < end:
            run += 1
            stream = f"run_{name}_{number}_{run}"
            head = Head(stream, 0, GENESIS)
            for _ in range(EVENTS_A_RUN):
                records, change = next_event(stream, head, started=mode == "steps")
                before = time.monotonic()
                await store.append(records, change)
                waits.append(time.monotonic() - before)
                head = Head(stream, records[-1].n, records[-1].hash)
                if time.monotonic() >= end:
                    return

    await asyncio.gather(*map(task, range(TASKS)))
    waits.sort()
    print(json.dumps({"appends": len(waits), "waits": waits[:: max(1, len(waits) // 1_000)]}), flush=True)
    os._exit(0)


async def measured(
    server_: str,
    mode: str,
    processes: int,
    seconds: float,
    label: str,
    *,
    pooler: Pooler | None = None,
    sync_ms: int = 0,
) -> tuple[float, float]:
    """Appends a second and the 99th percentile of their waits, of so many processes at once."""
    url = await database(server_, f"b_{label}")
    if mode == "raw":
        await executed(url, RAW_TABLE)
    else:
        async with await PostgresStore.open(url):
            pass
        if mode == "counter":
            await executed(url, "delete from handrail.lane where id > 128")
    if sync_ms:
        delay = f"alter database b_{label} set commit_delay = {sync_ms * 1_000}"
        await executed(url, f"{delay}; alter database b_{label} set commit_siblings = 0")
    with pooling(pooler, url, connections=4) if pooler is not None else nullcontext(url) as address:
        rate = await raced(address, mode, processes, seconds)
    await executed(server_ % "postgres", f"drop database b_{label} with (force)")
    return rate


async def raced(url: str, mode: str, processes: int, seconds: float) -> tuple[float, float]:
    start = time.time() + 1.5 + 0.4 * processes
    command = [sys.executable, __file__, "worker", mode, url]
    started = [
        await asyncio.create_subprocess_exec(*command, str(one), str(seconds), str(start), stdout=-1)
        for one in range(processes)
    ]
    said = [json.loads((await one.communicate())[0]) for one in started]
    waits = sorted(wait for one in said for wait in one["waits"])
    return sum(one["appends"] for one in said) / seconds, waits[int(len(waits) * 0.99)] * 1_000


async def database(server_: str, name: str) -> str:
    await executed(server_ % "postgres", f"create database {name}")
    return server_ % name


async def executed(url: str, query: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(query, timeout=600)
    await connection.close()


async def appends(server_: str, seconds: float) -> None:
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for number in range(ROUNDS):
        for processes in (1, 8):
            for mode in MODES:
                label = f"{mode}_{processes}_{number}"
                found.setdefault((mode, processes), []).append(await measured(server_, mode, processes, seconds, label))
    rate = {key: statistics.median(one[0] for one in figures) for key, figures in found.items()}
    slow = {key: statistics.median(one[1] for one in figures) for key, figures in found.items()}
    for mode, processes in found:
        fast, wait = rate[mode, processes], slow[mode, processes]
        of_raw = fast / rate["raw", processes]
        print(f"{mode:8} {processes} processes {fast:8.0f} appends/s  p99 {wait:6.1f} ms  {of_raw:.2f} of raw")
    at_least("8 processes, of raw asyncpg", rate["lanes", 8] / rate["raw", 8], 0.35)
    at_least("8 processes, of a single counter", rate["lanes", 8] / rate["counter", 8], 1.5)
    at_least("8 processes, of one", rate["lanes", 8] / rate["lanes", 1], 1.4)
    at_most("p99 at 8 processes, of raw's", slow["lanes", 8] / slow["raw", 8], 3.0)
    at_least("with NOTIFY beside, of without", rate["lanes", 8] / rate["silent", 8], 0.95)


async def slow_sync(server_: str, seconds: float) -> None:
    """Lanes and a single counter in turns, where each commit waits for its sync."""
    ratios = []
    for number in range(ROUNDS):
        lanes, _ = await measured(server_, "lanes", 8, seconds, f"slow_{number}", sync_ms=SLOW_SYNC_MS)
        counter, _ = await measured(server_, "counter", 8, seconds, f"slowc_{number}", sync_ms=SLOW_SYNC_MS)
        print(f"a sync takes {SLOW_SYNC_MS} ms: lanes {lanes:.0f} appends/s, counter {counter:.0f}", flush=True)
        ratios.append(lanes / counter)
    label = f"8 processes, of a single counter, where a sync takes {SLOW_SYNC_MS} ms"
    at_least(label, statistics.median(ratios), 1.5)


async def pooled(server_: str, seconds: float) -> None:
    """The store through pgbouncer, beside the same store without it, in turns."""
    pooler = found_pooler()
    if isinstance(pooler, NotFetched):
        return left_out("through pgbouncer, of direct", pooler)
    ratios = []
    for number in range(ROUNDS):
        direct, _ = await measured(server_, "lanes", 4, seconds, f"direct_{number}")
        through, _ = await measured(server_, "lanes", 4, seconds, f"pooled_{number}", pooler=pooler)
        ratios.append(through / direct)
    return at_least("through pgbouncer, of direct", statistics.median(ratios), 0.6)


async def beside_dbos(server_: str, seconds: float) -> None:
    """Steps of one process: the whole store, and DBOS on the same server, in turns."""
    try:
        python = environment(CACHE / "dbos", PEERS["dbos"])
    except LeftOut as reason:
        return left_out("steps of the whole store, of DBOS on PostgreSQL", reason)
    ratios = []
    for number in range(ROUNDS):
        own, _ = await measured(server_, "steps", 1, seconds, f"steps_{number}")
        url = await database(server_, f"b_dbos_{number}")
        work = ("--shape", "pure", "--runs", "64", "--steps", "20", "--db", "-", "--url", url)
        said = called([python, "-m", "bench.peers.dbos_steps", *work], seconds_max=MEASURE_S_MAX)
        dbos = json.loads(said.splitlines()[-1])
        ratios.append(own / (dbos["steps"] / dbos["seconds"]))
        print(f"steps/s of one process: {own:.0f}, DBOS {dbos['steps'] / dbos['seconds']:.0f}", flush=True)
    return at_least("steps of the whole store, of DBOS on PostgreSQL", statistics.median(ratios), 8.0)


FILL = """
    insert into handrail.run
        select 'run_' || lpad(to_hex(g), 8, '0'), 'w@1', repeat('d', 64), 'run', 'running', 'ship it', g, g, null, 2, 3,
            sha256(g::text::bytea), 'prj', 0 from generate_series(1, {runs}) g;
    insert into handrail.head (stream, era, n, hash, project, wake_at)
        select id, 1, 3, head, 'prj', case when started % 500 = 0 then 0 end from handrail.run;
    analyze handrail.run; analyze handrail.head;"""


async def pick_up(server_: str, runs: int) -> None:
    """How long a worker takes to find 100 runs with work, and to claim them, when nearly all others rest."""
    url = await database(server_, "b_open")
    async with await PostgresStore.open(url) as store:
        await executed(url, FILL.format(runs=runs))
        found, claimed = [], []
        for _ in range(9):
            before = time.perf_counter()
            holders = await store.lease_holders(limit=100, project="prj", is_awake=True)
            found.append((time.perf_counter() - before) * 1_000)
            before = time.perf_counter()
            leases = await store.claim("w", holders)
            claimed.append((time.perf_counter() - before) * 1_000)
            await store.release(leases)
        within = min([await pick_up_in_database(url) for _ in range(9)])
    print(f"with {runs} open runs, {len(holders)} are claimed in {statistics.median(claimed):.1f} ms")
    at_most(f"pick-up of {len(holders)} with {runs} open runs, in the database alone (ms)", within, 10.0)
    at_most(f"pick-up of {len(holders)} with {runs} open runs (ms)", statistics.median(found), 10.0)


async def pick_up_in_database(url: str) -> float:
    """The same as the database measures it: what a client on loaded cores adds is not its work."""
    connection = await asyncpg.connect(url)
    query = f"explain (analyze, format json) {queries.AWAKE_IN_PROJECT}"
    ((plan,),) = await connection.fetch(query, "", 100, FOR_EVER, "prj")
    await connection.close()
    return float(json.loads(plan)[0]["Execution Time"])


async def main(seconds: float, runs: int) -> int:
    os.environ[server.DURABLE] = "1"
    with tempfile.TemporaryDirectory() as folder:
        address = server.server_url(Path(folder))
        await pick_up(address, runs)
        await appends(address, seconds)
        await slow_sync(address, seconds)
        await pooled(address, seconds)
        await beside_dbos(address, seconds)
    return exit_code()


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        _, _, mode_, url_, name_, seconds_, start_ = sys.argv
        asyncio.run(work(mode_, url_, name_, float(seconds_), float(start_)))
    elif server.MISSING:
        left_out("the store in PostgreSQL", server.MISSING)
        raise SystemExit(exit_code())
    else:
        given = [*sys.argv[1:], *("3", "1000000")[len(sys.argv) - 1 :]]
        raise SystemExit(asyncio.run(main(float(given[0]), int(given[1]))))
