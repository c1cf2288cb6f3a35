"""Where a host places runs: at nodes that have what a step asks for and that take runs, and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from handrail.domain.fleet.node import FleetNode
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RunStatus, StepStatus
from hosts.at_once import AtOnce, at_once
from hosts.fleet import ADA, HOSTS, Fleet, fleet, plan
from hosts.node import RELEASED
from hosts.servers import missing
from storage.postgres.databases import new_database

LABELLED = plan(
    [
        {"id": "before", "tool": "fleet.note"},
        {"id": "train", "tool": "fleet.note", "runs_on": ["gpu"], "after": ["before"]},
        {"id": "ask", "approve": "Go on?", "after": ["before"]},
        {"id": "beside", "tool": "fleet.note", "after": ["ask"]},
        {"id": "both", "tool": "fleet.note", "runs_on": ["gpu", "linux"], "after": ["train", "beside"]},
        {"id": "last", "tool": "fleet.note", "after": ["both"]},
    ]
)
ONE = plan([{"id": "a", "tool": "fleet.note"}])
HELD = plan([{"id": "a", "tool": "fleet.hold"}])


async def until(holds: Callable[[], Awaitable[Any]], within_s: float = 60.0) -> None:
    async with asyncio.timeout(within_s):
        while not await holds():
            await asyncio.sleep(0.05)


async def nodes(world: Fleet) -> list[FleetNode]:
    return await world.writer.reader.store.nodes().all()


def by_node(world: Fleet, run: str) -> dict[str, str]:
    return {one["step"]: one["node"] for one in world.found() if one["run"] == run}


@pytest.fixture(scope="module")
def placed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AtOnce]:
    """All hosts at once: most of the time is spent waiting. None of them stops the database, so they share a server."""

    folders = {host: tmp_path_factory.mktemp(host) for host in HOSTS}  # not in the threads, which it can't bear

    async def scene(host: str) -> None:
        await is_placed(host, await new_database(folders[host], f"placed_{host}"))

    with at_once(request, scene) as futures:
        yield futures


@pytest.mark.parametrize("host", HOSTS)
def test_a_run_goes_where_its_steps_ask_for_and_paused_or_full_nodes_get_none(host: str, placed: AtOnce) -> None:
    if reason := missing(host):
        pytest.skip(reason)
    placed[host].result()


async def is_placed(host: str, url: str) -> None:
    async with fleet(host, nodes=1, url=url) as world:
        await goes_to_its_labels(world)
        await passes_a_paused_node(world)
        await fills_no_more_than_its_slots(world)
        if host == "temporal":
            await is_found_in_temporal(world)


async def goes_to_its_labels(world: Fleet) -> None:
    """A step that asks for labels waits for a node with them, and holds up nothing that any node could do."""
    run = await world.start(LABELLED)

    async def step(path: str) -> StepStatus:
        return (await world.writer.dispatch.current(run)).step(path).status

    async def is_waiting() -> bool:
        holder = await world.writer.reader.store.lease_holder(run)
        return holder is not None and holder.needs == "gpu" and not holder.owner

    await until(is_waiting)
    await world.writer.control.act(run, Action.APPROVE, actor=ADA, reason="yes", step="ask")
    await until(lambda: _is(step("beside"), StepStatus.COMPLETED))
    assert await step("train") is not StepStatus.COMPLETED
    await world.node(labels="gpu,linux")
    await until(lambda: _is(step("last"), StepStatus.COMPLETED))
    found = by_node(world, run)
    assert (found["before"], found["beside"]) == ("n0", "n0")
    assert (found["train"], found["both"]) == ("n1", "n1")
    assert len(world.found()) == len(found)


async def all_know(world: Fleet) -> None:
    """Wait until each node has read what is noted of it by now: the first beat from here may have read it before."""
    for one in await nodes(world):
        await until(partial(_has_beaten, world, one.card.id, one.beat + 2))


async def passes_a_paused_node(world: Fleet) -> None:
    table = world.writer.reader.store.nodes()
    (bare,) = [one for one in await nodes(world) if not one.card.labels]
    await table.pause(bare.card.id, ADA)
    await all_know(world)
    runs = [await world.start(ONE) for _ in range(6)]
    await ended(world, runs)
    assert {by_node(world, run)["a"] for run in runs} == {"n1"}
    await table.pause(bare.card.id, "")


async def fills_no_more_than_its_slots(world: Fleet) -> None:
    """What a node with two slots is asked for beyond that waits for a place, or goes elsewhere."""
    for one in await nodes(world):
        await world.writer.reader.store.nodes().pause(one.card.id, ADA)
    await all_know(world)
    await world.node(slots="2")
    (small,) = [one.card.id for one in await nodes(world) if one.card.slots]
    runs = [await world.start(HELD) for _ in range(6)]

    async def beaten() -> tuple[int, int]:
        (one,) = [one for one in await nodes(world) if one.card.id == small]
        return one.card.used, one.beat

    async def is_full() -> bool:
        return (await beaten())[0] >= 2

    await until(is_full)
    _, beat = await beaten()
    await until(partial(_has_beaten, world, small, beat + 2))  # long enough to take more, if it did
    used, _ = await beaten()
    assert used == 2
    (world.effects.with_name(RELEASED)).touch()
    await ended(world, runs)
    assert {by_node(world, run)["a"] for run in runs} == {"n2"}


async def is_found_in_temporal(world: Fleet) -> None:
    """Temporal's own pages list runs by project, workflow and state."""
    from temporalio.client import Client

    assert world.temporal is not None
    client = await Client.connect(f"127.0.0.1:{world.temporal.port}")
    asked = await world.start(plan([{"id": "a", "approve": "Go on?", "expires": "1h"}]))
    project = world.writer.dispatch.project

    async def found(state: str) -> set[str]:
        query = f"HandrailProject='{project}' and HandrailWorkflow='saga' and HandrailState='{state}'"
        return {one.id async for one in client.list_workflows(query)}

    await until(lambda: _has(found("timer"), asked))
    await until(lambda: _has(found("completed"), world.started[0]))
    assert asked not in await found("completed")


async def ended(world: Fleet, runs: list[str]) -> None:
    async def all_have() -> bool:
        return not await open_runs(world, runs)

    await until(all_have)


async def open_runs(world: Fleet, runs: list[str]) -> list[str]:
    return [run for run in runs if (await world.writer.dispatch.current(run)).status is not RunStatus.COMPLETED]


async def _has_beaten(world: Fleet, node: str, beat: int) -> bool:
    return any(one.beat > beat for one in await nodes(world) if one.card.id == node)


async def _is(found: Awaitable[object], wanted: object) -> bool:
    return await found is wanted


async def _has(found: Awaitable[set[str]], wanted: str) -> bool:
    return wanted in await found
