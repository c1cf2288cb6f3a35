"""Sagas under kill -9, also while they are undone: every run that must be compensated is.

From outside: real workers, a real server and real files. Each run is killed three times before it can end; then the
world and the journal are compared."""

from __future__ import annotations

import asyncio
import json
import random
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.journal.event import Entry, RunCompensated, UndoBecameUncertain, UndoFailed, UndoLost
from handrail.domain.run.state import Run, replay
from handrail.domain.run.status import RUN_WORKING, RunStatus, StepStatus
from outside.clients.judge import Seen, seen_by
from outside.crashes.random_plans import REFUSED
from outside.crashes.random_sagas import BEFORE, LAST, ONCE, Saga, random_saga
from outside.effects_server import EffectsServer, Mood, serving_effects
from outside.processes import PATIENCE_S, Place, handrail, place_in, work_until_idle

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a matter of POSIX")

KILLS = 3
REQUESTS_A_SAGA = 9
SEED = random.SystemRandom().randrange(2**32)


@dataclass
class Home:
    """One home with its sagas."""

    place: Place
    server: EffectsServer
    chance: random.Random
    sagas: dict[str, Saga] = field(default_factory=dict)
    interrupted: int = 0
    """How many undos were lost in a kill."""

    async def live(self, runs: int) -> None:
        """Start the sagas, kill their worker three times before any of them can end, and let them end."""
        gate = self.server.gate(LAST)
        sagas = [random_saga(self.chance, self.server.url, number, self.place.project) for number in range(runs)]
        started = await self.place.start_all([saga.definition for saga in sagas])
        self.sagas = dict(zip(started, sagas, strict=True))
        for _ in range(KILLS - 1):
            await self._cut_short(self.chance.randint(1, runs * REQUESTS_A_SAGA // 2))
        await self._cut_short(self.chance.randint(1, runs * 2), verb="undo")
        unended = [run for run in self.sagas if (await self.place.run(run)).status in RUN_WORKING]
        assert len(unended) == runs, "each run must be killed three times"
        gate.opened.set()
        await work_until_idle(self.place)

    async def _cut_short(self, more: int, *, verb: str = "") -> None:
        """Let a worker work, and kill it after so many more requests, or when all sagas wait at the gate."""
        wanted = self._requests(verb) + more
        async with handrail(self.place, "worker") as worker, asyncio.timeout(PATIENCE_S):
            while worker.is_alive and self._requests(verb) < wanted and not self._all_held():
                await asyncio.sleep(0.002)
            await asyncio.sleep(self.chance.uniform(0, 0.02))
            assert worker.is_alive, worker.said

    def _requests(self, verb: str) -> int:
        return sum(not verb or one.deed.verb == verb for one in self.server.asked)

    def _all_held(self) -> bool:
        return {one.deed.run for one in self.server.asked if one.deed.step == LAST} == set(self.sagas)

    async def flaws(self) -> list[str]:
        await self.place.verify()
        seen, histories = seen_by(self.server), await self.place.histories()
        found = []
        for run, saga in self.sagas.items():
            entries = histories[run]
            self.interrupted += sum(isinstance(entry.event, UndoLost) for entry in entries)
            flaws = [*_in_journal(run, entries), *_at_server(saga, seen[run])]
            found += [f"{run} ({saga.definition['id']}): {flaw}" for flaw in flaws]
        return [*found, *self._in_files()]

    def _in_files(self) -> Iterator[str]:
        for file in self.place.project.glob("*.txt"):
            if not file.name.startswith("old-"):
                yield f"{file.name} was left behind"
            elif file.read_text() != BEFORE:
                yield f"{file.name} is not what it was"


def _in_journal(run: str, entries: list[Entry]) -> Iterator[str]:
    state = replay(entries, Run(id=run))
    if state.status is not RunStatus.COMPENSATED:
        yield f"it is {state.status.value}"
    elif entries[-1].event != RunCompensated():
        yield f"it ended with {entries[-1].event}"
    for entry in entries:
        if isinstance(entry.event, UndoFailed | UndoBecameUncertain):
            yield f"an undo that never failed has: {entry.event}"


def _at_server(saga: Saga, seen: Seen) -> Iterator[str]:
    done = seen.spots("do")
    wanted = {spot for name in done for spot in saga.undone_at[name]}
    if wanted != seen.spots("undo"):
        yield f"done: {sorted(done)}; undone: {sorted(seen.spots('undo'))}"
    for (verb, spot), requests in seen.asked.items():
        keys = {one.key for one in requests}
        if len(keys) != 1:
            yield f"{verb} {spot} was asked for under the keys {sorted(keys)}"
    for (verb, spot), effects in seen.effects.items():
        if len(effects) != 1:
            yield f"{verb} {spot} happened {len(effects)} times"


async def _lived(folder: Path, name: str, runs: int) -> Home:
    chance = random.Random(f"{SEED}-{name}")
    mood = Mood(chance, slow_s=0.03, fails=0.0)
    async with serving_effects(mood, refuses=lambda deed: deed.step == REFUSED) as server:
        home = Home(place_in(folder / name), server, chance)
        await home.live(runs)
        flaws = await home.flaws()
        assert not flaws, f"seed {SEED}, home {name}\n" + "\n".join(flaws)
        return home


async def test_every_saga_that_is_killed_three_times_is_compensated(tmp_path: Path) -> None:
    await _lived(tmp_path, "few", 12)


@pytest.mark.long
@pytest.mark.parametrize("tenth", range(10))
async def test_two_hundred_sagas_that_are_killed_three_times_each_are_all_compensated(
    tenth: int, tmp_path: Path
) -> None:
    home = await _lived(tmp_path, str(tenth), 20)
    sys.stdout.write(f"{len(home.sagas)} sagas, {KILLS} kills each, {home.interrupted} undos interrupted\n")
    assert home.interrupted, "no kill struck an undo: this proves nothing"


# --- undos that opted out ---------------------------------------------------------------------------


def _opted_out(url: str) -> dict[str, Any]:
    def request(verb: str, spot: str) -> dict[str, Any]:
        address = f"{url}/{verb}/{{{{ run.id }}}}/{spot}"
        return {"tool": "http.request", "args": {"method": "POST", "url": address}}

    undo = {**request("undo", LAST), "idempotent": False}
    steps = [
        {"id": "a", **request("do", "a"), "idempotent": True, "undo": undo},
        {"id": REFUSED, **request("do", REFUSED), "retry": ONCE},
    ]
    return {"id": "careful", "on_failure": "compensate", "steps": steps}


async def test_a_killed_undo_that_opted_out_asks_and_each_command_that_it_offers_works(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    async with serving_effects(refuses=lambda deed: deed.step == REFUSED) as server:
        gate = server.gate(LAST)
        runs = await place.start_all([_opted_out(server.url)] * 3)
        async with handrail(place, "worker") as worker, asyncio.timeout(PATIENCE_S):
            while sum(one.deed.step == LAST for one in server.asked) < len(runs):
                await asyncio.sleep(0.005)
            await worker.kill()
        gate.opened.set()
        await work_until_idle(place)
        assert len(server.asked) == 3 * len(runs), "nothing may be repeated before somebody decides"
        for run, action in zip(runs, ("retry", "skip", "record"), strict=True):
            status = await _shown(place, run)
            assert (status["status"], status["failure"]["step"]) == ("compensating", "a")
            [command] = [one["command"] for one in status["failure"]["options"] if one["action"] == action]
            _, *words = shlex.split(command)
            async with handrail(place, *words, "--detach") as decided:
                assert await decided.ended() == 0, decided.said
        await work_until_idle(place)
        ends = [await place.run(run) for run in runs]
        assert [one.status for one in ends] == [RunStatus.COMPENSATED] * 3
        assert [one.step("a").compensation for one in ends] == ["executed", "", "recorded"]
        assert ends[1].step("a").status is StepStatus.SKIPPED
        assert [server.times_asked(run)[LAST] for run in runs] == [2, 1, 1]
        assert server.keys_of(runs[0], LAST) == {f"{runs[0]}:a:undo"}
    await place.verify()


async def _shown(place: Place, run: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "handrail", "run", "show", run, "--json"]
    process = await asyncio.create_subprocess_exec(
        *command, env=place.environment, cwd=place.project, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    shown: dict[str, Any] = json.loads(said)
    return shown
