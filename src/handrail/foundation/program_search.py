"""Finding programs of the machine by name: in the absolute folders of PATH only.

A relative folder on PATH (`./node_modules/.bin`, or nothing at all between two colons) is one of whatever project
handrail runs in, and a stranger may have put a `git` there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path


def programs_named(name: str, path: str | None = None) -> Iterator[str]:
    """The programs of that name, in the order of PATH, or of another list of folders."""
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return (found for folder in folders if Path(folder).is_absolute() and (found := shutil.which(name, path=folder)))
