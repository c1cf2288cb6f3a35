"""Whole files: written aside, then renamed, so that a reader or a power cut finds the old content or the new one.

Only `os` is needed here, because the stdio front imports this before its first answer. Writing inside a project that
others change meanwhile is tools/place.py's work: it needs a folder that is held open."""

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
    """Put a file in place, complete, or leave the one that was there.

    `takes_turns` says that no other process writes this file at the same time: its part then has a fixed name, so that
    what a crash left behind is removed by the next write. `is_synced` makes it survive a power cut. `finish` may
    change the part, by its path, before it gets its real name."""
    part = f"{os.fspath(path)}.part" if takes_turns else _unique_part(path)
    if takes_turns:
        _discard(part)
    _write(part, content, mode=mode, is_synced=is_synced)
    try:
        finish(part)
        os.replace(part, path)
    except BaseException:  # also when the process is asked to end: no part may stay
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
    """Put a synced file in place unless the name is taken, also by another process meanwhile; whether it was free."""
    part = _unique_part(path)
    _write(part, content, mode=mode, is_synced=True)
    try:
        if sys.platform == "win32":  # renames there only to a name that is free
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
    if sys.platform == "win32":  # folders can't be synced there, and need not be
        return
    file = os.open(os.fspath(folder) or os.curdir, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def make_private_folder(folder: AnyPath) -> None:
    """Make a folder and those above it, where they are missing, for the owner only whatever the umask is."""
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
    # Exclusive: nobody can have put a link there that leads the content elsewhere.
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
