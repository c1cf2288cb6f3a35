"""The mixed load of a soak, on a running server: runs of every kind, people, agents, readers, operators."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from interfaces.http.live_console import LiveConsole
from interfaces.mcp.http.live_server import ACCEPT, INITIALIZE
from interfaces.metrics.load import ASKS, CHECKED, COMPLETES, IS_UNDONE, plan

LOST = (httpx.TransportError, httpx.TimeoutException)
FAILING = plan(
    "failing",
    {
        "id": "read",
        "tool": "file.read",
        "args": {"path": "not-there.txt"},
        "retry": {"attempts": 3, "first": "20ms", "max": "50ms", "on": ["not_found", "transient"]},
    },
    on_failure="stop",
)
SLOW = plan(
    "slow",
    {"id": "wait", "tool": "wait.for", "args": {"duration": "400ms"}},
    {"id": "set", "tool": "value.set", "args": {"value": "{{ inputs.name }}"}},
)


@dataclass
class Load:
    """What runs beside each other until it is over, and what it counted."""

    console: LiveConsole
    until_s: float
    counts: Counter[str] = field(default_factory=Counter)
    latencies_ms: list[float] = field(default_factory=list)
    """Of requests since the last sample."""
    started: list[str] = field(default_factory=list)
    """Every run that was acknowledged."""
    completed: list[str] = field(default_factory=list)
    """Those that complete by themselves, and are not archived yet."""
    problems: list[str] = field(default_factory=list)
    _numbers: Any = field(default_factory=itertools.count)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.until_s

    async def run(self) -> None:
        """All of it, until the time is over."""
        doing = [self._starting, self._starting, self._answering, self._agent, *[self._reading] * 4]
        await asyncio.gather(*(self._again(one) for one in doing))

    async def _again(self, do: Callable[[], Awaitable[None]]) -> None:
        while not self.is_over:
            try:
                await do()
            except LOST as error:
                self.counts[f"lost: {type(error).__name__}"] += 1
            except (AssertionError, KeyError, ValueError) as error:
                self.problems.append(f"{do.__name__}: {type(error).__name__}: {error}"[:300])
            await asyncio.sleep(0.1)

    def _client(self, **headers: str) -> httpx.AsyncClient:
        shown = {"authorization": f"Bearer {self.console.key}", **headers}
        return httpx.AsyncClient(base_url=self.console.url, headers=shown, timeout=60, trust_env=False)

    async def _asked(self, client: httpx.AsyncClient, method: str, path: str, **more: Any) -> Any:
        began = time.perf_counter()
        answer = await client.request(method, path, **more)
        self.latencies_ms.append(1_000 * (time.perf_counter() - began))
        assert answer.status_code < 500, f"{method} {path}: {answer.status_code} {answer.text[:200]}"
        return answer

    async def _starting(self) -> None:
        """Scripts: runs that complete, fail after retries, are undone, take a while; and looks at them."""
        async with self._client() as client:
            for definition in (COMPLETES, FAILING, IS_UNDONE, SLOW, ASKS, CHECKED):
                name = f"n{next(self._numbers) % 50}"
                answer = await self._asked(
                    client, "POST", "/api/v1/runs", json={"definition": definition, "inputs": {"name": name}}
                )
                assert answer.status_code == 201, answer.text[:200]
                run = answer.json()["run"]
                self.started.append(run)
                if definition is COMPLETES:
                    self.completed.append(run)
                self.counts[f"started {definition['id']}"] += 1
                if definition is CHECKED:
                    for word in ("ab", "abcd"):
                        said = {"step": "say", "output": {"word": word}}
                        await self._asked(client, "POST", f"/api/v1/runs/{run}/submit", json=said)
                await self._asked(client, "GET", f"/api/v1/runs/{run}")
                await asyncio.sleep(0.15)
            await self._asked(client, "GET", "/api/v1/runs")

    async def _answering(self) -> None:
        """A person: approves and rejects in turns whatever waits."""
        async with self._client() as client:
            waiting = (await self._asked(client, "GET", "/api/v1/approvals")).json()["approvals"]
            for number, one in enumerate(waiting[:20]):
                place = f"/api/v1/approvals/{one['run']}/{one['step']}"
                digest = (await self._asked(client, "GET", place)).json().get("digest")
                said = {"answer": "reject" if number % 4 == 3 else "approve", "reason": "soak", "digest": digest}
                answer = await self._asked(client, "POST", place, json=said)
                self.counts["approvals answered"] += answer.status_code == 200
        await asyncio.sleep(0.5)

    async def _agent(self) -> None:
        """An agent: a session over MCP that is given a step, submits it, and leaves without a word every other time."""
        token = (self.console.shell.home / "http-token").read_text(encoding="utf-8").strip()
        async with self._client(**ACCEPT) as agent:
            agent.headers["authorization"] = f"Bearer {token}"
            opened = await self._asked(agent, "POST", "/mcp", json=INITIALIZE)
            agent.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
            await agent.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
            for number, name in enumerate(("status", "workflow_list", "query_ledger"), start=2):
                params: dict[str, Any] = {"name": name, "arguments": {}}
                call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
                await self._asked(agent, "POST", "/mcp", json=call)
            self.counts["sessions"] += 1
            if self.counts["sessions"] % 2:
                await agent.delete("/mcp")
        await asyncio.sleep(0.5)

    async def _reading(self) -> None:
        """A reader of the live feed, which comes again after 15 seconds."""
        enough_s = min(time.monotonic() + 15, self.until_s)
        async with self._client() as client, client.stream("GET", "/api/v1/events") as feed:
            lines = feed.aiter_lines()
            while (left_s := enough_s - time.monotonic()) > 0:
                try:
                    line = await asyncio.wait_for(anext(lines), left_s)
                except (TimeoutError, StopAsyncIteration):
                    return
                self.counts["feed events"] += line.startswith("data:")
