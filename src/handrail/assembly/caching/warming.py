"""Warming: makes what caches on disk would have after a while, so that no user has to wait for it.

What a process has in memory only its own work warms, and results of checks only checks."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from msgspec import Struct

from handrail.assembly.checks import rules_of
from handrail.assembly.tools import library_of, toolbox_of
from handrail.domain.metrics.cache_catalog import LIBRARY_INDEX, RULE_CARDS, SERVER_TOOLS
from handrail.settings import Settings


class Warmed(Struct, frozen=True, kw_only=True):
    """A cache that was filled, and how long it took."""

    name: str
    entries: int
    took_ms: float
    problem: str = ""


async def warmed(settings: Settings, *, servers: bool) -> list[Warmed]:
    """Fill the caches of this project on disk; those of tool servers only if asked, since it starts them."""
    made = [
        await _timed(LIBRARY_INDEX.name, lambda: _library(settings)),
        await _timed(RULE_CARDS.name, lambda: _cards(settings)),
    ]
    return [*made, await _servers(settings)] if servers else made


async def _timed(name: str, make: Callable[[], Awaitable[int]]) -> Warmed:
    started_s = time.perf_counter()
    entries = await make()
    return Warmed(name=name, entries=entries, took_ms=1_000 * (time.perf_counter() - started_s))


async def _library(settings: Settings) -> int:
    return len(library_of(settings).entries())


async def _cards(settings: Settings) -> int:
    return sum(card.origin != "built in" for card in await rules_of(settings).cards())


async def _servers(settings: Settings) -> Warmed:
    toolbox = toolbox_of(settings)
    started_s = time.perf_counter()
    try:
        names = toolbox.server_names()
        failed = await toolbox.servers.connect(names) if toolbox.servers is not None else {}
    finally:
        await toolbox.close()
    problem = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
    took_ms = 1_000 * (time.perf_counter() - started_s)
    return Warmed(name=SERVER_TOOLS.name, entries=len(names) - len(failed), took_ms=took_ms, problem=problem)
