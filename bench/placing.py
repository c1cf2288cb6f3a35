"""What does a host cost, and how soon does another node go on when one is gone?

    python bench/placing.py [runs] [host ...]

Real nodes, PostgreSQL and Temporal's dev server out of wheels, as in the suite (tests/hosts). A run is a plan of five
pure steps; it counts from its start until it has ended. `bare` is a workflow of Temporal with one activity that does
nothing, on the same server. Heartbeat and lease are 3 s. Compare ratios of one run: the machine is shared."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bars import at_least, at_most, exit_code, left_out
from hosts.fleet import HOSTS, Fleet, fleet, plan
from hosts.servers import missing

LOST = ("attempt_lost", "step_became_uncertain")
AT_ONCE, WARM, LEASE_S, DOWN_S, WAIT_S = 32, 10, 3.0, 10.0, 120.0
FIVE = plan([{"id": f"s{number}", "tool": "value.set", "args": {"value": number}} for number in range(5)])
LONG = plan([{"id": "a", "tool": "fleet.slow", "args": {"ms": 60_000}, "timeout": "5m"}])
MANY = plan([{"id": f"s{number}", "tool": "fleet.slow", "args": {"ms": 300}} for number in range(20)])


async def at_once(runs: int, one: Callable[[], Awaitable[object]]) -> None:
    left = iter(range(runs))

    async def some() -> None:
        for _ in left:
            await one()

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


async def ended(world: Fleet, runs: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while sum(one.runs for one in await world.writer.reader.store.run_counts() if one.status == "completed") < runs:
        if time.monotonic() > deadline:
            raise SystemExit("the runs do not end")
        await asyncio.sleep(0.02)


async def rate(world: Fleet, runs: int) -> float:
    """Runs a second, of one node."""
    await at_once(WARM, lambda: world.start(FIVE))
    await ended(world, WARM)
    before = time.perf_counter()
    await at_once(runs, lambda: world.start(FIVE))
    await ended(world, WARM + runs)
    return runs / (time.perf_counter() - before)


async def bare_rate(address: str, runs: int) -> float:
    """Workflows a second with one activity that does nothing, executed by a process of their own."""
    from temporalio.client import Client

    server = address.removeprefix("temporal://").partition("/")[0]
    client = await Client.connect(server)
    peer = Path(__file__).parent / "peers" / "bare_temporal.py"
    worker = await asyncio.create_subprocess_exec(sys.executable, str(peer), server)
    try:
        once = lambda: client.execute_workflow(  # noqa: E731 - one line of what is measured
            "bare", "x", id=uuid.uuid4().hex, task_queue="bare", execution_timeout=timedelta(seconds=WAIT_S)
        )
        await at_once(WARM, once)
        before = time.perf_counter()
        await at_once(runs, once)
        return runs / (time.perf_counter() - before)
    finally:
        worker.kill()
        await worker.wait()


async def takeover(world: Fleet, how: int) -> float:
    """Seconds from the end, or the sleep, of a node until another one has called the tool of its run again."""
    first, _ = world.nodes[-1], await world.node()
    known = len(world.found())
    runs = [await world.start(LONG) for _ in range(4)]
    while len(world.found()) < known + len(runs):  # noqa: ASYNC110 - other processes write the file
        await asyncio.sleep(0.02)
    held = {one["run"] for one in world.found()[known:] if one["node"] == first.name}
    victim = first if held else world.nodes[-1]
    held = {one["run"] for one in world.found()[known:] if one["node"] == victim.name}
    before = time.monotonic()
    victim.kill(how)
    while True:
        again = {one["run"] for one in world.found()[known:] if one["node"] != victim.name}
        if held <= again:
            break
        if time.monotonic() - before > WAIT_S:
            raise SystemExit("no other node goes on")
        await asyncio.sleep(0.02)
    took = time.monotonic() - before
    victim.kill(signal.SIGKILL)
    return took


async def without_postgres(world: Fleet) -> tuple[float, int]:
    """Seconds from the return of PostgreSQL until all runs that were under way have ended, which had 2 s left; and how
    many of their attempts were lost."""
    (counted,) = [one.runs for one in await world.writer.reader.store.run_counts() if one.status == "completed"] or [0]
    runs = [await world.start(MANY) for _ in range(6)]
    await asyncio.sleep(4)
    assert world.postgres is not None
    world.postgres.stop()
    await asyncio.sleep(DOWN_S)
    world.postgres.start()
    before = time.monotonic()
    await ended(world, counted + 6)
    took = time.monotonic() - before
    records = [record for run in runs for record in await world.writer.reader.store.read(run)]
    return took, sum(record.kind in LOST for record in records)


async def measured(host: str, runs: int) -> dict[str, float]:
    found: dict[str, float] = {}
    async with fleet(host, lease_s=LEASE_S, nodes=1) as world:
        if world.temporal is not None:
            found["bare"] = await bare_rate(world.temporal.address, runs)
        found["rate"] = await rate(world, runs)
        print(f"{host:9} {found['rate']:7.1f} runs/s" + (f", bare {found['bare']:.1f}" if "bare" in found else ""))
        after_s, lost = await without_postgres(world)
        at_most(f"{host}, PostgreSQL away for {DOWN_S:.0f} s, then all ended after (s)", after_s, 10.0)
        at_most(f"{host}, attempts lost by that", lost, 0)
        at_most(f"{host}, killed, taken over after (s)", await takeover(world, signal.SIGKILL), LEASE_S + 1)
        at_most(f"{host}, hung, taken over after (s)", await takeover(world, signal.SIGSTOP), LEASE_S + 5)
    return found


async def main(runs: int, hosts: list[str]) -> int:
    found = {}
    for host in hosts:
        if reason := missing(host):
            left_out(host, reason)
        else:
            found[host] = await measured(host, runs)
    if "temporal" in found:
        at_least("Temporal host, of a bare workflow", found["temporal"]["rate"] / found["temporal"]["bare"], 0.8)
    if {"absurd", "local"} <= found.keys():
        at_least("Absurd host, of local", found["absurd"]["rate"] / found["local"]["rate"], 0.45)
    return exit_code()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(int((sys.argv[1:] or ["300"])[0]), sys.argv[2:] or list(HOSTS))))
