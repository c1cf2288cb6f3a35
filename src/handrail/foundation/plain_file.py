"""Reading a whole file that somebody else may have written: a regular file, of bounded size, in a bounded time.

A link to `/dev/zero`, a pipe without a writer, a folder or a huge file is refused at once, before anything is
read. With `within`, links are followed only as long as they stay inside that folder, even if one is swapped in at the
same time. Reading what a plan names is done in tools/files/, which follows no links at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from handrail.foundation.open_flags import BINARY, NO_BLOCK
from handrail.foundation.rooted import Blocked, BlockReason, entered, identity


class NotPlain(Exception):
    """A file that must not be read; `reason` says why, in words that follow the file's name."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path, self.reason = path, reason


def read_plain(path: Path, *, bytes_max: int, within: Path | None = None) -> bytes:
    """The content of a regular file; NotPlain if it is not one, is larger, or leads out of `within`.

    FileNotFoundError and NotADirectoryError, if there is no such file, are the caller's to judge."""
    try:
        file = _opened(path) if within is None else _opened_within(path, within)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise NotPlain(path, f"can't be read: {error.strerror or error}") from error
    with os.fdopen(file, "rb") as reader:
        try:
            content = reader.read(bytes_max + 1)
        except OSError as error:
            raise NotPlain(path, f"can't be read: {error.strerror or error}") from error
    if len(content) > bytes_max:
        raise NotPlain(path, f"is larger than {bytes_max:,} bytes")
    return content


def read_start(path: Path, *, bytes_max: int) -> bytes:
    """The first bytes of a regular file, however large it is; NotPlain or an OSError for everything else."""
    with open_plain(path) as reader:
        return reader.read(bytes_max)


def open_plain(path: Path) -> BinaryIO:
    """A regular file, opened for reading in parts; NotPlain or an OSError for everything else."""
    return os.fdopen(_opened(path), "rb")


def root_around(path: Path, folder: Path) -> Path | None:
    """The folder, if the path is inside it, as it is written or by where its own folder really is. None if not."""
    written = Path(os.path.normpath(path.absolute())).is_relative_to(os.path.normpath(folder.absolute()))
    return folder if written or is_within(path.parent, folder) else None


def is_within(path: Path, folder: Path) -> bool:
    """Whether a path, with all its links followed, is inside a folder."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _opened(path: Path) -> int:
    seen = path.stat()
    _require_regular(path, seen)  # before opening: opening a device can have an effect
    file = os.open(path, os.O_RDONLY | NO_BLOCK | BINARY)
    if identity(os.fstat(file)) != identity(seen):
        os.close(file)
        raise NotPlain(path, "was replaced while it was opened")
    return file


def _opened_within(path: Path, within: Path) -> int:
    real, root = Path(os.path.realpath(path)), Path(os.path.realpath(within))
    if not real.is_relative_to(root) or real == root:
        raise NotPlain(path, f"leads out of {within}: it is not read")
    try:
        with entered(root, real.relative_to(root).parts) as entry:
            return entry.open_file()
    except Blocked as blocked:
        if blocked.why in {BlockReason.NO_FOLDER, BlockReason.NOTHING_THERE}:
            raise FileNotFoundError(path) from None
        if blocked.why is BlockReason.REPLACED:
            raise NotPlain(path, "was replaced while it was opened") from None
        raise NotPlain(path, "is not a regular file") from None


def _require_regular(path: Path, seen: os.stat_result) -> None:
    if not stat.S_ISREG(seen.st_mode):
        raise NotPlain(path, "is not a regular file")
