"""The same steps on DBOS over SQLite or PostgreSQL, by an interpreter that has DBOS (see bench/engines.py).

    python -m bench.peers.dbos_steps --shape pure --runs 200 --steps 10 --db FILE [--wal]

A run is an async workflow, a step an async step, called in the process that launched DBOS: its shortest way. SQLite is
as DBOS leaves it (rollback journal, synchronous=FULL); `--wal` sets the file to WAL by hand before DBOS opens it."""

from __future__ import annotations

import asyncio
import sqlite3
from argparse import Namespace
from contextlib import closing
from typing import Any

from dbos import DBOS

from bench.peers.floor import ONE_RUN, WARM_RUNS, WARM_STEPS, Clock, Spent, at_once, command_line, report


@DBOS.step()
async def step(number: int) -> dict[str, Any]:
    return {"number": number, "ok": True}


@DBOS.workflow()
async def in_turn(steps: int) -> int:
    for number in range(steps):
        await step(number)
    return steps


@DBOS.workflow()
async def side_by_side(steps: int) -> int:
    await asyncio.gather(*(step(number) for number in range(steps)))
    return steps


async def do(shape: str, runs: int, steps: int) -> None:
    """The work of one shape.

    `effect` is `pure` here: DBOS records that a step has ended, never that it starts, so a step that was under way in a
    crash is unknown to it and simply done again. A second step that says what the first will do would be an intent
    written by hand, at about twice the price; beside handrail's intent stands the cheaper one."""
    if shape == "fanout":
        await side_by_side(steps)
    else:
        await at_once(1 if shape in ONE_RUN else runs, lambda: in_turn(steps))


async def engine(options: Namespace) -> Spent:
    if options.wal:
        with closing(sqlite3.connect(options.db)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")  # the file remembers it
    DBOS(
        config={
            "name": "bench",
            "system_database_url": options.url or f"sqlite:///{options.db}",
            "application_version": "1",
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    await do(options.shape, WARM_RUNS, WARM_STEPS)
    clock = Clock()
    await do(options.shape, options.runs, options.steps)
    spent = clock.spent()
    DBOS.destroy()
    return spent


if __name__ == "__main__":
    parser = command_line(__doc__)
    parser.add_argument("--wal", action="store_true", help="set the file to WAL by hand")
    parser.add_argument("--url", default="", help="a database in PostgreSQL instead of a file")
    chosen = parser.parse_args()
    report(chosen, asyncio.run(engine(chosen)))
