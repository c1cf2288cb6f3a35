"""An agent for tests: the official client, in this process, with a real server over real files.

Every answer is checked against the contract here, once for all tests: schema, size, shape of errors."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar

import anyio
import jsonschema_rs
import mcp_types as mt
import yaml
from mcp import Client
from mcp.server.lowlevel.server import Server

from handrail.interfaces.mcp.serving import open_server
from handrail.interfaces.mcp.surface.handlers.catalog import TOOLS
from handrail.interfaces.mcp.surface.offer import ToolOffer
from handrail.settings import Settings, read_settings
from interfaces.shell import Process
from support import trust_project

ALL = ("guide", "run", "journal")
MODERN = "2026-07-28"
ERAS = ("legacy", MODERN)
ANSWER_MAX = 20_000
PATIENCE_S = 60.0
CODES = {
    "not_found": -32001,
    "invalid": -32002,
    "conflict": -32003,
    "forbidden": -32004,
    "limited": -32005,
    "unavailable": -32006,
}
ERROR_KEYS = {"code", "name", "message", "hint"}
MORE_KEYS = {"next", "findings", "retry_after"}

KNOWN: Mapping[str, ToolOffer] = {tool.name: tool for tool in TOOLS}
OUTPUTS = {name: jsonschema_rs.validator_for(dict(tool.output or {})) for name, tool in KNOWN.items()}
INPUTS = {name: jsonschema_rs.validator_for(dict(tool.input)) for name, tool in KNOWN.items()}

T = TypeVar("T")


class Place:
    """A home folder and a project folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.project = folder / "home", folder / "project"
        self.project.mkdir(exist_ok=True)

    def settings(self, **chosen: str) -> Settings:
        own = {"home": str(self.home), "project": str(self.project), "built_in": "false", "checks": "plain"}
        return read_settings({**own, **chosen}, {})

    def workflow(self, definition: Mapping[str, Any], *, name: str = "") -> str:
        """Write a workflow into the project: its id."""
        folder = self.project / ".handrail" / "workflows"
        folder.mkdir(parents=True, exist_ok=True)
        identity = str(definition["id"])
        file = folder / f"{name or identity.replace('/', '-')}.yaml"
        file.write_text(yaml.safe_dump(dict(definition), sort_keys=False), encoding="utf-8")
        return identity

    def config(self, text: str) -> None:
        """Write the project's config.toml, and trust it."""
        (self.project / ".handrail").mkdir(exist_ok=True)
        (self.project / ".handrail" / "config.toml").write_text(text, encoding="utf-8")
        trust_project(self.home, self.project)

    def home_config(self, text: str) -> None:
        """Write config.toml in HANDRAIL_HOME."""
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "config.toml").write_text(text, encoding="utf-8")

    def events(self, stream: str = "%") -> int:
        """How many events are on disk."""
        with closing(sqlite3.connect(self.home / "journal.db")) as database:
            (count,) = database.execute("select count(*) from event where stream like ?", (stream,)).fetchone()
        return int(count)

    def kinds(self, run: str) -> list[str]:
        """The kinds of a run's events on disk."""
        with closing(sqlite3.connect(self.home / "journal.db")) as database:
            rows = database.execute("select kind from event where stream = ? order by n", (run,)).fetchall()
        return [kind for (kind,) in rows]

    def beside(self, *words: str) -> Process:
        """Another process on the same home: a handrail command."""
        chosen = ["--home", str(self.home), "--project", str(self.project)]
        return Process([sys.executable, "-m", "handrail", *chosen, *words], self.project)

    @asynccontextmanager
    async def serving(self, toolsets: Sequence[str] = ALL, **chosen: str) -> AsyncIterator[Server[Any]]:
        """A server over this place, for several clients."""
        async with open_server(self.settings(**chosen), toolsets) as server:
            yield server

    @asynccontextmanager
    async def agent(self, *toolsets: str, **options: Any) -> AsyncIterator[Agent]:
        """An agent with a server of its own."""
        async with self.serving(toolsets or ALL) as server, joined(server, **options) as agent:
            yield agent


