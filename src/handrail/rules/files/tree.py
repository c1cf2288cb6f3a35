"""The files of a project that matter, and one digest over their names and contents.

These are the files that git tracks or would add; without git, all but the folders that tools fill by themselves.
A file that has not changed since it was last read is not read again. Links are recorded, never followed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from handrail.foundation.locked_cache import LockedCache
from handrail.rules.files.git import GitUnavailable, known_files
from handrail.rules.files.project import PathRefused, ProjectFiles, is_in, literal_folder, project_at

FILES_MAX: Final = 100_000
BYTES_MAX: Final = 2_000_000_000
REMEMBERED_MAX: Final = 200_000
READS_MAX: Final = 3
BLOCK_BYTES: Final = 1_000_000
MARK_LENGTH: Final = 32
UNKNOWN: Final = "?"
"""The mark of a file that keeps changing."""
SECOND_NS: Final = 1_000_000_000
TICK_NS: Final = 50_000_000
"""Two changes within one tick of the system's clock may leave the same timestamps."""
HEAVY: Final = frozenset(
    {
        *(".git", ".hg", ".svn", ".handrail", "node_modules", ".venv", "venv", ".tox", ".nox", "site-packages"),
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".gradle", ".idea", ".next", ".cache"),
        *("target", "build", "dist", "coverage", "htmlcov"),
    }
)

Stamp: TypeAlias = tuple[int, int, int, int, int]

_known: LockedCache[str, tuple[Stamp, bytes]] = LockedCache(REMEMBERED_MAX)


class _TooMuch(Exception):
    """More files or bytes than are read, or a file that keeps changing."""


async def tree_digest(project: Path, *, private: Sequence[Path] = (), without: Path | None = None) -> str:
    """The digest of a project's files, `without` one of them; empty if there are too many."""
    place = project_at(project, private)
    try:
        paths = await tree_files(place)
        return "" if paths is None else await asyncio.to_thread(_digest, place, _left(place, paths, without))
    except _TooMuch:
        return ""


def _left(place: ProjectFiles, paths: list[str], without: Path | None) -> list[str]:
    left_out = without.resolve() if without is not None else None
    return [path for path in paths if place.root / path != left_out] if left_out is not None else paths


async def tree_files(place: ProjectFiles) -> list[str] | None:
    """The files of a project that matter, by path; None if there are too many."""
    try:
        listed = await known_files(place)
    except GitUnavailable:
        listed = [""]
    try:
        return await asyncio.to_thread(_spread, place, listed)
    except _TooMuch:
        return None


async def files_digest(place: ProjectFiles, globs: Sequence[str]) -> tuple[str, list[str]]:
    """The digest of all files that the globs match, and their paths; an empty digest if there are too many."""
    try:
        return await asyncio.to_thread(_digest_of, place, globs)
    except _TooMuch:
        return "", []


async def paths_digest(place: ProjectFiles, paths: Sequence[str], *, since: str = "") -> str:
    """The digest of these files as they are now, and of what they are compared with; empty if there are too many."""
    try:
        now = await asyncio.to_thread(_digest, place, paths)
    except _TooMuch:
        return ""
    words = "\0".join([since, now, *paths])
    return f"sha256:{hashlib.sha256(words.encode(errors='surrogateescape')).hexdigest()}"


def marks_of(place: ProjectFiles, paths: Iterable[str]) -> dict[str, str]:
    """By path: a short digest of its kind and content; empty if nothing is there."""
    found: dict[str, str] = {}
    for path in paths:
        status = _status(place, path)
        try:
            found[path] = hashlib.sha256(_mark(place, path, status)).hexdigest()[:MARK_LENGTH] if status else ""
        except _TooMuch:
            found[path] = UNKNOWN
    return found


def _digest_of(place: ProjectFiles, globs: Sequence[str]) -> tuple[str, list[str]]:
    every = {path for glob in globs for path in _walked(place, literal_folder(glob)) if is_in(path, [glob])}
    paths = sorted(every)
    return _digest(place, paths), paths


