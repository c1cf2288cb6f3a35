"""The same steps on handrail, run by our own interpreter (see bench/engines.py).

    python -m bench.handrail_steps --shape pure --runs 200 --steps 10 --db FOLDER/journal.db

A run is a plan of tool steps: `value.set` for pure ones, a tool with an effect for the others. The plan is read before
the clock starts, as the peers' code is; a run counts from its start until it has ended. `--shape open` leaves runs in
the middle of their first step and dies as in a crash; `--shape restart` measures how soon all of them are taken up."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from argparse import Namespace
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.peers.floor import ONE_RUN, WARM_RUNS, WARM_STEPS, Clock, Spent, at_once, command_line, report
from handrail.assembly.opening import open_assembly
from handrail.domain.definition.model import Definition
from handrail.engine.running.worker import Worker
from handrail.library.loading import load_data
from handrail.settings import read_settings
from handrail.tools.sdk import PythonTool, ToolContext, tool

PURE, NOTE, HOLD = "value.set", "bench.note", "bench.hold"


# ---- The engine, as this bench sees it: all that has to follow when its interface changes.


@asynccontextmanager
async def parts(home: Path, tools: Sequence[PythonTool] = ()) -> AsyncIterator[Worker]:
    """Handrail's worker, over the journal in this folder, with these tools beside its own."""
    with TemporaryDirectory() as project:  # a project is never in HANDRAIL_HOME
        settings = read_settings({"home": str(home), "project": project}, {"HANDRAIL_CALLS": "10000"})
        async with open_assembly(settings, tools=tools) as program:
            yield program.worker


async def start(worker: Worker, definition: Definition) -> str:
    """Start a run: its id."""
    return (await worker.start(definition, {}, actor="person:bench")).id


async def run_whole(worker: Worker, definition: Definition) -> None:
    """Start a run and wait for its end."""
    await worker.settled(await start(worker, definition))


# ---- What is measured.


def plan(called: str, steps: int, *, side_by_side: bool = False) -> Definition:
    """So many calls of one tool, one after the other or all at once."""
    order: dict[str, Any] = {"after": []} if side_by_side else {}
    calls = [
        {"id": f"s{number}", "tool": called, "args": {"value": {"number": number, "ok": True}}, **order}
        for number in range(steps)
    ]
    data: dict[str, Any] = {"id": "bench", "max_parallel": steps if side_by_side else 1, "steps": calls}
    loaded = load_data(data)
    if loaded.definition is None:
        raise SystemExit(f"the plan is not valid: {loaded.findings}")
    return loaded.definition


@tool(NOTE, effect="compensatable")
async def note(value: Any) -> Any:
    """Hand on a value, as if it were an effect."""
    return value


def check(file: Path, steps: int) -> None:
    """A figure counts only if every step is in the journal as completed."""
    with closing(sqlite3.connect(file)) as connection:
        (found,) = connection.execute("SELECT count(*) FROM step WHERE status = 'completed'").fetchone()
    if found != steps:
        raise SystemExit(f"{found:,} steps are completed, not {steps:,}")


async def steps_done(options: Namespace) -> Spent:
    called, is_fan = NOTE if options.shape == "effect" else PURE, options.shape == "fanout"
    runs = 1 if options.shape in ONE_RUN else options.runs
    short, whole = (plan(called, steps, side_by_side=is_fan) for steps in (WARM_STEPS, options.steps))
    async with parts(options.db.parent, [note]) as handrail:
        await at_once(WARM_RUNS, lambda: run_whole(handrail, short))
        clock = Clock()
        await at_once(runs, lambda: run_whole(handrail, whole))
        spent = clock.spent()
    check(options.db, WARM_RUNS * WARM_STEPS + runs * options.steps)
    return spent


async def left_open(options: Namespace) -> None:
    """Start runs whose first step never ends, and die without a word."""

    all_started = asyncio.Event()
    runs: set[str] = set()

    @tool(HOLD, effect="compensatable", timeout="1h", idempotent=True)
    async def hold(value: Any, context: ToolContext) -> Any:
        """Never end; by now the journal says that it has started."""
        runs.add(context.run)
        if len(runs) == options.runs:
            all_started.set()
        await asyncio.Event().wait()

    definition = plan(HOLD, options.steps)
    async with parts(options.db.parent, [hold]) as handrail:
        await at_once(options.runs, lambda: start(handrail, definition))
        await all_started.wait()
        os._exit(0)


async def taken_up(options: Namespace) -> Spent:
    """Open what was left: until the first step of every run is under way again."""
    runs: set[str] = set()
    all_called = asyncio.Event()

    @tool(HOLD, effect="compensatable", idempotent=True)
    async def count(value: Any, context: ToolContext) -> Any:
        """Count the runs that call it."""
        runs.add(context.run)
        if len(runs) == options.runs:
            all_called.set()
        return value

    clock = Clock()
    async with parts(options.db.parent, [count]):
        await all_called.wait()
        return clock.spent()


if __name__ == "__main__":
    chosen = command_line(__doc__, "open", "restart").parse_args()
    if chosen.shape == "open":
        asyncio.run(left_open(chosen))
    report(chosen, asyncio.run(taken_up(chosen) if chosen.shape == "restart" else steps_done(chosen)))
