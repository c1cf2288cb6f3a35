"""Two projects on one home, four real processes, kill -9 at random: no file of the other project is ever touched.

Each project has a worker and an MCP server. Every file that a run of one project creates, deletes or moves has a decoy
of the same name in the other project, which must stay as it is, to the inode."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from handrail.assembly.opening import open_reader, projects_of
from handrail.domain.run.status import RUN_ENDED
from handrail.engine.stream_pages import entries_of
from outside.mcp_client import Gone, McpClient, mcp_server
from outside.processes import PATIENCE_S, Place, Process, handrail, work_until_idle

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are a matter of POSIX")

SEED = 20_261_117
ROUNDS, ROUNDS_LONG = 5, 120
PAUSE_S_MAX = 0.4
ALONE_S = 1.5
"""Long enough for a worker to take over what a dead process left."""
KINDS = (("worker",), ("agent",), ("worker", "agent"))
ACTIONS = ("cancel", "pause", "resume", "retry", "skip", "accept", "compensate", "approve", "fork")


@dataclass
class Side:
    """One of the two projects, with its two processes."""

    name: str
    place: Place
    first: int
    """The number of its first file; the other project's numbers are in between."""
    owners: set[str] = field(default_factory=set)
    runs: list[str] = field(default_factory=list)
    worker: Process | None = None
    agent: McpClient | None = None
    life: dict[str, AsyncExitStack] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.place.project

    async def begin(self, kind: str) -> None:
        """Start the worker or the server."""
        life = self.life[kind] = AsyncExitStack()
        if kind == "worker":
            self.worker = await life.enter_async_context(handrail(self.place, "worker"))
        else:
            self.agent = await life.enter_async_context(mcp_server(self.place.home, self.folder))

    async def kill(self, kind: str) -> None:
        """kill -9, whatever it does at this moment."""
        await self.note_owner()
        await (self.worker if kind == "worker" else self.agent).kill()  # type: ignore[union-attr]
        await self.life.pop(kind).aclose()

    async def note_owner(self) -> None:
        """Remember under which name the worker worked, if it got that far."""
        if self.worker is not None:
            self.owners |= {f"worker:{line.split()[1]}" for line in self.worker.said if " started" in line}

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any] | None:
        """Call a tool of its own server; None if that was killed meanwhile."""
        try:
            return await self.agent.call(tool, **arguments)  # type: ignore[union-attr]
        except Gone:
            return None


def plan(name: str, number: int) -> dict[str, Any]:
    """Files are written, deleted and moved; every third time all of it is undone in the end."""
    steps: list[dict[str, Any]] = [
        {"id": "rest", "tool": "wait.for", "args": {"duration": "300ms"}},  # so that most are killed in the middle
        {"id": "write", "tool": "file.write", "args": {"path": f"made-{number}.txt", "text": name}},
        {"id": "note", "tool": "file.append", "args": {"path": "log.txt", "text": f"{name}\n"}},
        {"id": "delete", "tool": "file.delete", "args": {"path": f"old-{number}.txt"}},
        {"id": "move", "tool": "file.move", "args": {"source": f"a-{number}.txt", "target": f"b-{number}.txt"}},
    ]
    if number % 3 == 0:
        steps.append({"id": "fail", "tool": "file.read", "args": {"path": "nowhere.txt"}})
    return {"id": f"plan-{number}", "on_failure": "compensate", "steps": steps}


