"""The files of a project that matter, and one digest over their names and contents.

These are the files that git tracks or would add; without git, all but the folders that tools fill by themselves.
A file that has not changed since it was last read is not read again. Links are recorded, never followed."""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.domain.metrics.cache_catalog import FILES, TREES
from handrail.engine.checking.rule import Setting
from handrail.foundation.cache_use import use_of
from handrail.foundation.locked_cache import LockedCache
from handrail.rules.files.git import known_files
from handrail.rules.files.git_language import HEAVY
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import PathRefused, ProjectFiles, is_in, literal_folder, project_at

FILES_MAX: Final = 100_000
BYTES_MAX: Final = 2_000_000_000
URGENT_FILES_MAX: Final = 20_000
"""How many files are looked at before the time is."""
REMEMBERED_MAX: Final = 200_000
URGENT_BYTES_MAX: Final = 50_000_000
"""Up to which size a file is read if there is little time."""
READS_MAX: Final = 3
CLOCK_EVERY: Final = 100
"""After how many files the time is looked at."""
BLOCK_BYTES: Final = 1_000_000
MARK_LENGTH: Final = 32
UNKNOWN: Final = "?"
"""The mark of a file that keeps changing, or could not be read in time."""
SECOND_NS: Final = 1_000_000_000
TICK_NS: Final = 50_000_000
"""Two changes within one tick of the system's clock may leave the same timestamps."""
Stamp: TypeAlias = tuple[int, int, int, int, int]

_of_files: Final = use_of(FILES)
_of_trees: Final = use_of(TREES)
_known: LockedCache[str, tuple[Stamp, bytes]] = _of_files.keeps(LockedCache(REMEMBERED_MAX))


class _KnownTree(Struct, frozen=True):
    """The digest of some files, and by what it is known that they have not changed."""

    listed: Sequence[str]
    stamps: list[Stamp]
    digest: str


NO_TREE: Final = _KnownTree((), [], "")
_trees: LockedCache[tuple[str, ...], _KnownTree] = _of_trees.keeps(LockedCache(REMEMBERED_MAX))
_stamp_of: Callable[[os.stat_result], Stamp] = attrgetter("st_mtime_ns", "st_ctime_ns", "st_size", "st_ino", "st_mode")
_mode_of: Callable[[os.stat_result], int] = attrgetter("st_mode")


class _TooMuch(Exception):
    """More files or bytes than are read, or a file that keeps changing."""


async def tree_digest(project: Path, *, private: Sequence[Path] = (), without: Path | None = None) -> str:
    """The digest of a project's files, `without` one of them; empty if there are too many."""
    place = project_at(project, private)
    try:
        return await asyncio.to_thread(_tree, place, await _listed(place), without)
    except _TooMuch:
        return ""


async def tree_of(setting: Setting) -> str:
    """The digest of the files of the project that a check is applied to; empty if there are too many."""
    known = await setting.tree() if setting.tree is not None else ""
    return known or await tree_digest(setting.project, private=setting.private)


def listed_digest(place: ProjectFiles, listed: Sequence[str], *, within_s: float) -> str:
    """The digest of these files of a project, as `tree_digest` has it; empty if that takes longer, or too many."""
    try:
        return _tree(place, listed, None, until_s=time.monotonic() + within_s)
    except _TooMuch:
        return ""


def _tree(place: ProjectFiles, listed: Sequence[str], left_out: Path | None, *, until_s: float = math.inf) -> str:
    looked_ns = time.time_ns()
    statuses = _statuses(place, listed, is_urgent=until_s < math.inf)
    stamps = list(map(_stamp_of, statuses))
    key = (str(place.root), str(left_out or ""), *map(str, place.private))
    known = _trees.get(key) or NO_TREE
    if stamps and known.stamps == stamps and known.listed == listed:
        _of_trees.hit()
        return known.digest
    with _of_trees.making():
        found = _spread(place, listed, statuses, until_s=until_s)
        if left_out is not None:
            real = str(left_out.resolve())
            found.pop(real.removeprefix(f"{place.root}/"), None)
        digest = _digest(place, found, until_s=until_s)
    if stamps and _all_settled(stamps, looked_ns):  # else a change might not show
        _trees.put(key, _KnownTree(listed, stamps, digest), weight=len(stamps))
    return digest


def _statuses(place: ProjectFiles, listed: Sequence[str], *, is_urgent: bool) -> list[os.stat_result]:
    """What the system says about each of these files, as fast as possible. None at all if there are too many for that,
    if one of them is gone, or if one is a folder, whose files count."""
    if len(listed) > (URGENT_FILES_MAX if is_urgent else FILES_MAX):
        return []
    root = str(place.root)
    try:
        statuses = list(map(os.lstat, [f"{root}/{name}" for name in listed]))
    except OSError:
        return []
    return [] if any(map(stat.S_ISDIR, map(_mode_of, statuses))) else statuses


def _all_settled(stamps: Sequence[Stamp], now_ns: int) -> bool:
    return all(_has_settled(stamp, now_ns) for stamp in stamps)


async def _listed(place: ProjectFiles) -> list[str]:
    try:
        return await known_files(place)
    except GitUnavailable:
        return [""]


async def tree_files(place: ProjectFiles) -> list[str] | None:
    """The files of a project that matter, by path; None if there are too many."""
    try:
        return list(await asyncio.to_thread(_spread, place, await _listed(place)))
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
        now = await asyncio.to_thread(_digest_at, place, paths)
    except _TooMuch:
        return ""
    words = "\0".join([since, now, *paths])
    return f"sha256:{hashlib.sha256(words.encode(errors='surrogateescape')).hexdigest()}"


