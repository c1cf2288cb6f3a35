"""What does a step cost that calls a tool server, and how soon is a failing server left alone, and trusted again?

    python bench/tools.py [--rounds 20] [--steps 100] [--ill 10] [--again 16]

Steps beside the bare SDK client's calls of the same server, in turns, so that neighbours in time are compared; a step
is measured from one call's coming to the server until the next one's. Then a server that fails every request under
load: how many requests still come, and how long after it is well again its breaker closes, by the journal."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from mcp import StdioServerParameters
from mcp.client import Client

from handrail.assembly.opening import Assembly, open_assembly
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Definition
from handrail.domain.journal.codec import kind_of
from handrail.domain.journal.event import SERVER_PREFIX
from handrail.engine.reading.run_view import Detail
from handrail.engine.stream_pages import entries_of
from handrail.settings import read_settings

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bars import exit_code, miss

SERVER: Final = Path(__file__).parent / "peers" / "tool_server.py"
LOCAL, FLAKY = "local", "flaky"
LANES: Final = 8
LANE_STEPS: Final = 20
HEALTHY_S: Final = 3.0
CLOSED_WITHIN_S: Final = 90.0
WINDOW_S: Final = 2.0
PERSISTENT: Final = {"attempts": 100, "first": "50ms", "factor": 1.5, "max": "1s"}


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--ill", type=float, default=10.0, help="seconds until the server is well again")
    parser.add_argument("--again", type=float, default=16.0, help="the same for a second, longer illness")
    asked = parser.parse_args()
    print(f"{'':58}{'figure':>12}{'target':>12}")
    asyncio.run(overhead(asked))
    for ill_s in (asked.ill, asked.again):
        asyncio.run(breaker(ill_s))


def show(title: str, figure: float, target: float | None, unit: str = "", *, least: bool = False) -> None:
    missed = target is not None and (figure < target if least else figure > target)
    goal = f"{target:9.4g} {unit:2}" if target is not None else ""
    if missed:
        miss(title)
    print(f"{title:58}{figure:9.4g} {unit:2}{goal:>12}{'   MISSED' if missed else ''}", flush=True)


@asynccontextmanager
async def program(servers: dict[str, Any]) -> AsyncIterator[Assembly]:
    """Handrail at work for a user who declares these servers."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "home").mkdir(mode=0o700)
        (Path(folder) / "home" / "tools.json").write_text(json.dumps({"mcpServers": servers}))
        chosen = {"home": str(Path(folder) / "home"), "project": folder}
        async with open_assembly(read_settings(chosen, {})) as parts:
            yield parts


def plan(tool: str, steps: int) -> Definition:
    calls = [{"id": f"s{n}", "tool": tool, "args": {"number": n}, "retry": PERSISTENT} for n in range(steps)]
    return definition_from({"id": "bench", "steps": calls})


async def overhead(asked: Namespace) -> None:
    bare: list[float] = []
    steps: dict[str, list[float]] = {"look": [], "note": []}
    beyond: dict[str, list[float]] = {"look": [], "note": []}
    command = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
    async with program({LOCAL: {"command": command.command, "args": command.args}}) as parts, Client(command) as sdk:
        await called(sdk, asked.steps)
        for tool in steps:
            await stepped(parts, plan(f"{LOCAL}.{tool}", asked.steps))
        for _ in range(asked.rounds):
            alone = await called(sdk, asked.steps)
            bare += alone
            for tool, times in steps.items():
                took = await stepped(parts, plan(f"{LOCAL}.{tool}", asked.steps))
                times += took
                beyond[tool].append(statistics.median(took) - statistics.median(alone))
    show("a call by the bare SDK client, p50", statistics.median(bare), None, "ms")
    for tool, words in (("look", "without effect"), ("note", "with effect")):
        show(f"a step {words}, p50", statistics.median(steps[tool]), None, "ms")
        show("  p99", quantile(steps[tool], 0.99), None, "ms")
        show("  beyond the bare call, p50", statistics.median(beyond[tool]), 3, "ms")


async def called(sdk: Client, calls: int) -> list[float]:
    """The milliseconds from one call to the next, of calls made one after the other."""
    answers = [(await sdk.call_tool("look", {"number": n})).structured_content for n in range(calls)]
    return between([answer["at"] for answer in answers if answer])


