"""Builds the MCP server that both transports serve: the surface, inside the SDK's server.

The store is opened in the background and closed at the end. The transports are in stdio/ and http/."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeAlias

from mcp.server.lowlevel.server import Server

from handrail.assembly.opening import Assembly, carrying_key
from handrail.domain.errors import HandrailError
from handrail.engine.measuring.measures import NO_MEASURES, Measures
from handrail.interfaces.mcp.shell import Called, build
from handrail.interfaces.mcp.surface.handrail_surface import surface_of
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.interfaces.mcp.surface.offer import Toolset
from handrail.settings import Settings

Ready: TypeAlias = Callable[[], Awaitable[None]]
"""A readiness check: returns if calls can be answered, and otherwise raises the reason."""


@asynccontextmanager
async def open_server(settings: Settings, toolsets: Collection[str]) -> AsyncIterator[Server[Any]]:
    """A server with these toolsets; closed when the context ends."""
    async with open_server_and_program(settings, toolsets) as opened:
        yield opened.server


@dataclass(frozen=True)
class OpenedServer:
    """A server, and the program that it shares with others on the same port."""

    server: Server[Any]
    ready: Ready
    open_program: Callable[[], Awaitable[Assembly]]
    open_other: Callable[[Settings], Awaitable[Assembly]]
    """Opens another project over the same store; MCP stays with the project of the server."""
    opened: Callable[[], Sequence[Assembly]]
    """The projects that are open now."""


@asynccontextmanager
async def open_server_and_program(
    settings: Settings, toolsets: Collection[str], *, measures: Measures = NO_MEASURES, called: Called | None = None
) -> AsyncIterator[OpenedServer]:
    """The same, together with the program and a readiness check; with measurements, if somebody takes them."""
    program = LazyProgram(settings, measures)

    async def ready() -> None:
        await (await program.open()).writer.reader.store.runs(limit=1)

    surface = surface_of(program, version=version("handrail"), toolsets=[Toolset(name) for name in toolsets])
    opening = asyncio.get_running_loop().create_task(_open(program))
    try:
        server = build(surface, keys=[carrying_key(settings)], called=called)
        yield OpenedServer(server, ready, program.open, program.open_other, lambda: program.opened)
    finally:
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await program.close()


async def _open(program: LazyProgram) -> None:
    """Open the program before the first call, so that runs without a worker are picked up at once."""
    with contextlib.suppress(HandrailError):  # every call tries again, and reports the error itself
        await program.open()