@dataclass
class World:
    """Both projects, and what must stay as it is."""

    one: Side
    other: Side
    chance: random.Random
    decoys: dict[Path, tuple[int, int, str]] = field(default_factory=dict)
    number: int = 0
    refused: int = 0

    @property
    def sides(self) -> tuple[tuple[Side, Side], tuple[Side, Side]]:
        return (self.one, self.other), (self.other, self.one)

    async def round(self) -> None:
        """Start a run in each project, tease the other one's, and kill one process in the middle of it, or both of a
        project: then only the other project's are left for a while, and see a run that nobody executes."""
        tasks = [asyncio.ensure_future(self.work(own, foreign)) for own, foreign in self.sides]
        await asyncio.sleep(self.chance.uniform(0, PAUSE_S_MAX))
        side, kinds = self.chance.choice([self.one, self.other]), self.chance.choice(KINDS)
        for kind in kinds:
            await side.kill(kind)
        await asyncio.gather(*tasks)
        await asyncio.sleep(ALONE_S if len(kinds) > 1 else 0)
        self.check()
        for kind in kinds:
            await side.begin(kind)

    async def work(self, own: Side, foreign: Side) -> None:
        number = own.first + 2 * self.number
        self.number += own is self.other
        for name in (f"old-{number}.txt", f"a-{number}.txt"):
            (own.folder / name).write_text(own.name)
            decoy = foreign.folder / name
            decoy.write_text(foreign.name)
            self.decoys[decoy] = _state(decoy)
        started = await own.call("execute_plan", definition=plan(own.name, number), idempotency_key=f"key-{number}")
        if started is not None:
            own.runs.append(started["run"])
        if foreign.runs:
            run = self.chance.choice(foreign.runs)
            await self.tease(own, run, "control", action=self.chance.choice(ACTIONS), reason="x", step="write")
            await self.tease(own, run, "workflow_next", step="write", output=1)
            await self.tease(own, run, "record_action", description="x")

    async def tease(self, own: Side, run: str, tool: str, **arguments: Any) -> None:
        answer = await own.call(tool, run=run, **arguments)
        if answer is not None:
            assert answer["name"] == "conflict", answer
            assert "belongs to another project" in answer["message"]
            self.refused += 1

    def check(self) -> None:
        for decoy, state in self.decoys.items():
            assert _state(decoy) == state, f"{decoy} was touched"
        for own, foreign in self.sides:
            for file in own.folder.glob("*.txt"):
                assert set(_words(file)) <= {own.name}, file
                if file.name.startswith(("made-", "b-")):
                    assert int(file.stem.split("-")[1]) % 2 == own.first, f"{file} is of {foreign.name}"


def _words(file: Path) -> list[str]:
    """What is in a file; nothing if a run of its own project has just removed it."""
    try:
        return file.read_text().split()
    except FileNotFoundError:
        return []


def _state(file: Path) -> tuple[int, int, str]:
    stat = file.stat()
    return stat.st_ino, stat.st_mtime_ns, file.read_text()


@asynccontextmanager
async def two_projects(folder: Path, seed: int) -> AsyncIterator[World]:
    sides = []
    for first, name in enumerate(("shop", "site")):
        (folder / name).mkdir()
        sides.append(Side(name, Place(folder / "home", folder / name, {"HANDRAIL_LEASE": "2s"}), first))
    world = World(sides[0], sides[1], random.Random(seed))
    try:
        for side in sides:
            for kind in ("worker", "agent"):
                await side.begin(kind)
            await side.worker.owner()  # type: ignore[union-attr]
        yield world
    finally:
        for side in sides:
            for kind in list(side.life):
                await side.kill(kind)


async def until_settled(world: World) -> None:
    """Let the processes that are left do what can be done; a run whose step is uncertain waits for a person."""
    async with open_reader(world.one.place.settings) as look, asyncio.timeout(4 * PATIENCE_S):
        reader = look.run_reader()
        left = {row.id for row in await look.store.runs(limit=10_000)}
        while left := {run for run in left if not await reader.is_settled(run)}:
            await asyncio.sleep(0.1)


async def rounds(folder: Path, count: int, seed: int) -> World:
    async with two_projects(folder, seed) as world:
        for _ in range(count):
            await world.round()
        await until_settled(world)
        world.check()
    for side in (world.one, world.other):
        await work_until_idle(side.place)
    world.check()
    await executed_by_their_own(world)
    await world.one.place.verify()
    return world


async def executed_by_their_own(world: World) -> None:
    """Every run belongs to the project that started it, and no worker of the other has written into it."""
    projects = projects_of(world.one.place.settings)
    async with open_reader(world.one.place.settings) as look:
        rows = {row.id: row for row in await look.store.runs(limit=10_000)}
        for own, foreign in world.sides:
            for run in own.runs:
                actors = {entry.actor for entry in await entries_of(look.store, run)}
                assert not actors & foreign.owners, run
                assert rows[run].project == projects.at(own.folder).id, run
        ended = [row for row in rows.values() if row.status in RUN_ENDED]
        assert len(ended) >= len(rows) // 3, f"{len(ended)} of {len(rows)} runs ended"


async def test_no_file_of_the_other_project_is_touched_whoever_is_killed(tmp_path: Path) -> None:
    world = await rounds(tmp_path, ROUNDS, SEED)
    assert world.refused
    assert world.one.runs
    assert world.other.runs


@pytest.mark.long
async def test_no_file_of_the_other_project_is_touched_in_more_than_a_hundred_rounds(tmp_path: Path) -> None:
    world = await rounds(tmp_path, ROUNDS_LONG, SEED + 1)
    assert world.refused >= ROUNDS_LONG
    assert len(world.one.runs) + len(world.other.runs) >= ROUNDS_LONG
