"""The cache of rule results: one file per key, named by its digest; the least recently used entry is dropped first.

Only a cache: an entry that can't be read counts as missing, and one that can't be written is not kept. The journal has
the permanent records of checks."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from handrail.domain.checks.rule import CheckOutcome
from handrail.domain.metrics.cache_catalog import CHECK_RESULTS
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.foundation.cache_use import now, use_of
from handrail.foundation.open_flags import BINARY, NO_FOLLOW

ENTRIES_MAX: Final = 1_000
BYTES_MAX: Final = 50_000_000
ENTRY_BYTES_MAX: Final = 1_000_000
PART_AGE_NS: Final = 60_000_000_000
"""An older temporary file was left behind by a crash."""
NS_PER_MS: Final = 1_000_000

_name = re.compile(r"[0-9a-f]{64}\.json")


class Remembered(Struct, frozen=True, kw_only=True):
    """What `handrail` shows of one cached result."""

    key: str
    rule: str
    version: str
    passed: bool
    when: int
    """When the rule was applied, in milliseconds since 1970."""
    asked: int
    """When it was last used."""
    bytes: int


class _CachedOutcome(Struct, frozen=True, kw_only=True):
    """The content of a cache file."""

    format: Literal[1] = 1
    key: str
    when: int
    outcome: CheckOutcome


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_CachedOutcome).decode


class RuleMemory:
    """Cached results of rules in one folder, which several processes may share."""

    def __init__(
        self,
        folder: Path,
        *,
        entries_max: int = ENTRIES_MAX,
        bytes_max: int = BYTES_MAX,
        now_ns: Callable[[], int] = time.time_ns,
        clean: Callable[[bytes], bytes] = bytes,
    ) -> None:
        """`clean` removes secrets from what is kept."""
        self._clean = clean
        self._folder = folder
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._now_ns = now_ns

    async def find(self, key: str) -> CheckOutcome | None:
        """The cached result, if there is one."""
        return await asyncio.to_thread(self._find, key)

    async def keep(self, key: str, outcome: CheckOutcome) -> None:
        """Cache a result; drops the least recently used ones if there are too many."""
        await asyncio.to_thread(self._keep, key, outcome)

    async def cards(self) -> Sequence[Remembered]:
        """All cached results, the most recently used first."""
        return await asyncio.to_thread(self._cards)

    async def clear(self) -> int:
        """Remove all entries; how many there were."""
        return await asyncio.to_thread(self._clear)

    def _find(self, key: str) -> CheckOutcome | None:
        started_s = now()
        path = self._path(key)
        entry = _read(path)
        # The name of the file is only a digest of the key; the key inside decides.
        if entry is None or entry.key != key:
            return None  # what a miss costs is counted where the rule is applied: engine/checking/gate.py
        self._touch(path)
        use_of(CHECK_RESULTS).hit(since=started_s)
        return entry.outcome

    def _keep(self, key: str, outcome: CheckOutcome) -> None:
        try:
            content = self._clean(_encode(_CachedOutcome(key=key, when=self._now_ns() // NS_PER_MS, outcome=outcome)))
        except UnicodeEncodeError:  # a lone surrogate, read from some file, can't be encoded
            return
        if len(content) > min(ENTRY_BYTES_MAX, self._bytes_max):
            return
        with suppress(OSError):  # disk full, or not writable: the rule will be applied again
            make_private_folder(self._folder)
            # Not synced: a file that a power cut damages can't be read, and then counts as missing.
            write_whole(self._path(key), content, is_synced=False, finish=self._touch)
            self._forget()

    def _touch(self, path: Path | str) -> None:
        now = self._now_ns()
        with suppress(OSError):  # removed by another process in the meantime
            os.utime(path, ns=(now, now))

    def _forget(self) -> None:
        entries, size = 0, 0
        for path, status in self._files():
            entries, size = entries + 1, size + status.st_size
            if entries > self._entries_max or size > self._bytes_max:
                path.unlink(missing_ok=True)

    def _cards(self) -> list[Remembered]:
        found = ((path, status, _read(path)) for path, status in self._files())
        return [_card(entry, status) for path, status, entry in found if entry and path == self._path(entry.key)]

    def _clear(self) -> int:
        files = self._files()
        for path, _ in files:
            path.unlink(missing_ok=True)
        return len(files)

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        """The cache files, the most recently used first; files that do not belong here are removed."""
        kept: list[tuple[Path, os.stat_result]] = []
        try:
            with os.scandir(self._folder) as entries:
                every = [self._folder / entry.name for entry in entries]
        except OSError:
            return []
        for path in every:
            status = _status(path)
            if status is None:
                continue
            if _name.fullmatch(path.name) and stat.S_ISREG(status.st_mode):
                kept.append((path, status))
            # A temporary file that is young belongs to another process that is writing right now.
            elif not self._is_at_work(path, status):
                _remove(path)
        return sorted(kept, key=lambda one: one[1].st_mtime_ns, reverse=True)

    def _is_at_work(self, path: Path, status: os.stat_result) -> bool:
        return path.suffix == ".part" and status.st_mtime_ns > self._now_ns() - PART_AGE_NS

    def _path(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode(errors='replace')).hexdigest()}.json"


def _read(path: Path) -> _CachedOutcome | None:
    """The content of a cache file; a file with any other content is removed."""
    try:
        file = os.open(path, os.O_RDONLY | NO_FOLLOW | BINARY)
    except FileNotFoundError:
        return None
    except OSError:  # a link, or not readable
        _remove(path)
        return None
    try:
        with os.fdopen(file, "rb") as reader:
            return _decode(reader.read(ENTRY_BYTES_MAX))
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        _remove(path)
        return None


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:  # removed by another process in the meantime
        return None


def _remove(path: Path) -> None:
    with suppress(OSError):  # folders stay; anything else that can't be removed is ignored
        path.unlink()


def _card(entry: _CachedOutcome, status: os.stat_result) -> Remembered:
    evidence, findings = entry.outcome.evidence, entry.outcome.findings
    return Remembered(
        key=entry.key,
        rule=evidence.rule if evidence else findings[0].rule if findings else "",
        version=evidence.version if evidence else "",
        passed=evidence.passed if evidence else not findings,
        when=entry.when,
        asked=status.st_mtime_ns // NS_PER_MS,
        bytes=status.st_size,
    )
