"""Serving: the surface over an open desk, in the SDK's server; what both transports serve.

Opens in the background and closes cleanly; which transport carries it is chosen elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, TypeAlias

from mcp.server.lowlevel.server import Server

from handrail.assembly import carrying_key
from handrail.domain.errors import HandrailError
from handrail.interfaces.mcp.shell import build
from handrail.interfaces.mcp.surface.handrail_surface import surface_of
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.interfaces.mcp.surface.offer import Toolset
from handrail.settings import Settings

Ready: TypeAlias = Callable[[], Awaitable[None]]
"""Nothing, if calls can be answered; else the error that says why not."""


@asynccontextmanager
async def served(settings: Settings, toolsets: Collection[str]) -> AsyncIterator[Server[Any]]:
    """The server of these toolsets, as long as it is wanted."""
    async with attended(settings, toolsets) as (server, _):
        yield server


@asynccontextmanager
async def attended(settings: Settings, toolsets: Collection[str]) -> AsyncIterator[tuple[Server[Any], Ready]]:
    """The same, and a way to ask whether it can work."""
    desk = LazyProgram(settings)

    async def ready() -> None:
        await (await desk.open()).handrail.look.store.runs(limit=1)

    surface = surface_of(desk, version=version("handrail"), toolsets=[Toolset(name) for name in toolsets])
    opening = asyncio.get_running_loop().create_task(_opened(desk))
    try:
        yield build(surface, keys=[carrying_key(settings)]), ready
    finally:
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await desk.close()


async def _opened(desk: LazyProgram) -> None:
    """Open the desk before anybody asks: runs that nobody executes are picked up at once."""
    with contextlib.suppress(HandrailError):  # every call will tell
        await desk.open()
