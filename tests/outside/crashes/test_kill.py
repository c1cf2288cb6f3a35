"""kill -9 at random moments of random runs, also while they are undone: nothing is lost, done twice or out of order.

From outside: real worker processes on a real home, and a real server that counts what was really done."""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RunStatus, StepStatus
from outside.clients.judge import Case, seen_by
from outside.crashes.random_plans import RandomPlan, call, is_refused, plainly, random_plan
from outside.effects_server import EffectsServer, Mood, serving_effects
from outside.processes import PATIENCE_S, Place, first, handrail, place_in, work_until_idle

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a matter of POSIX")

HOMES = 3
RUNS_A_HOME = 35
KILLS_A_HOME = 9
REQUESTS_A_LIFE = 150
"""How many requests a worker makes at most before it is killed."""
SEED = random.SystemRandom().randrange(2**32)


@dataclass
class Home:
    """One home with its runs, and how often its workers were killed."""

    place: Place
    server: EffectsServer
    chance: random.Random
    plans: dict[str, RandomPlan] = field(default_factory=dict)
    decided: dict[str, Action] = field(default_factory=dict)
    kills: int = 0

    async def live(self) -> None:
        """Start runs, kill their workers again and again, and let the runs end."""
        plans = [random_plan(self.chance, self.server.url, number) for number in range(RUNS_A_HOME)]
        own, *others = plans
        started = await self.place.start_all([plan.definition for plan in others])
        self.plans = dict(zip(started, others, strict=True))
        await self.cut_short("run", "start", "-", given=own.definition)
        while self.kills < KILLS_A_HOME - 1:
            if not await self.cut_short("worker", "--until-idle"):
                break
        await work_until_idle(self.place)
        self.plans |= {run: own for run in await self.place.histories() if run not in self.plans}
        while await self.decide():  # each round of a loop may ask again
            if self.kills <= KILLS_A_HOME:
                await self.cut_short("worker", "--until-idle")
            await work_until_idle(self.place)

    async def cut_short(self, *arguments: str, given: object = None) -> bool:
        """Let a process of handrail's work, and kill it in the middle of that; whether it was in the middle."""
        after = len(self.server.asked) + self.chance.randint(1, REQUESTS_A_LIFE)
        async with handrail(self.place, *arguments, given=given) as process:
            await first(self.server.requests(after), process.process.wait())
            await asyncio.sleep(self.chance.uniform(0, 0.004))
            self.kills += process.is_alive
            return process.is_alive

    async def decide(self) -> bool:
        """Decide for the runs that ask: some go on without what failed, the others are undone; whether any asks."""
        asking = [run for run, plan in self.plans.items() if plan.policy == "ask" and plan.refused]
        return any([await self.decide_on(run) for run in asking])

    async def decide_on(self, run: str) -> bool:
        state = await self.place.run(run)
        failed = [path for path, step in state.steps.items() if step.status is StepStatus.FAILED]
        if state.status is not RunStatus.RUNNING or not failed:
            return False
        action = self.decided.setdefault(run, self.chance.choice([Action.SKIP, Action.COMPENSATE]))
        for path in failed if action is Action.SKIP else [""]:
            await self.place.act(run, action, path)
        return True

    async def flaws(self) -> list[str]:
        await self.place.verify()
        seen, histories = seen_by(self.server), await self.place.histories()
        cases = [
            Case(plan, histories[run], seen[run], self.wanted(run), self.decided.get(run) is Action.SKIP)
            for run, plan in self.plans.items()
        ]
        return [flaw for case in cases for flaw in case.flaws()]

    def wanted(self, run: str) -> RunStatus:
        plan = self.plans[run]
        if not plan.refused or self.decided.get(run) is Action.SKIP:
            return RunStatus.COMPLETED
        if plan.policy == "compensate" or self.decided.get(run) is Action.COMPENSATE:
            return RunStatus.COMPENSATED
        return RunStatus.FAILED


async def test_runs_end_as_they_must_however_often_their_worker_is_killed(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    async with serving_effects(
        Mood(chance), refuses=lambda deed: deed.verb == "do" and is_refused(deed.step)
    ) as server:

        async def live(number: int) -> Home:
            home = Home(place_in(tmp_path / str(number)), server, random.Random(f"{SEED}-{number}"))
            await home.live()
            flaws = await home.flaws()
            assert not flaws, f"seed {SEED}, home {number}\n" + "\n".join(flaws)
            return home

        homes = await asyncio.gather(*map(live, range(HOMES)))
    runs, kills = sum(len(home.plans) for home in homes), sum(home.kills for home in homes)
    figures = f"{len(server.asked)} requests, {len(server.effects)} effects"
    sys.stdout.write(f"{runs} runs, {kills} kills, {figures}\n")
    assert runs >= 100
    assert kills >= 3 * HOMES


@pytest.mark.parametrize("action", ["accept", "retry"])
async def test_what_may_not_be_repeated_waits_for_a_decision_after_a_kill(action: str, tmp_path: Path) -> None:
    place = place_in(tmp_path)
    async with serving_effects() as server:
        gate = server.gate("b")
        steps = [call(server.url, "a", "a"), plainly(server.url, "b"), call(server.url, "c", "c")]
        run = await place.start({"id": "plain", "steps": steps})
        async with handrail(place, "worker") as worker:
            await asyncio.wait_for(gate.reached.wait(), PATIENCE_S)
            await worker.kill()
        gate.opened.set()
        await work_until_idle(place)
        waiting = await place.run(run)
        assert (waiting.status, waiting.step("b").status) == (RunStatus.RUNNING, StepStatus.UNCERTAIN)
        assert server.times_asked(run) == {"a": 1, "b": 1}
        async with handrail(place, "run", action, run, "b", "--reason", "a test decides so", "--detach") as decided:
            assert await decided.ended() in {0, 4}, decided.said
        await work_until_idle(place)
        assert (await place.run(run)).status is RunStatus.COMPLETED
        assert server.times_done(run) == {"a": 1, "b": 1 if action == "accept" else 2, "c": 1}
        assert len(server.keys_of(run, "b")) == 1
    await place.verify()