@asynccontextmanager
async def joined(
    server: Server[Any], *, name: str = "claude", mode: str = "auto", **options: Any
) -> AsyncIterator[Agent]:
    """An agent at a server."""
    info = mt.Implementation(name=name, version="1")
    options = {"mode": mode, "client_info": info, "cache": None, "read_timeout_seconds": 60, **options}
    try:
        async with Client(server, **options) as client:
            offered = [tool.name for tool in (await client.list_tools()).tools]
            yield Agent(client, frozenset(offered))
    except BaseExceptionGroup as group:
        raise _first_of(group) from None


def _first_of(error: BaseException) -> BaseException:
    """The first error inside nested task groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class Agent:
    """Calls tools, and checks every answer against the contract."""

    def __init__(self, client: Client, offered: frozenset[str]) -> None:
        self.client, self.offered = client, offered

    async def answer(self, tool: str, arguments: Mapping[str, Any], **options: Any) -> mt.CallToolResult:
        """The answer to a call, error or not."""
        with anyio.fail_after(PATIENCE_S):
            result = await self.client.call_tool(tool, dict(arguments), **options)
        self.check(tool, result)
        return result

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The data of an answer that must not be an error."""
        result = await self.answer(tool, arguments)
        assert not result.is_error, text_of(result)
        return data_of(result)

    async def said(self, tool: str, /, **arguments: Any) -> str:
        """The text of an answer."""
        return text_of(await self.answer(tool, arguments))

    async def refused(self, tool: str, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The data of an answer that must be this error."""
        result = await self.answer(tool, arguments)
        data = data_of(result)
        assert result.is_error, text_of(result)
        assert data["name"] == name, data
        return data

    async def until(self, run: str, *statuses: str) -> dict[str, Any]:
        """The full status of a run, once it is one of these."""

        async def reached() -> dict[str, Any] | None:
            seen = await self.call("status", run=run, detail="full")
            return seen if seen["status"] in statuses else None

        return await until(reached)

    def check(self, tool: str, result: mt.CallToolResult) -> None:
        """Check what is true of every answer."""
        # Without what is for a page in the client's window: no client puts that into the context of a model.
        assert len(result.model_dump_json(by_alias=True, exclude_none=True, exclude={"meta"})) <= ANSWER_MAX
        assert text_of(result)
        data = data_of(result)
        if result.is_error:
            self._check_error(data)
        else:
            assert not list(OUTPUTS[tool].iter_errors(data))
        for following in _calls_in(data):
            self._check_call(following)

    def _check_error(self, data: Mapping[str, Any]) -> None:
        assert data.keys() >= ERROR_KEYS, data
        assert not data.keys() - ERROR_KEYS - MORE_KEYS, data
        assert data["code"] == CODES[data["name"]], data
        assert data["message"]
        assert data["hint"]

    def _check_call(self, following: Mapping[str, Any]) -> None:
        """Check that this agent can make the suggested call."""
        assert following.keys() == {"tool", "arguments"}
        assert following["tool"] in self.offered
        assert not list(INPUTS[following["tool"]].iter_errors(following["arguments"]))


def _calls_in(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    options = [*data.get("options", ()), *data.get("failure", {}).get("options", ())]
    assert all("next" in option or option["by"] == "person" for option in options)
    return [option["next"] for option in options if "next" in option] + [data[key] for key in ("next",) if key in data]


def text_of(result: mt.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, mt.TextContent))


def data_of(result: mt.CallToolResult) -> dict[str, Any]:
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def until(condition: Callable[[], Awaitable[T | None]]) -> T:
    """Wait until the condition returns a value."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if value := await condition():
            return value
        await asyncio.sleep(0.02)
    raise AssertionError("the condition was never met")


def write(step: str = "w", path: str = "a.txt", text: str = "x", **more: Any) -> dict[str, Any]:
    """A step that writes a file; compensation undoes it."""
    return {"id": step, "tool": "file.write", "args": {"path": path, "text": text}, **more}


def read(step: str = "r", path: str = "missing.txt", **more: Any) -> dict[str, Any]:
    """A step that reads a file; it fails if there is none."""
    return {"id": step, "tool": "file.read", "args": {"path": path}, **more}
