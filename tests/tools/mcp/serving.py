"""Servers for tests: the good server behind a real connection, and calls of its tools."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from handrail.engine.secrets import Secret
from handrail.engine.tool import PlanTool, ToolCall
from handrail.tools.configuration import ToolConfiguration
from handrail.tools.files.content_store import ContentStore
from handrail.tools.mcp.declaration import Declared, ToolRule, UndoRule
from handrail.tools.mcp.servers import Servers
from handrail.tools.mcp.working_folder import ServerPlaces
from handrail.tools.vault import Vault

PROGRAM = Path(__file__).with_name("good_server.py")
RUN = "run_22222222"
UNDO = UndoRule(tool="remove", args={"name": "{{ output.made }}"})


class Pocket:
    """Secrets that a test has at hand."""

    def __init__(self, **values: str) -> None:
        self._values = values

    def find(self, name: str) -> Secret | None:
        return Secret(value=self._values[name], given_to=("good.*",)) if name in self._values else None


def good(folder: Path, **more: Any) -> Declared:
    """The good server, which makes its files in a folder."""
    given = {"name": "good", "origin": "tools.json", "command": sys.executable, "args": (str(PROGRAM), str(folder))}
    return Declared(**{**given, "tools": {"create": ToolRule(undo=UNDO)}, **more})


@asynccontextmanager
async def serving(
    folder: Path,
    *declared: Declared,
    vault: Vault | None = None,
    configuration: ToolConfiguration | None = None,
) -> AsyncIterator[Servers]:
    servers = Servers(
        {one.name: one for one in declared or (good(folder),)},
        places=ServerPlaces(folder, folder),
        logs=folder / "logs",
        cache=folder / "eras.json",
        kept=ContentStore(folder / "kept"),
        vault=vault or Vault(),
        configuration=configuration or ToolConfiguration(),
    )
    try:
        yield servers
    finally:
        await servers.close()


def found(servers: Servers, name: str) -> PlanTool:
    tool = servers.find(name)
    assert tool is not None
    return tool


async def called(servers: Servers, tool: str, args: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """What a tool of the good server comes to."""
    return await found(servers, f"good.{tool}").call(made(tool, args or {}, **more))


def made(tool: str, args: Mapping[str, Any], **more: Any) -> ToolCall:
    return ToolCall(**{"tool": f"good.{tool}", "args": args, "key": "key-1", "run": RUN, "step": "a-step", **more})
