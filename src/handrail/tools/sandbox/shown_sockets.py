"""Sockets in folders that a command may read: the program that listens there works outside of the sandbox.

A socket seen through an overlay refuses every connection; where there is no overlay, each is found and covered."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed

LISTENING: Final = Path("/opt")
"""A folder of the system in which programs are known to have sockets."""
ENTRIES_MAX: Final = 500_000


def sockets_in(folders: Iterable[Path]) -> list[Path]:
    """Every socket in these folders; ToolFailed if there is too much to look through."""
    left = ENTRIES_MAX
    found = []
    for entry in _entries([str(folder) for folder in folders]):
        left -= 1
        if left < 0:
            message = f"the folders that commands may read have more than {ENTRIES_MAX:,} files, too many to look"
            raise ToolFailed(Category.PERMISSION, f"{message} for sockets; allow overlays in user namespaces")
        if not entry.is_symlink() and not entry.is_dir() and not entry.is_file():
            found.append(Path(entry.path))
    return [path for path in found if path.is_socket()]


def _entries(folders: list[str]) -> Iterator[os.DirEntry[str]]:
    """All that is in these folders, without following links."""
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    yield entry
        except OSError:  # who may not look into a folder can't connect there either, or it is gone
            continue
