"""What every host must hold: kill, stop and cut off what you like, every run ends once, and no effect is lost."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from handrail.domain.errors import Unavailable
from handrail.storage.postgres.store import PostgresStore
from hosts.at_once import AtOnce, at_once
from hosts.fleet import PLACES, SIDES, WAKES, Fleet, fleet, plan, saga
from hosts.servers import missing

SAGAS = 9
LONG_SAGAS = 300
TROUBLES = {
    "sqlite": ("kill", "rolling"),
    "local": ("kill", "stop", "upgrade"),
    "temporal": ("kill", "host"),
    "absurd": ("kill", "postgres"),
}
"""The troubles of the short version; the long one has all, for each host."""
ALL_TROUBLES = ("kill", "stop", "host", "postgres", "rolling", "upgrade")


class Outages(NamedTuple):
    """For how long servers are away."""

    host_s: float
    postgres_s: float


SHORT, LONG = Outages(3.0, 3.0), Outages(30.0, 10.0)


@pytest.fixture(scope="module")
def storms(request: pytest.FixtureRequest) -> Iterator[AtOnce]:
    """All hosts at once: most of the time is spent waiting."""
    with at_once(request, lambda host: stormy(host, SAGAS, TROUBLES[host], SHORT, seed=1, lease_s=2.0)) as futures:
        yield futures


@pytest.mark.parametrize("host", PLACES)
def test_runs_end_once_whatever_happens_to_nodes_and_servers(host: str, storms: AtOnce) -> None:
    if reason := missing(host):
        pytest.skip(reason)
    storms[host].result()


@pytest.mark.long
@pytest.mark.parametrize("host", PLACES)
async def test_three_hundred_sagas_end_once_whatever_happens(host: str) -> None:
    if reason := missing(host):
        pytest.skip(reason)
    await stormy(host, LONG_SAGAS, ALL_TROUBLES * 2, LONG, seed=7)


async def stormy(
    host: str, sagas: int, troubles: tuple[str, ...], outages: Outages, *, seed: int, lease_s: float = 3.0
) -> None:
    """Sagas under troubles, one after the other; and a question, a timer, labels and every kind of wake."""
    chance = random.Random(seed)
    async with fleet(host, lease_s=lease_s, labels=SIDES) as world:
        world.watch()
        stopped = ""
        share = max(1, sagas // (len(troubles) + 1))
        certain = [
            plan([{"id": "a", "approve": "Go on?", "expires": "1h"}, {"id": "b", "tool": "fleet.note"}]),
            plan([{"id": "a", "tool": "fleet.wait", "args": {"delay": "6s"}}, {"id": "b", "tool": "fleet.note"}]),
            *(plan([{"id": "a", "tool": "fleet.slow", "args": {"ms": 1_000}}]) for _ in WAKES),
            plan([{"id": f"s{n}", "tool": "fleet.note", "runs_on": [SIDES[n % 2]]} for n in range(4)]),
        ]
        for number, definition in enumerate(certain):
            await world.start(definition, WAKES[number % len(WAKES)])
        for trouble in troubles:
            for _ in range(share):
                await world.start(saga(chance), chance.choice(WAKES))
            await asyncio.sleep(chance.uniform(0.2, 0.8))
            stopped = await made(world, trouble, outages) or stopped
        for _ in range(sagas - share * len(troubles)):
            await world.start(saga(chance), chance.choice(WAKES))
        runs = await world.end_all(within_s=90 + sagas)
        assert await world.flaws(runs, stopped) == []
        assert await world.missed() == []
        assert (await world.writer.reader.verify(replay=True)).breaks == ()
        assert len(runs) == sagas + len(certain)
        if world.is_newer:  # the nodes of before did go on in a store that their version would not open any more
            with pytest.raises(Unavailable, match="written by a newer handrail"):
                await PostgresStore.open(world.variables["HANDRAIL_STORE"])


async def made(world: Fleet, trouble: str, outages: Outages) -> str:
    """Make trouble; the owner that was stopped and goes on, if any."""
    match trouble:
        case "kill":
            node = world.nodes[-1]
            node.kill(signal.SIGKILL)
            await world.node(labels=node.labels)
        case "stop":
            node = world.nodes[-1]
            await world.node(labels=node.labels)  # before: in a file, a stopped process may hold the lock of the store
            node.kill(signal.SIGSTOP)
            await asyncio.sleep(2 * world.lease_s)
            node.kill(signal.SIGCONT)
            await asyncio.sleep(1)
            node.kill(signal.SIGTERM)  # it hands over what it has got since
            return node.owner
        case "host" if world.temporal is not None:
            world.temporal.stop()
            await asyncio.sleep(outages.host_s)
            world.temporal.start()
        case "postgres" if world.postgres is not None:
            world.postgres.stop()
            await asyncio.sleep(outages.postgres_s)
            world.postgres.start()
        case "upgrade" if world.postgres is not None:
            # Nodes that are up go on beside newer ones, in tables that those have changed.
            world.is_newer = True
            await rolling(world)
        case "rolling":
            await rolling(world)
        case _:
            pass  # there is no such server under this host
    return ""


async def rolling(world: Fleet) -> None:
    """Start a node, then end an old one in its own time; one after the other."""
    for old in [node for node in world.nodes if node.process.poll() is None]:
        await world.node(labels=old.labels)
        old.kill(signal.SIGTERM)
        await asyncio.to_thread(old.process.wait, 60)
