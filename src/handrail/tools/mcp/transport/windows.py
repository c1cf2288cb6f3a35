"""The pipe to an MCP server on Windows: the SDK's own, which stops a server's descendants with a job object.

There is no leash on Windows (leash.py needs sessions and signals), so the limits on lines in pipe.py do not apply."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from mcp.client.stdio import StdioServerParameters, stdio_client

from handrail.tools.mcp.transport.launch import ServerLaunch
from handrail.tools.mcp.transport.server_log import ServerLog

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


class WindowsPipe:
    """One start of a server; `over` is only set when handrail closes it."""

    def __init__(self, launch: ServerLaunch, *, log: ServerLog) -> None:
        self._launch = launch
        self._log = log
        self.over = anyio.Event()
        self.pid = 0
        self.how = "closed its output"

    async def wait_until_ended(self, *, seconds: float) -> None:
        """The SDK does not report how a server ended."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Start the server; leaving stops it with its descendants."""
        launch = self._launch
        parameters = StdioServerParameters(
            command=launch.command, args=list(launch.args), env=dict(launch.env), cwd=launch.cwd
        )
        self._log.path.parent.mkdir(parents=True, exist_ok=True)
        with self._log.path.open("a", encoding="utf-8") as errors:
            async with stdio_client(parameters, errlog=errors) as streams:
                yield streams
