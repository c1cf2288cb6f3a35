"""Atomic file writes: a file is written under another name and then renamed, so that a reader, or the next start after
a power cut, finds either the old content or the new one.

Imports only `os`, because the stdio front loads this before its first answer. Writing inside a project that other
processes change at the same time is done in tools/files/place.py: that needs the folder to be held open."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from handrail.foundation.open_flags import BINARY

AnyPath: TypeAlias = str | os.PathLike[str]
PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700


def write_whole(
    path: AnyPath,
    content: bytes,
    *,
    mode: int = PRIVATE_FILE,
    takes_turns: bool = False,
    is_synced: bool = True,
    finish: Callable[[str], None] = lambda part: None,
) -> None:
    """Replace a file with complete new content, or leave the old file as it was.

    `takes_turns` says that no other process writes this file at the same time: the temporary file then has a fixed
    name, so that the next write removes what a crash left behind. `is_synced` makes the content survive a power cut.
    `finish` may change the temporary file, by its path, before it gets its real name."""
    part = f"{os.fspath(path)}.part" if takes_turns else _unique_part(path)
    if takes_turns:
        _discard(part)
    _write(part, content, mode=mode, is_synced=is_synced)
    try:
        finish(part)
        os.replace(part, path)
    except BaseException:  # also when the process is asked to stop: no temporary file may stay
        _discard(part)
        raise
    if is_synced:
        sync_folder(os.path.dirname(path))


def write_cache(path: AnyPath, content: bytes) -> None:
    """Put a file of a cache in place; failing costs time later and nothing else, so it is no error."""
    with suppress(OSError):
        make_private_folder(os.path.dirname(os.path.abspath(path)))
        write_whole(path, content, is_synced=False)


def write_new(path: AnyPath, content: bytes, *, mode: int = PRIVATE_FILE) -> bool:
    """Create a synced file unless the name is taken, even by another process in the meantime; True if it was free."""
    part = _unique_part(path)
    _write(part, content, mode=mode, is_synced=True)
    try:
        if sys.platform == "win32":  # Windows only renames to a name that is free
            os.rename(part, path)
        else:
            os.link(part, path)
    except FileExistsError:
        return False
    finally:
        _discard(part)
    sync_folder(os.path.dirname(path))
    return True


def sync_folder(folder: AnyPath) -> None:
    """Make a new name in a folder survive a power cut."""
    if sys.platform == "win32":  # Windows can't sync folders, and does not need to
        return
    file = os.open(os.fspath(folder) or os.curdir, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def make_private_folder(folder: AnyPath) -> None:
    """Create a folder and its missing parents, readable by the owner only, whatever the umask is."""
    missing = []
    here = os.path.abspath(folder)
    while not os.path.exists(here):
        missing.append(here)
        here = os.path.dirname(here)
    for one in reversed(missing):
        try:
            os.mkdir(one, PRIVATE_FOLDER)
        except FileExistsError:  # another process was first
            if not os.path.isdir(one):
                raise
        os.chmod(one, PRIVATE_FOLDER)
        sync_folder(os.path.dirname(one))


def _unique_part(path: AnyPath) -> str:
    return f"{os.fspath(path)}.{os.urandom(8).hex()}.part"


def _write(part: str, content: bytes, *, mode: int, is_synced: bool) -> None:
    # Exclusive: a link that someone put there would otherwise send the content elsewhere.
    file = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | BINARY, mode)
    try:
        with os.fdopen(file, "wb") as writer:
            writer.write(content)
            writer.flush()
            if is_synced:
                os.fsync(file)
        os.chmod(part, mode)  # whatever the umask is
    except BaseException:
        _discard(part)
        raise


def _discard(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