async def stepped(parts: Assembly, definition: Definition) -> list[float]:
    """The same of the steps of one run."""
    run = await parts.worker.settled((await parts.worker.start(definition, {}, actor="person:bench")).id)
    return between([run.step(step.id).output["at"] for step in definition.steps])


def between(moments_ns: Sequence[int]) -> list[float]:
    return [(after - before) / 1e6 for before, after in pairwise(moments_ns)]


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def breaker(ill_s: float) -> None:
    """A server that is well, then ill for so long, then well again."""
    with served() as address:
        async with program({FLAKY: {"url": f"{address}/mcp"}}) as parts:
            lanes = [asyncio.create_task(lane(parts)) for _ in range(LANES)]
            try:
                await judged(parts, address, ill_s)
            finally:
                for one in lanes:
                    one.cancel()
                await asyncio.gather(*lanes, return_exceptions=True)


async def lane(parts: Assembly) -> None:
    """One run after the other."""
    definition = plan(f"{FLAKY}.look", LANE_STEPS)
    while True:
        await parts.worker.settled((await parts.worker.start(definition, {}, actor="person:bench")).id)


async def judged(parts: Assembly, address: str, ill_s: float) -> None:
    await asyncio.sleep(HEALTHY_S)
    healthy = await rate(address, WINDOW_S)
    await mood(address, "ill")
    began = time.monotonic()
    first = await rate(address, 1.0)
    await asyncio.sleep(began + ill_s - WINDOW_S - time.monotonic())
    left = await rate(address, WINDOW_S)
    held = await shown(parts)
    await mood(address, "well")
    well = time.monotonic()
    print(f"a server that fails every request for {ill_s:g} s, under the load of {LANES} runs")
    show("  requests a second before", healthy, None)
    show("  requests in the first second of failing", first, None)
    show(f"  requests a second after {ill_s:g} s", left, None)
    show("  less than before", 100 * (1 - left / healthy), 95, "%", least=True)
    show("  runs whose status shows the breaker", held, None)
    closed = await closing(parts)
    show("  seconds from well to closed", closed - well, 30, "s")
    await asyncio.sleep(1)
    show("  requests a second afterwards", await rate(address, WINDOW_S), None)
    print(f"  the journal of {SERVER_PREFIX}{FLAKY}: {', '.join(await kinds(parts))}")


async def rate(address: str, seconds: float) -> float:
    before = await mood(address)
    await asyncio.sleep(seconds)
    return (await mood(address) - before) / seconds


async def mood(address: str, word: str = "") -> int:
    """Tell the server how to be; how many requests have come so far."""

    def ask() -> int:
        line = http.client.HTTPConnection(address.removeprefix("http://"), timeout=10)
        line.request("POST" if word else "GET", "/mood", body=word or None)
        count = int(line.getresponse().read())
        line.close()
        return count

    return await asyncio.to_thread(ask)


async def shown(parts: Assembly) -> int:
    """How many open runs say in their status that they wait for the breaker."""
    rows = await parts.run_reader.runs(status=("running", "waiting"), limit=LANES)
    held = 0
    for row in rows:
        view = await parts.run_reader.status(row.run, detail=Detail.FULL, within=parts.worker.within(row.run))
        held += any("breaker" in why.reason for step in view.steps for why in step.waits_for)
    return held


async def closing(parts: Assembly) -> float:
    """The moment at which the breaker is seen to be closed."""
    end = time.monotonic() + CLOSED_WITHIN_S
    while time.monotonic() < end:
        found = await kinds(parts)
        if found and found[-1] == "breaker_closed":
            return time.monotonic()
        await asyncio.sleep(0.05)
    return float("inf")


async def kinds(parts: Assembly) -> list[str]:
    entries = await entries_of(parts.writer.reader.store, SERVER_PREFIX + FLAKY)
    return [kind_of(entry.event) for entry in entries]


@contextmanager
def served() -> Iterator[str]:
    """The moody server in a process of its own: its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), "http", str(port)])
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


if __name__ == "__main__":
    main()
    raise SystemExit(exit_code())
