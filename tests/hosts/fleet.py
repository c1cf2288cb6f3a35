"""A fleet for tests: real nodes over a real store under one host, random sagas, and what must be true of them.

Everything that is asserted is in the journal or in the file of effects: never how long something took."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from handrail.assembly.hosts import host_of
from handrail.assembly.opening import StoreWriter, open_writer
from handrail.domain.definition.model import Definition
from handrail.domain.errors import HandrailError
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.mark import START
from handrail.domain.run.command import StartRun
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.engine.journal import mark_after
from handrail.engine.running.host import Host, Wake
from handrail.library.loading import load_data
from handrail.settings import read_settings
from hosts.node import NEWER
from hosts.servers import DevTemporal, OwnPostgres, short_folder

NODE = Path(__file__).with_name("node.py")
ADA = "person:ada"
ENDED = (RunStatus.COMPLETED, RunStatus.COMPENSATED, RunStatus.FAILED, RunStatus.CANCELLED)
HOSTS = ("local", "temporal", "absurd")
"""Hosts of a store in PostgreSQL."""
PLACES = ("sqlite", *HOSTS)
"""The same, and local on SQLite."""
WAKES = ("once", "twice", "late", "lost")
LATE_S = 1.5
SIDES = ("left", "right")
"""Labels: of two nodes, each has one."""


def saga(chance: random.Random) -> Definition:
    """A random plan: effects with and without a key, retries, now and then a question, a timer, a step that only one
    of two nodes may do, or a failure that undoes everything."""
    kinds = chance.choices(("note", "slow", "flaky", "ask", "wait"), (5, 5, 2, 1, 0.3), k=chance.randint(2, 6))
    steps: list[dict[str, Any]] = []
    for number, kind in enumerate(kinds):
        step: dict[str, Any] = {"id": f"s{number}"}
        if kind == "ask":
            step |= {"approve": "Go on?", "expires": "1h"}
        else:
            args = {"slow": {"ms": chance.randint(50, 400)}, "wait": {"delay": "6s"}}.get(kind, {})
            step |= {"tool": f"fleet.{kind}", "args": args}
            if chance.random() < 0.1:
                step["runs_on"] = [chance.choice(SIDES)]
        steps.append(step)
    if chance.random() < 0.2:
        steps.append({"id": "last", "tool": "fleet.break", "on_failure": "compensate"})
    return plan(steps)


def plan(steps: Sequence[dict[str, Any]]) -> Definition:
    loaded = load_data({"id": "saga", "steps": list(steps)})
    assert loaded.definition is not None, loaded.findings
    return loaded.definition


@dataclass
class Node:
    """One process."""

    name: str
    process: subprocess.Popen[str]
    labels: str = ""
    owner: str = ""

    def kill(self, how: int) -> None:
        self.process.send_signal(how)


@dataclass
class Fleet:
    """Nodes, the writer of the driver, and the servers below."""

    postgres: OwnPostgres | None
    temporal: DevTemporal | None
    variables: dict[str, str]
    folder: Path
    lease_s: float
    writer: StoreWriter
    host: Host | None
    nodes: list[Node] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    is_newer: bool = False
    """Whether nodes are of a later version from now on."""
    news: Counter[tuple[str, int]] = field(default_factory=Counter)
    """The events that a reader was given, who asked again and again what is new."""
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def effects(self) -> Path:
        return self.folder / "effects.jsonl"

    async def node(self, **choices: str) -> Node:
        """One more node, at work; `choices` are settings of its own."""
        name = f"n{len(self.nodes)}"
        with (self.folder / f"{name}.err").open("wb") as errors:
            command = [sys.executable, str(NODE), name, str(self.effects)]
            own = {f"HANDRAIL_{key.upper()}": value for key, value in choices.items()}
            own |= {NEWER: "yes"} if self.is_newer else {}
            settings = {**os.environ, **self.variables, **own}
            process = subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        node = Node(name, process, choices.get("labels", ""))
        self.nodes.append(node)
        node.owner = (await asyncio.to_thread(process.stdout.readline)).strip()
        assert node.owner, (self.folder / f"{name}.err").read_text()
        return node

    async def start(self, definition: Definition, wake: str = "once") -> str:
        """Journal a run, then wake the host for it once, twice, late, or not at all."""
        run = await self.writer.dispatch.start(definition, {}, actor=ADA, ask=StartRun())
        self.started.append(run.id)
        if self.host is not None and wake != "lost":
            self._tasks.append(asyncio.create_task(self._wake(self.host, run, wake)))
        return run.id

    async def _wake(self, host: Host, run: Run, wake: str) -> None:
        if wake == "late":
            await asyncio.sleep(LATE_S)
        for _ in range(2 if wake == "twice" else 1):
            try:
                await host.wake(Wake(run=run.id, n=run.n, project=run.project, workflow=run.workflow, status="running"))
            except HandrailError:
                return  # it is down: then the wake is lost, and the sweep finds the run

    def watch(self) -> None:
        """Read what is new from now on, whatever happens to the store."""
        self._tasks.append(asyncio.create_task(self._read_on()))

    async def _read_on(self) -> None:
        mark = START
        while True:
            try:
                async for batch in self.writer.reader.store.scan(after=mark):
                    self.news.update((one.record.stream, one.record.n) for one in batch)
                    mark = mark_after(mark, batch)
            except HandrailError:
                pass  # the store is away
            await asyncio.sleep(0.05)

    async def missed(self) -> list[str]:
        """Events that the reader of news was not given, or was given twice."""
        store = self.writer.reader.store
        written = {(one.record.stream, one.record.n) async for batch in store.scan() for one in batch}
        for _ in range(200):  # it may be behind by a look
            if written <= self.news.keys():
                break
            await asyncio.sleep(0.05)
        lost = [f"{stream} {number} was no news" for stream, number in sorted(written - self.news.keys())]
        return [*lost, *(f"{key} was news {times} times" for key, times in self.news.items() if times > 1)]

    async def end_all(self, within_s: float = 90.0) -> list[Run]:
        """Answer what is asked, decide what is uncertain by the effects, until all runs have ended."""
        deadline, left, ended = time.monotonic() + within_s, list(self.started), list[Run]()
        while left:
            assert time.monotonic() < deadline, f"not ended: {await self._states(left)}"
            await asyncio.sleep(0.1)
            for run_id in list(left):
                try:
                    run = await self.writer.dispatch.current(run_id)
                    await self._act(run)
                except HandrailError:
                    continue  # the store is away, or the run has moved on
                if run.status in ENDED:
                    left.remove(run_id)
                    ended.append(run)
        return ended

    async def _act(self, run: Run) -> None:
        control = self.writer.control
        for path, state in run.steps.items():
            if state.status is StepStatus.WAITING and state.digest:
                await self._changed(await control.act(run.id, Action.APPROVE, actor=ADA, reason="yes", step=path))
                return
            if state.status is StepStatus.UNCERTAIN:
                is_done = any(one["run"] == run.id and one["step"] == path for one in self.found())
                action = Action.ACCEPT if is_done else Action.RETRY
                output = {"done": path} if is_done else None
                acted = control.act(run.id, action, actor=ADA, reason="the effects say so", step=path, output=output)
                await self._changed(await acted)
                return

    async def _changed(self, run: Run) -> None:
        if self.host is not None and random.Random(run.id).random() < 0.7:  # the others are found by the sweep
            await self._wake(self.host, run, "once")

    async def _states(self, runs: Sequence[str]) -> list[str]:
        found = [await self.writer.dispatch.current(run) for run in runs[:3]]
        holders = [await self.writer.reader.store.lease_holder(run) for run in runs[:3]]
        return [f"{run.id} {run.status} {dict(run.steps)} {holder}" for run, holder in zip(found, holders, strict=True)]

    def found(self) -> list[dict[str, str]]:
        """All effects, in order."""
        if not self.effects.exists():
            return []
        return [json.loads(line) for line in self.effects.read_text().splitlines()]

    async def flaws(self, runs: Sequence[Run], stopped: str = "") -> list[str]:
        """What must never be: steps completed twice, effects lost or repeated, events by an owner that was stopped."""
        found, flaws = self.found(), list[str]()
        for run in runs:
            records = await self.writer.reader.store.read(run.id)
            own = [one for one in found if one["run"] == run.id]
            done = Counter((one["step"], one["what"]) for one in own)
            events = [(record.kind, record.step or "", record.actor) for record in records]
            completed = Counter(step for kind, step, _ in events if kind == "step_completed")
            flaws += [f"{run.id} {step} completed {times} times" for step, times in completed.items() if times > 1]
            flaws += [f"{key} {times} notes" for key, times in done.items() if key[1] == "note" and times > 1]
            keys = {(one["step"], one["key"]) for one in own if one["what"] == "slow"}
            flaws += [f"{run.id} has two keys for a step"] * (len(keys) != len({step for step, _ in keys}))
            for step in completed:
                tool = _tool_of(await self.writer.dispatch.definition(run.definition), step)
                if tool in ("note", "slow") and not done[step, tool]:
                    flaws.append(f"{run.id} {step}: the effect is lost")
                if tool in ("note", "slow") and run.status is RunStatus.COMPENSATED and not done[step, "undo"]:
                    flaws.append(f"{run.id} {step}: the undo is lost")
            flaws += self._after_takeover(run, events, stopped)
            assert [entry_of(record) for record in records]  # all can be read
        return flaws

    def _after_takeover(self, run: Run, events: Sequence[tuple[str, str, str]], stopped: str) -> list[str]:
        """Events of the stopped node behind those of another one, in a run that was never put down in between."""
        actors = [actor for kind, _, actor in events if actor.startswith("worker:") and kind != "answer_came_late"]
        is_simple = all(kind not in ("approval_asked", "step_deferred", "attempt_deferred") for kind, _, _ in events)
        own = f"worker:{stopped}"
        if not stopped or own not in actors or not is_simple:
            return []
        behind = actors[actors.index(own) :]
        other = next((place for place, actor in enumerate(behind) if actor != own), len(behind))
        return [f"{run.id}: an event by the old owner"] * behind[other:].count(own)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for node in self.nodes:
            if node.process.poll() is None:
                node.process.kill()
            node.process.wait()
            if node.process.stdout is not None:
                node.process.stdout.close()
        if self.host is not None:
            await self.host.close()


def _tool_of(definition: Definition, step: str) -> str:
    work = next(one.work for one in definition.steps if one.id == step)
    return str(getattr(work, "tool", "")).removeprefix("fleet.")


@asynccontextmanager
async def fleet(
    host: str, *, lease_s: float = 3.0, nodes: int = 2, labels: Sequence[str] = (), url: str = ""
) -> AsyncIterator[Fleet]:
    """A fleet at work under this host, with a PostgreSQL of its own unless `url` names a database; everything is ended
    and removed behind it. With `labels`, there is a node for each instead of so many."""
    with short_folder() as folder:
        postgres = None if host == "sqlite" or url else OwnPostgres(folder)
        temporal = DevTemporal(folder) if host == "temporal" else None
        try:
            if postgres is not None:
                postgres.start()
                url = postgres.url("postgres")
            if temporal is not None:
                temporal.start()
            (folder / "project").mkdir()
            address = temporal.address if temporal is not None else host if host == "absurd" else "local"
            variables = {
                "HANDRAIL_HOME": str(folder / "home"),
                "HANDRAIL_PROJECT": str(folder / "project"),
                "HANDRAIL_STORE": url,
                "HANDRAIL_HOST": address,
                "HANDRAIL_LEASE": f"{int(lease_s * 1_000)}ms",
            }
            if host == "absurd":
                await install_absurd(url)
            settings = read_settings({}, variables)
            async with open_writer(settings) as writer:
                made = host_of(settings, writer.reader.store, project=writer.dispatch.project, node="driver")
                world = Fleet(postgres, temporal, variables, folder, lease_s, writer, made)
                try:
                    named = [{"labels": label} for label in labels] or [{}] * nodes
                    await asyncio.gather(*(world.node(**choices) for choices in named))
                    yield world
                finally:
                    await world.close()
        finally:
            if temporal is not None:
                temporal.stop()
            if postgres is not None:
                postgres.stop()


async def install_absurd(url: str) -> None:
    """Put the functions of Absurd into a database."""
    from absurdctl import BUNDLED_SCHEMA_SQL

    connection = await asyncpg.connect(url)
    await connection.execute(BUNDLED_SCHEMA_SQL)
    await connection.close()
