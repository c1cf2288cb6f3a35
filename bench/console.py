"""What does the console cost? The API beside the MCP tools, the live feed at 1, 50 and 200 readers, memory, pages.

    python bench/console.py [--calls 300]

The pages are measured in Chromium, by console_browser.py.

A real `handrail serve` process; clients are on the same machine and share its cores, so compare ratios. The engine's
work is that of a plan of tool calls, with and without readers: what readers cost it. Needs Linux (/proc)."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx

BROWSER: Final = Path(__file__).with_name("console_browser.py")
READERS: Final = (0, 1, 50, 200)
STEPS: Final = 150
LATENCY_MS_MAX: Final = 300
"""What an agent does is seen within this time."""
WARM: Final = 20
PLAN: Final = {
    "id": "many",
    "steps": [
        {"id": f"s{number}", "tool": "file.write", "args": {"path": "x.txt", "text": f"{number}"}}
        for number in range(STEPS)
    ],
}
WAITING: Final = {"id": "waits", "steps": [{"id": "ask", "approve": "Go?"}]}


class Bench:
    """A running server, and how to call it."""

    def __init__(self, base: str, home: Path, pid: int) -> None:
        self.base, self.home, self.pid = base, home, pid
        self.key = (home / "console-key").read_text(encoding="utf-8").strip()
        self.token = (home / "http-token").read_text(encoding="utf-8").strip()

    @asynccontextmanager
    async def client(self, secret: str) -> AsyncIterator[httpx.AsyncClient]:
        headers = {"authorization": f"Bearer {secret}", "accept": "application/json, text/event-stream"}
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            base_url=self.base, headers=headers, trust_env=False, timeout=60, limits=limits
        ) as client:
            yield client


@contextmanager
def served() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        (Path(folder) / "there.txt").write_text("x", encoding="utf-8")
        environment = {**os.environ, "HANDRAIL_HOME": str(home), "HANDRAIL_PROJECT": folder}
        command = [sys.executable, "-m", "handrail", "serve", "--port", "0", "--json"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=folder)
        try:
            assert server.stdout is not None
            yield Bench(json.loads(server.stdout.readline())["console"].rstrip("/"), home, server.pid)
        finally:
            server.terminate()
            server.wait(10)


async def timed(calls: int, call: Callable[[], Awaitable[httpx.Response]]) -> tuple[float, float]:
    """The median and the 99th percentile of a call, in milliseconds."""
    took = []
    for number in range(WARM + calls):
        began = time.perf_counter()
        (await call()).raise_for_status()
        if number >= WARM:
            took.append((time.perf_counter() - began) * 1_000)
    took.sort()
    return statistics.median(took), took[min(len(took) - 1, calls * 99 // 100)]


async def beside_mcp(bench: Bench, calls: int) -> None:
    """The same questions by the API and by the MCP tools."""
    async with bench.client(bench.key) as api, bench.client(bench.token) as mcp:
        run = (await api.post("/api/v1/runs", json={"definition": WAITING})).json()["run"]
        session, ids = await mcp_session(mcp), itertools.count(2)

        def tool(name: str, **arguments: Any) -> Awaitable[httpx.Response]:
            call = {"name": name, "arguments": arguments}
            body = {"jsonrpc": "2.0", "id": next(ids), "method": "tools/call", "params": call}
            return mcp.post("/mcp", json=body, headers=session)

        pairs: list[tuple[str, Callable[[], Awaitable[httpx.Response]], Callable[[], Awaitable[httpx.Response]]]] = [
            ("a run", lambda: api.get(f"/api/v1/runs/{run}"), lambda: tool("status", run=run)),
            ("the runs", lambda: api.get("/api/v1/runs"), lambda: tool("status")),
            ("its events", lambda: api.get(f"/api/v1/runs/{run}/journal"), lambda: tool("query_ledger", run=run)),
            ("workflows", lambda: api.get("/api/v1/library?q=bug"), lambda: tool("workflow_list", query="bug")),
        ]
        print("  question      API p50    p99      MCP p50    p99   (ms)")
        for name, by_api, by_mcp in pairs:
            ours, theirs = await timed(calls, by_api), await timed(calls, by_mcp)
            print(f"  {name:12} {ours[0]:8.2f} {ours[1]:6.2f}   {theirs[0]:8.2f} {theirs[1]:6.2f}")


async def mcp_session(mcp: httpx.AsyncClient) -> dict[str, str]:
    info = {"name": "bench", "version": "1"}
    params: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    session = {"mcp-session-id": (await mcp.post("/mcp", json=hello)).headers["mcp-session-id"]}
    session["mcp-protocol-version"] = params["protocolVersion"]
    await mcp.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
    return session


async def with_readers(bench: Bench, readers: int) -> tuple[float, float, float, float]:
    """What the server's processor works for an event; how late readers see it, the median and the worst, in ms; and how
    many events a second reach all of them together."""
    late: list[float] = []
    seen = given = 0
    last = 0.0
    ready = asyncio.Event()

    async def read(client: httpx.AsyncClient, number: int) -> None:
        nonlocal seen, given, last
        async with client.stream("GET", "/api/v1/events") as stream:
            async for piece in stream.aiter_bytes():
                now = time.time() * 1_000
                seen += piece.count(b"event: beat")
                if seen >= readers:
                    ready.set()
                if events := piece.count(b'data: {"run"'):
                    given, last = given + events, time.perf_counter()
                if number == 0:
                    late.extend(now - at for at in times_in(piece))

    async with bench.client(bench.key) as client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(read(client, number)) for number in range(readers)]
        if readers:
            await asyncio.wait_for(ready.wait(), 60)
        before = (await client.get("/api/v1/about")).json()["events"]
        worked, began = cpu_ms(bench.pid), time.perf_counter()
        run = (await client.post("/api/v1/runs", json={"definition": PLAN})).json()["run"]
        await ended(client, run)
        await asyncio.sleep(0.3)  # the last events are still on their way
        worked = cpu_ms(bench.pid) - worked
        events = (await client.get("/api/v1/about")).json()["events"] - before
        for task in tasks:
            task.cancel()
    late.sort()
    a_second = given / (last - began) if given else 0.0
    return worked / events, statistics.median(late or [0.0]), max(late, default=0.0), a_second


async def ended(client: httpx.AsyncClient, run: str) -> None:
    for _ in range(1_200):
        if (await client.get(f"/api/v1/runs/{run}")).json()["status"] != "running":
            return
        await asyncio.sleep(0.05)


def times_in(piece: bytes) -> Iterator[float]:
    """When the events in a piece of the stream were written, in milliseconds since 1970."""
    for line in piece.split(b"\n"):
        if line.startswith(b'data: {"run"') and line.endswith(b"}"):
            at = json.loads(line[6:])["at"].replace("Z", "+00:00")
            yield datetime.fromisoformat(at).timestamp() * 1_000


def cpu_ms(pid: int) -> float:
    """How long the processor has worked for a process; the clients on the same machine don't count."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1_000 / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1_024


