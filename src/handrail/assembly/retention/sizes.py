"""What a home takes on the disk, part by part, each with what bounds it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from handrail.assembly.backups.register import BackupRegister
from handrail.assembly.opening import open_reader
from handrail.domain.journal.archived import ARCHIVES
from handrail.engine.run_archive import StoreSize
from handrail.settings import Settings
from handrail.storage.backups.home_files import CHECKPOINTS
from handrail.storage.check_cache import BYTES_MAX, ENTRIES_MAX
from handrail.storage.sqlite.file import BEFORE_UPGRADE


class PartSize(Struct, frozen=True):
    """One part of a home."""

    name: str
    bytes: int
    files: int
    bound: str
    """What keeps it from growing."""


class HomeSize(Struct, frozen=True):
    """What a home takes."""

    store: StoreSize
    parts: tuple[PartSize, ...]
    total: int


async def home_size(settings: Settings) -> HomeSize:
    """Measure a home; its backups are measured where they are."""
    async with open_reader(settings) as look:
        store = await look.store.archives().size()
    parts = await asyncio.to_thread(_parts, settings, store)
    return HomeSize(store, tuple(parts), sum(part.bytes for part in parts))


def _parts(settings: Settings, store: StoreSize) -> list[PartSize]:
    home = settings.home
    upgrade = list(home.glob(f"*{BEFORE_UPGRADE}*"))
    # Wherever they are: a disk that is not there counts as empty.
    backups = [Path(one.folder) for one in BackupRegister(home).all()]
    rules = f"{ENTRIES_MAX:,} results and {BYTES_MAX // 1_000_000} MB: the least used go first"
    return [
        PartSize("journal", store.journal, 1, "[retention] archives ended runs; `handrail db archive`"),
        PartSize("write-ahead log", store.log, 1, "64 MB, emptied when the store is closed"),
        _part("archives", [home / ARCHIVES], "only `handrail db archive --delete` removes archived runs"),
        _part("checkpoints", [home / CHECKPOINTS], "one line for each checkpoint"),
        _part("kept contents", [settings.kept], "until a run is completed, compensated or deleted"),
        _part("rule memory", [home / "cache" / "rules"], rules),
        _part("other caches", [home / "cache"], "each has a limit of its own", without=home / "cache" / "rules"),
        _part("logs", [home / "logs"], f"{settings.choices.log_days} days (log_days)"),
        _part("copy from before an upgrade", upgrade, "only the last one is kept"),
        _part("backups", backups, "rotation of [backup]; those made by hand stay"),
    ]


def _part(name: str, places: list[Path], bound: str, *, without: Path | None = None) -> PartSize:
    files = total = 0
    for file in _files(places, without):
        try:
            if file.is_file() and not file.is_symlink():
                files, total = files + 1, total + file.stat().st_size
        except OSError:  # removed in the meantime
            continue
    return PartSize(name, total, files, bound)


def _files(places: list[Path], without: Path | None) -> Iterator[Path]:
    for place in places:
        inside = [place] if place.is_file() else place.rglob("*")
        yield from (file for file in inside if without is None or not file.is_relative_to(without))
