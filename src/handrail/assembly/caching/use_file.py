"""What the caches of ended processes counted: each adds its own when it closes its store, to one small file.

A process that is killed adds nothing. The file is a cache, too: without it the counts start again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from handrail.domain.errors import Unavailable
from handrail.engine.clock import system_clock
from handrail.foundation.atomic_file import make_private_folder, write_cache
from handrail.foundation.cache_use import CacheCount, counted, measure_with
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.settings import Settings
from handrail.storage.file_lock import locked

FILE: Final = "use.json"
LOCK: Final = "use.lock"
FILE_BYTES_MAX: Final = 100_000
WAIT_S: Final = 1.0
"""How long to wait for another process that ends at the same moment; then this one's counts are left out."""


class CacheUses(Struct, frozen=True, kw_only=True):
    """What ended processes counted."""

    since: int
    """When the first of them ended, in milliseconds since 1970."""
    caches: dict[str, CacheCount] = {}


_noted: dict[str, CacheCount] = {}
"""What this process has added already: it may close several stores."""


@asynccontextmanager
async def noting_use(settings: Settings) -> AsyncIterator[None]:
    """Time what caches do from now on, and add what this process counted when the block ends."""
    measure_with(time.perf_counter)
    try:
        yield
    finally:
        await asyncio.to_thread(note_use, settings.home)


def note_use(home: Path) -> None:
    """Add what this process has counted since it was last added."""
    now = {name: count for name, (count, _) in counted().items()}
    new = {name: count - _noted.get(name, CacheCount()) for name, count in now.items()}
    new = {name: count for name, count in new.items() if count.hits or count.misses}
    if not new:
        return
    folder = home / "cache"
    try:
        make_private_folder(folder)
        with locked(folder / LOCK, wait_s=WAIT_S):
            known = uses_of(home) or CacheUses(since=system_clock())
            caches = {name: known.caches.get(name, CacheCount()) + new.get(name, CacheCount()) for name in now}
            both = CacheUses(since=known.since, caches={**known.caches, **caches})
            write_cache(folder / FILE, msgspec.json.encode(both))
    except (OSError, Unavailable):  # a disk that is full or read-only: these counts are lost, and nothing else
        return
    _noted.update(now)


def uses_of(home: Path) -> CacheUses | None:
    """What ended processes counted; None if nothing is known."""
    try:
        return msgspec.json.decode(read_plain(home / "cache" / FILE, bytes_max=FILE_BYTES_MAX), type=CacheUses)
    except (OSError, NotPlain, msgspec.MsgspecError):
        return None