async def measured(bench: Bench, calls: int) -> int:
    print(f"memory of serve, idle: {memory_mb(bench.pid):.0f} MB")
    await beside_mcp(bench, calls)
    print("  readers   CPU an event (ms)   seen after p50    worst (ms)   events/s to all   memory (MB)")
    costs, worst = {}, 0.0
    for readers in READERS:
        costs[readers], median, latest, a_second = await with_readers(bench, readers)
        worst = max(worst, median)
        shown = f"{median:10.0f} {latest:13.0f}" if readers else f"{'-':>10} {'-':>13}"
        print(f"  {readers:7} {costs[readers]:19.2f} {shown} {a_second:17,.0f} {memory_mb(bench.pid):13.0f}")
    most = READERS[-1]
    each_us = (costs[most] - costs[0]) * 1_000 / most
    print(f"{most} readers cost the server {each_us:.0f} us for each reader and event: {costs[most] / costs[0]:.1f}x")
    return 0 if worst <= LATENCY_MS_MAX else 1


def main() -> int:
    options = ArgumentParser(description=__doc__)
    options.add_argument("--calls", type=int, default=300)
    calls = options.parse_args().calls
    with served() as bench:
        missed = asyncio.run(measured(bench, calls))
        browser = [sys.executable, str(BROWSER), bench.base, str(bench.home)]
        missed |= subprocess.run(browser, check=False).returncode
        print(f"memory of serve after all of it: {memory_mb(bench.pid):.0f} MB")
        return missed


if __name__ == "__main__":
    sys.exit(main())
