"""All caches of a home, level by level: how large they are, how often they helped, and what a hit saves.

What a running process has in memory only that process knows: its counts are passed in by who has asked it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Final

from handrail.assembly.caching.shared import SharedLevel, shared_level
from handrail.assembly.caching.use_file import FILE, uses_of
from handrail.domain.metrics.cache_catalog import (
    CACHES,
    SHARED_RESULTS,
    CacheCard,
    CacheLevel,
)
from handrail.engine.measuring.cache_states import CacheReport, Counts, SharedState, added, state_of
from handrail.settings import Settings

ASKED: Final = 20
"""How often the shared cache is asked to measure how fast it answers."""


async def cache_report(settings: Settings, running: Mapping[str, Counts]) -> CacheReport:
    """All caches, with the counts of running processes by their address, and of those that have ended."""
    ended = await asyncio.to_thread(uses_of, settings.home)
    counts = added(ended.caches if ended is not None else {}, running.values())
    level = shared_level(settings)
    shared = await _shared_state(level) if level is not None else None
    shown = [card for card in CACHES if card is not SHARED_RESULTS or level is not None]
    live = list(running.values())
    states = [state_of(card, counts, await _size(settings, card, live, level)) for card in shown]
    since = ended.since if ended is not None else None
    return CacheReport(caches=tuple(states), shared=shared, asked=tuple(running), ended_since=since)


async def cleared(settings: Settings, names: Sequence[str]) -> dict[str, int]:
    """Remove the caches of these names, of disk or shared; how many entries each had."""
    removed: dict[str, int] = {}
    for card in CACHES:
        if card.name not in names:
            continue
        if card is SHARED_RESULTS:
            level = shared_level(settings)
            removed[card.name] = await level.cache.clear() if level is not None else 0
        else:
            removed[card.name] = await asyncio.to_thread(_remove, settings.home / "cache" / card.place)
    # What was counted was about what is no longer there.
    await asyncio.to_thread((settings.home / "cache" / FILE).unlink, missing_ok=True)
    return removed


async def _size(
    settings: Settings, card: CacheCard, live: Sequence[Counts], level: SharedLevel | None
) -> tuple[int | None, int | None]:
    """How many entries a cache has, and their bytes; None where that is not known."""
    match card.level:
        case CacheLevel.DISK:
            return await asyncio.to_thread(_on_disk, settings.home / "cache" / card.place)
        case CacheLevel.SHARED:
            return (await level.cache.entries() if level is not None else None), None
        case CacheLevel.MEMORY:
            return (sum(one[card.name][1] for one in live if card.name in one) if live else None), None


async def _shared_state(level: SharedLevel) -> SharedState:
    if await level.cache.entries() is None:
        return SharedState(address=level.address, answers=False)
    took_ms = []
    for _ in range(ASKED):
        started_s = time.perf_counter()
        await level.cache.get("nothing")
        took_ms.append(1_000 * (time.perf_counter() - started_s))
    return SharedState(address=level.address, answers=True, get_ms=median(took_ms))


def _on_disk(place: Path) -> tuple[int, int]:
    sizes = []
    for file in _files(place):
        with suppress(OSError):  # removed in the meantime
            sizes.append(file.stat().st_size)
    return len(sizes), sum(sizes)


def _remove(place: Path) -> int:
    files = _files(place)
    for file in files:
        file.unlink(missing_ok=True)
    return len(files)


def _files(place: Path) -> list[Path]:
    inside = place.iterdir() if place.is_dir() and not place.is_symlink() else [place]
    return [file for file in inside if file.is_file() and not file.is_symlink()]
