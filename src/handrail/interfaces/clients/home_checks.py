"""Checks of what handrail keeps and needs on this machine: store, keys, clock, rights, disk, tools, sandbox, cache.

Each looks at one thing and says how it is; none changes anything, save that opening a store signs what is new in it."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from handrail.assembly import opened, reading, toolbox_of
from handrail.domain.errors import HandrailError
from handrail.engine.clock import instant_text, system_clock
from handrail.engine.journal import FAR_BEHIND
from handrail.interfaces.clients.check import Check, fail, ok, warn
from handrail.settings import Settings

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
FREE_BYTES_FEW: Final = 1_000_000_000
FREE_BYTES_TOO_FEW: Final = 50_000_000
CACHE_BYTES_MANY: Final = 50_000_000
CACHE_FILES_MAX: Final = 1_000
TOKEN: Final = "http-token"  # noqa: S105 - the name of a file
"""What clients show over HTTP; it lies in the home."""
AHEAD_MS_MAX: Final = 5_000
JUMP_S_MAX: Final = 1.0
EARLIEST_S: Final = 1_750_000_000
"""Before this moment there was no handrail: a clock that shows less is wrong."""


async def home_checks(settings: Settings, *, began: tuple[float, float]) -> AsyncIterator[Check]:
    """All of them; `began` is what the clocks said when the check-up began."""
    yield _home(settings.home)
    yield _disk(settings.home)
    yield await _store(settings)
    yield _keys(settings)
    yield await _clock(settings, began)
    for check in _tools(settings):
        yield check
    yield _sandbox()
    yield _cache(settings.home / "cache")


def clocks() -> tuple[float, float]:
    """What the two clocks say now: the one on the wall, and the one that only goes forward."""
    return time.time(), time.monotonic()


def _home(home: Path) -> Check:
    nearest = next(folder for folder in (home, *home.parents) if folder.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        return fail(
            "home", f"{nearest} can't be written", "give yourself the right to write there, or set HANDRAIL_HOME"
        )
    if nearest != home:
        return ok("home", f"{home} is not there yet; the first use makes it")
    if sys.platform != "win32" and home.stat().st_mode & OTHERS:
        return warn("home", f"{home} can be entered by others than its owner", f"chmod 700 {home}")
    return ok("home", f"{home} is yours alone")


def _disk(home: Path) -> Check:
    nearest = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(nearest).free
    words = f"{free / 1e9:.1f} GB are free"
    if free < FREE_BYTES_TOO_FEW:
        return fail("disk", words, "make room: handrail stops rather than lose what it acknowledged")
    if free < FREE_BYTES_FEW:
        return warn("disk", words, "make room before it runs out")
    return ok("disk", words)


async def _store(settings: Settings) -> Check:
    if not settings.journal.exists():
        return ok("store", "there is no journal yet; the first use makes it")
    if not os.access(settings.journal, os.W_OK):
        return fail("store", f"{settings.journal} can't be written", f"chmod u+w {settings.journal}")
    try:
        async with opened(settings) as handrail:
            events, _ = await handrail.look.store.heads(after=FAR_BEHIND)
            is_signed = await handrail.look.checkpoints.last() is not None
    except HandrailError as error:
        return fail("store", str(error), error.hint)
    vouched = "is what its checkpoints say" if is_signed else "has no checkpoint yet"
    return ok("store", f"the journal opens, {vouched}, and holds {events} event(s)")


def _keys(settings: Settings) -> Check:
    keys = [*sorted(settings.keys.glob("*.key")), *settings.home.glob(TOKEN)]
    if not keys:
        return ok("keys", "there are none yet; the first use makes them")
    for key in keys:
        if sys.platform != "win32" and key.stat().st_mode & OTHERS:
            return fail("keys", f"{key} can be read by others than its owner", f"chmod 600 {key}")
    return ok("keys", f"{', '.join(key.name for key in keys)}: yours alone")


async def _clock(settings: Settings, began: tuple[float, float]) -> Check:
    wall, steady = clocks()
    jump_s = (wall - began[0]) - (steady - began[1])
    if wall < EARLIEST_S:
        return fail("clock", f"it shows {instant_text(system_clock())}, which is past", "set the system's clock")
    if abs(jump_s) > JUMP_S_MAX:
        return warn("clock", f"it jumped by {jump_s:.1f} s while we looked", "let a time service keep it")
    try:
        async with reading(settings) as look:
            latest = await look.ledger.latest(limit=1)
    except HandrailError as error:
        return warn("clock", f"it can't be compared with the journal: {error}", error.hint)
    if latest and latest[-1].record.at > system_clock() + AHEAD_MS_MAX:
        at = instant_text(latest[-1].record.at)
        return warn("clock", f"the last event is of {at}, which is yet to come", "set the system's clock")
    return ok("clock", "it goes forward, and no event is ahead of it")


def _tools(settings: Settings) -> Iterator[Check]:
    try:
        toolbox = toolbox_of(settings)
        count, broken = len(toolbox.specs()), toolbox.broken
    except HandrailError as error:
        yield fail("tools", str(error), error.hint)
        return
    yield ok("tools", f"plans can call {count} tool(s)")
    for name, reason in broken.items():
        yield warn(f"tools: {name}", f"the plugin can't be used: {reason}", "mend or uninstall the package it is from")


def _sandbox() -> Check:
    found = shutil.which("bwrap")
    return ok("sandbox", "bubblewrap is here" if found else "there is no bubblewrap here: shell steps stay off")


def _cache(folder: Path) -> Check:
    files = [file for file in folder.rglob("*") if file.is_file()][:CACHE_FILES_MAX] if folder.is_dir() else []
    size = sum(file.stat().st_size for file in files)
    words = f"{len(files)} snapshot(s), {size / 1e6:.1f} MB"
    if size > CACHE_BYTES_MANY or len(files) == CACHE_FILES_MAX:
        return warn("cache", words, f"remove {folder}: it is made anew")
    return ok("cache", words)