def files_in(place: ProjectFiles, folder: str, most: int) -> list[str]:
    """The files in a folder, but for those that tools fill by themselves; one more than that, if there are more."""
    try:
        return sorted(islice(_walked(place, folder), most + 1))
    except _TooMuch:
        return [folder] * (most + 1)


def marks_of(place: ProjectFiles, paths: Iterable[str], *, until_s: float = math.inf) -> dict[str, str]:
    """By path: a short digest of its kind and content; empty if nothing is there. If late, files are not read."""
    found: dict[str, str] = {}
    for path in paths:
        status = _status(place, path)
        is_large = status is not None and until_s < math.inf and status.st_size > URGENT_BYTES_MAX
        if is_large or time.monotonic() > until_s:
            found[path] = UNKNOWN
            continue
        try:
            found[path] = hashlib.sha256(_mark(place, path, status)).hexdigest()[:MARK_LENGTH] if status else ""
        except _TooMuch:
            found[path] = UNKNOWN
    return found


def _digest_of(place: ProjectFiles, globs: Sequence[str]) -> tuple[str, list[str]]:
    every = {path for glob in globs for path in _walked(place, literal_folder(glob)) if is_in(path, [glob])}
    paths = sorted(every)
    return _digest_at(place, paths), paths


def _digest_at(place: ProjectFiles, paths: Iterable[str]) -> str:
    found = ((path, _status(place, path)) for path in paths)
    return _digest(place, {path: status for path, status in found if status is not None})


def _spread(
    place: ProjectFiles, listed: Sequence[str], known: Sequence[os.stat_result] = (), *, until_s: float = math.inf
) -> dict[str, os.stat_result]:
    """The files of a listing by path, in order; for a folder in it, such as a nested repository, all files in it.

    A file that is listed but not there was deleted: it is left out. `known` is what the system says about each."""
    closed: dict[str, bool] = {}
    found: dict[str, os.stat_result] = {}
    for number, name in enumerate(listed):
        folder = name.rstrip("/").rpartition("/")[0]
        if folder not in closed:
            closed[folder] = place.is_private(place.root / folder)
        if not closed[folder]:
            found.update(_entered(place, name, known[number] if known else _status(place, name)))
        if len(found) > FILES_MAX or _is_late(number, until_s):
            raise _TooMuch
    return dict(sorted(found.items()))


def _entered(place: ProjectFiles, name: str, status: os.stat_result | None) -> dict[str, os.stat_result]:
    """A file of a listing, or all files in a folder of it; nothing if it was deleted."""
    if status is None:
        return {}
    return _inside(place, name) if stat.S_ISDIR(status.st_mode) else {name: status}


def _inside(place: ProjectFiles, folder: str) -> dict[str, os.stat_result]:
    found = {path: _status(place, path) for path in _walked(place, folder)}
    return {path: status for path, status in found.items() if status is not None}


def _is_late(number: int, until_s: float) -> bool:
    return number % CLOCK_EVERY == 0 and time.monotonic() > until_s


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


def _digest(place: ProjectFiles, found: Mapping[str, os.stat_result], *, until_s: float = math.inf) -> str:
    whole, size, hits = hashlib.sha256(), 0, 0
    root = f"{place.root}/"
    known = _known.some(root + path for path in found)
    for number, ((path, status), kept) in enumerate(zip(found.items(), known, strict=True)):
        size += status.st_size
        if size > BYTES_MAX or _is_late(number, until_s):
            raise _TooMuch
        name = os.fsencode(path)
        if kept and kept[0] == _stamp_of(status):  # the stamp has the mode: it is a plain file
            mark = _kind(status) + kept[1]
            hits += 1
        else:
            mark = _mark(place, path, status)
        whole.update(b"%d:%b%b" % (len(name), name, mark))
    _of_files.hit(times=hits)
    return f"sha256:{whole.hexdigest()}"


def _kind(status: os.stat_result) -> bytes:
    return b"x" if status.st_mode & 0o111 else b"f"


def _mark(place: ProjectFiles, path: str, status: os.stat_result) -> bytes:
    """The kind and content of an entry, in a fixed number of bytes."""
    if stat.S_ISLNK(status.st_mode):
        return b"l" + hashlib.sha256(os.fsencode(Path(place.root, path).readlink())).digest()
    if not stat.S_ISREG(status.st_mode):
        return b"o" + bytes(32)
    return _kind(status) + _content(place, path, _stamp_of(status))


def _content(place: ProjectFiles, path: str, stamp: Stamp) -> bytes:
    key = f"{place.root}/{path}"
    known = _known.get(key)
    if known is not None and known[0] == stamp:
        _of_files.hit()
        return known[1]
    started_ns = time.time_ns()
    with _of_files.making():
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
            before = _stamp_of(os.fstat(file))
            digest = _hashed(file)
            if _stamp_of(os.fstat(file)) == before:
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


def _has_settled(stamp: Stamp, now_ns: int) -> bool:
    """Whether a later change would show in the timestamps: not if the file changed within the clock's resolution."""
    last = max(stamp[0], stamp[1])
    coarse = 2 * SECOND_NS if stamp[0] % SECOND_NS == 0 else TICK_NS
    return last < now_ns - coarse
