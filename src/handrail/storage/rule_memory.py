"""What rules found before: one file a key, named by its digest; what was not asked for longest is forgotten first.

A memory, not a record: what can't be read is as if it had never been there, and what can't be written is not kept.
The records of checks are in the journal."""

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

from handrail.domain.rule import Outcome
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.foundation.open_flags import BINARY, NO_FOLLOW

ENTRIES_MAX: Final = 1_000
BYTES_MAX: Final = 50_000_000
ENTRY_BYTES_MAX: Final = 1_000_000
PART_AGE_NS: Final = 60_000_000_000
"""A part that is older was left behind by a crash."""
NS_PER_MS: Final = 1_000_000

_name = re.compile(r"[0-9a-f]{64}\.json")


class Remembered(Struct, frozen=True, kw_only=True):
    """What may be shown of one thing that is remembered."""

    key: str
    rule: str
    version: str
    passed: bool
    when: int
    """Milliseconds since 1970, when it was found."""
    asked: int
    """When it was last asked for."""
    bytes: int


class _Entry(Struct, frozen=True, kw_only=True):
    """What a file holds."""

    format: Literal[1] = 1
    key: str
    when: int
    outcome: Outcome


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Entry).decode


class RuleMemory:
    """What rules found before, in a folder of its own; other processes may use it too."""

    def __init__(
        self,
        folder: Path,
        *,
        entries_max: int = ENTRIES_MAX,
        bytes_max: int = BYTES_MAX,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._folder = folder
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._now_ns = now_ns

    async def find(self, key: str) -> Outcome | None:
        """What was found then."""
        return await asyncio.to_thread(self._find, key)

    async def keep(self, key: str, outcome: Outcome) -> None:
        """Remember it; what was not asked for longest is forgotten first."""
        await asyncio.to_thread(self._keep, key, outcome)

    async def cards(self) -> Sequence[Remembered]:
        """All that is remembered, the most recently asked first."""
        return await asyncio.to_thread(self._cards)

    async def clear(self) -> int:
        """Forget everything; how much that was."""
        return await asyncio.to_thread(self._clear)

    def _find(self, key: str) -> Outcome | None:
        path = self._path(key)
        entry = _read(path)
        if entry is None or entry.key != key:
            return None
        self._touch(path)
        return entry.outcome

    def _keep(self, key: str, outcome: Outcome) -> None:
        try:
            content = _encode(_Entry(key=key, when=self._now_ns() // NS_PER_MS, outcome=outcome))
        except UnicodeEncodeError:  # half a character, from somebody's file: there is no way to write it
            return
        if len(content) > min(ENTRY_BYTES_MAX, self._bytes_max):
            return
        with suppress(OSError):  # no room, or no right to write: it will be found out again
            make_private_folder(self._folder)
            # Not synced: what a power cut leaves of it can't be read, and is forgotten.
            write_whole(self._path(key), content, is_synced=False, finish=self._touch)
            self._forget()

    def _touch(self, path: Path | str) -> None:
        now = self._now_ns()
        with suppress(OSError):  # forgotten meanwhile
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
        """The files of this memory, the most recently asked first; what does not belong here is removed."""
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
            elif not self._is_at_work(path, status):
                _remove(path)
        return sorted(kept, key=lambda one: one[1].st_mtime_ns, reverse=True)

    def _is_at_work(self, path: Path, status: os.stat_result) -> bool:
        return path.suffix == ".part" and status.st_mtime_ns > self._now_ns() - PART_AGE_NS

    def _path(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode(errors='replace')).hexdigest()}.json"


def _read(path: Path) -> _Entry | None:
    """What a file holds; one that holds anything else is removed."""
    try:
        file = os.open(path, os.O_RDONLY | NO_FOLLOW | BINARY)
    except FileNotFoundError:
        return None
    except OSError:  # a link, or not ours to read
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
    except OSError:  # forgotten by another process meanwhile
        return None


def _remove(path: Path) -> None:
    with suppress(OSError):  # a folder stays; whatever else can't be removed is ignored
        path.unlink()


def _card(entry: _Entry, status: os.stat_result) -> Remembered:
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
