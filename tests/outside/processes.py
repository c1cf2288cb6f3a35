"""handrail processes, started as a user would, with their own home folder; and ways to kill them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from handrail.assembly.opening import open_reader, open_writer
from handrail.domain.definition.authoring import definition_from
from handrail.domain.journal.event import Entry
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run, replay
from handrail.engine.stream_pages import entries_of
from handrail.foundation.atomic_file import make_private_folder
from handrail.settings import Settings, read_settings

PERSON = "person:ada"
PATIENCE_S = 30.0
"""How long a condition is waited for that must come true."""


@dataclass(frozen=True)
class Place:
    """A home and a project that may call this machine."""

    home: Path
    project: Path
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        known = {name: value for name, value in os.environ.items() if not name.startswith("HANDRAIL_")}
        folders = {"HANDRAIL_HOME": str(self.home), "HANDRAIL_PROJECT": str(self.project)}
        # Agents here follow scripts: there are no projects behind what they claim.
        own = {**folders, "HANDRAIL_CHECKS": "plain", **self.more}
        return {**known, **own, "PYTHONUNBUFFERED": "1"}

    @property
    def settings(self) -> Settings:
        return read_settings({}, self.environment)

    async def start(self, definition: dict[str, Any]) -> str:
        """Start a run that a worker on this home picks up."""
        return (await self.start_all([definition]))[0]

    async def start_all(self, definitions: list[dict[str, Any]]) -> list[str]:
        async with open_writer(self.settings) as parts:
            starts = (parts.dispatch.start(definition_from(one), {}, actor=PERSON) for one in definitions)
            return [run.id for run in await asyncio.gather(*starts)]

    async def act(self, run: str, action: Action, step: str = "") -> Run:
        """Do to a run what a person would."""
        reason = "a test decides so"
        async with open_writer(self.settings) as parts:
            return await parts.control.act(run, action, actor=PERSON, reason=reason, step=step)

    async def histories(self) -> dict[str, list[Entry]]:
        """Every run's events, read from the file."""
        async with open_reader(self.settings) as look:
            rows = await look.store.runs(limit=10_000)
            return {row.id: await entries_of(look.store, row.id) for row in rows}

    async def run(self, run: str) -> Run:
        """A run as its events tell."""
        async with open_reader(self.settings) as look:
            return replay(await entries_of(look.store, run), Run(id=run))

    async def events(self, run: str) -> list[Entry]:
        async with open_reader(self.settings) as look:
            return await entries_of(look.store, run)

    async def until(self, run: str, holds: Callable[[Run], bool], *, within_s: float = PATIENCE_S) -> Run:
        """Wait until something is true of a run."""
        async with open_reader(self.settings) as look, asyncio.timeout(within_s):
            while True:
                state = replay(await entries_of(look.store, run), Run(id=run))
                if holds(state):
                    return state
                await asyncio.sleep(0.02)

    async def verify(self) -> None:
        """Prove the whole journal, and that what is stored of runs is what their events say."""
        async with open_reader(self.settings) as look:
            verdict = await look.verify(replay=True)
        assert verdict.ok, verdict


def place_in(folder: Path, **more: str) -> Place:
    """A fresh home and project in a folder."""
    place = Place(
        folder / "home", folder / "project", {f"HANDRAIL_{name.upper()}": value for name, value in more.items()}
    )
    (place.project / ".handrail").mkdir(parents=True)
    make_private_folder(place.home)
    (place.home / "config.toml").write_text('[http]\nallow = ["127.0.0.1"]\n')
    return place


@dataclass
class Process:
    """One process of handrail's."""

    process: asyncio.subprocess.Process
    said: list[str] = field(default_factory=list)
    """What it has said on stderr, line by line."""
    _listening: asyncio.Task[None] = field(init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.said.append(line.decode(errors="replace").rstrip())
            self._news.set()

    async def says(self, words: str, *, within_s: float = PATIENCE_S) -> str:
        """Wait for a line with these words in it."""
        try:
            async with asyncio.timeout(within_s):
                while not (found := [line for line in self.said if words in line]):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{words!r} was never said, but: {self.said}") from None
        return found[0]

    async def owner(self) -> str:
        """The name that a worker works under."""
        return (await self.says(" started")).split()[1]

    @property
    def is_alive(self) -> bool:
        return self.process.returncode is None

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        """kill -9."""
        if self.is_alive:
            self.process.kill()
        await self.ended()

    async def ended(self, *, within_s: float = PATIENCE_S) -> int:
        async with asyncio.timeout(within_s):
            code = await self.process.wait()
            await self._listening
        return code


@asynccontextmanager
async def handrail(place: Place, *arguments: str, given: Any = None) -> AsyncIterator[Process]:
    """`handrail ...` as a process; it is gone at the end, come what may."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "handrail",
        *arguments,
        env=place.environment,
        cwd=place.project,
        stdin=asyncio.subprocess.PIPE if given is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    started = Process(process)
    try:
        if process.stdin is not None:
            process.stdin.write(msgspec.json.encode(given))
            process.stdin.close()
        yield started
    finally:
        await started.kill()


async def work_until_idle(place: Place) -> None:
    """Let a worker do all that is left to do."""
    async with handrail(place, "worker", "--until-idle") as worker:
        assert await worker.ended(within_s=4 * PATIENCE_S) == 0, worker.said


async def first(*waits: Awaitable[object]) -> None:
    """Wait for whatever comes first."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