def _spread(place: ProjectFiles, listed: Iterable[str]) -> list[str]:
    """The files of a listing; for a folder in it, such as a nested repository, all files in that folder."""
    closed: dict[str, bool] = {}
    found: list[str] = []
    for name in listed:
        folder = name.rstrip("/").rpartition("/")[0]
        if folder not in closed:
            closed[folder] = place.is_private(place.root / folder)
        if not closed[folder]:
            found += _walked(place, name)
        if len(found) > FILES_MAX:
            raise _TooMuch
    return sorted(set(found))


def _walked(place: ProjectFiles, start: str) -> Iterator[str]:
    """The path itself if it is a file or a link, else all files in it; nothing if nothing is there."""
    waiting, count = [start.rstrip("/")], 0
    while waiting:
        path = waiting.pop()
        status = _status(place, path)
        if status is None:
            continue
        if not stat.S_ISDIR(status.st_mode):
            yield path
        elif not place.is_private(place.root / path):
            waiting += [f"{path}/{name}" if path else name for name in _names(place.root / path)]
        count += 1
        if count > FILES_MAX:
            raise _TooMuch


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [one.name for one in entries if one.name not in HEAVY or not one.is_dir(follow_symlinks=False)]
    except OSError:  # removed in the meantime, or not readable
        return []


def _status(place: ProjectFiles, path: str) -> os.stat_result | None:
    try:
        return os.lstat(f"{place.root}/{path}")
    except OSError:
        return None


def _digest(place: ProjectFiles, paths: Iterable[str]) -> str:
    whole, size = hashlib.sha256(), 0
    for path in paths:
        status = _status(place, path)
        if status is None:
            continue  # deleted, but still in git's index: treated as not listed
        size += status.st_size
        if size > BYTES_MAX:
            raise _TooMuch
        whole.update(b"%d:%b" % (len(name := os.fsencode(path)), name))
        whole.update(_mark(place, path, status))
    return f"sha256:{whole.hexdigest()}"


def _mark(place: ProjectFiles, path: str, status: os.stat_result) -> bytes:
    """The kind and content of an entry, in a fixed number of bytes."""
    if stat.S_ISLNK(status.st_mode):
        return b"l" + hashlib.sha256(os.fsencode(Path(place.root, path).readlink())).digest()
    if not stat.S_ISREG(status.st_mode):
        return b"o" + bytes(32)
    kind = b"x" if status.st_mode & 0o111 else b"f"
    return kind + _content(place, path, _stamp(status))


def _content(place: ProjectFiles, path: str, stamp: Stamp) -> bytes:
    key = f"{place.root}/{path}"
    known = _known.get(key)
    if known is not None and known[0] == stamp:
        return known[1]
    started_ns = time.time_ns()
    seen, digest = _read(place, path)
    if _has_settled(seen, started_ns):
        _known.put(key, (seen, digest))
    return digest


def _read(place: ProjectFiles, path: str) -> tuple[Stamp, bytes]:
    """The stamp and digest of a file that did not change while it was read."""
    for _ in range(READS_MAX):
        try:
            file = place.opened(path)
        except PathRefused as error:
            raise _TooMuch from error
        try:
            before = _stamp(os.fstat(file))
            digest = _hashed(file)
            if _stamp(os.fstat(file)) == before:
                return before, digest
        finally:
            os.close(file)
    raise _TooMuch


def _hashed(file: int) -> bytes:
    whole, size = hashlib.sha256(), 0
    while block := os.read(file, BLOCK_BYTES):
        whole.update(block)
        size += len(block)
        if size > BYTES_MAX:  # the file grew while it was read
            raise _TooMuch
    return whole.digest()


def _stamp(status: os.stat_result) -> Stamp:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode)


def _has_settled(stamp: Stamp, now_ns: int) -> bool:
    """Whether a later change would show in the timestamps: not if the file changed within the clock's resolution."""
    last = max(stamp[0], stamp[1])
    coarse = 2 * SECOND_NS if stamp[0] % SECOND_NS == 0 else TICK_NS
    return last < now_ns - coarse
