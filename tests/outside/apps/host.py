"""A client that shows pages, in a real browser: host.html in Chromium, over the official client and a real server.

Its window has the policy that MCP Apps demands: no network, nothing from elsewhere."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from interfaces.mcp.surface.agent import Agent
from outside.console.chromium import chromium

PAGE = Path(__file__).parent / "host.html"
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; object-src 'none'; base-uri 'self'"
)
PATIENCE_S = 60.0
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
CAPABILITIES: Mapping[str, Any] = {"serverTools": {}, "openLinks": {}}


@dataclass
class Scene:
    """A call of the agent, the page that shows its answer, and what a person then does there."""

    html: str
    arguments: Mapping[str, Any]
    result: Mapping[str, Any]
    steps: Sequence[Mapping[str, str]] = ()
    capabilities: Mapping[str, Any] = field(default_factory=lambda: dict(CAPABILITIES))
    theme: str = "light"


@dataclass
class AppHost:
    """Shows scenes, one at a time."""

    agent: Agent
    folder: Path
    """For the browser, so that it shares nothing with another one."""
    port: int = 0
    scene: Scene | None = None
    report: asyncio.Future[dict[str, Any]] | None = None
    calls: list[Mapping[str, Any]] = field(default_factory=list)

    async def shown(self, scene: Scene) -> dict[str, Any]:
        """What the page said to its client, and what stands on it at the end."""
        self.scene, self.report = scene, asyncio.get_running_loop().create_future()
        self.calls.clear()
        browser = await self._browser(f"http://127.0.0.1:{self.port}/")
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self.report
        finally:
            browser.terminate()  # it then ends its own processes
            await asyncio.wait_for(browser.wait(), PATIENCE_S)

    async def pictured(self, scene: Scene, file: Path, *, width: int = 720, height: int = 900) -> None:
        """A picture of it, to look at."""
        self.scene, self.report = scene, asyncio.get_running_loop().create_future()
        look = [f"--screenshot={file}", f"--window-size={width},{height}", "--virtual-time-budget=4000"]
        browser = await self._browser(f"http://127.0.0.1:{self.port}/", *look)
        await asyncio.wait_for(browser.wait(), PATIENCE_S)

    async def _browser(self, url: str, *more: str) -> asyncio.subprocess.Process:
        program = await asyncio.to_thread(chromium)  # which may have to install it
        nowhere = asyncio.subprocess.DEVNULL
        own = f"--user-data-dir={self.folder}"
        return await asyncio.create_subprocess_exec(program, *FLAGS, own, *more, url, stdout=nowhere, stderr=nowhere)

    async def _page(self, _: Request) -> Response:
        return HTMLResponse(PAGE.read_text(encoding="utf-8"), headers={"content-security-policy": POLICY})

    async def _scene(self, _: Request) -> Response:
        assert self.scene is not None
        return JSONResponse(self.scene.__dict__)

    async def _call(self, request: Request) -> Response:
        """What a client does with a call of the page: it makes the call itself, as its own."""
        params = json.loads(await request.body())
        self.calls.append(params)
        result = await self.agent.client.call_tool(params["name"], params["arguments"])
        return JSONResponse(result.model_dump(mode="json", by_alias=True, exclude_none=True))

    async def _report(self, request: Request) -> Response:
        said = json.loads(await request.body())
        if self.report is not None and not self.report.done():
            self.report.set_result(said)
        return JSONResponse({})

    @property
    def site(self) -> Starlette:
        """Its pages."""
        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/scene", self._scene),
                Route("/call", self._call, methods=["POST"]),
                Route("/report", self._report, methods=["POST"]),
            ]
        )


@asynccontextmanager
async def app_host(agent: Agent, folder: Path) -> AsyncIterator[AppHost]:
    """A client on a free port, that calls as this agent does."""
    host = AppHost(agent, folder)
    listener = socket.create_server(("127.0.0.1", 0))
    host.port = listener.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(host.site, log_level="critical", lifespan="off"))
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        yield host
    finally:
        server.should_exit = True
        await serving
