"""Reading files that a command left in its view of the project, before the view is dropped.

The command may be hostile: only plain files are read, within a limit, and no link is followed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from handrail.engine.sandbox import WANTED_BYTES_MAX, Ran
from handrail.foundation.rooted import Blocked, entered


class WantedFile(NamedTuple):
    """A file that a command left, or did not touch."""

    content: bytes
    written_ns: int


def with_wanted(ran: Ran, view: Path, names: Sequence[str]) -> Ran:
    """The result of a command, with those of these files that can be read in its view."""
    found = {name: file for name in names if (file := _read(view, name)) is not None}
    return replace(
        ran,
        files={name: file.content for name, file in found.items()},
        written_ns={name: file.written_ns for name, file in found.items()},
    )


def _read(view: Path, name: str) -> WantedFile | None:
    parts = [part for part in name.split("/") if part not in {"", "."}]
    try:
        with entered(view, parts) as entry:
            handle = entry.open_file()
    except (Blocked, OSError, ValueError):  # nothing there, a link, or a path out of the project
        return None
    with os.fdopen(handle, "rb") as file:
        content = file.read(WANTED_BYTES_MAX + 1)
        written_ns = os.fstat(file.fileno()).st_mtime_ns
    return WantedFile(content, written_ns) if len(content) <= WANTED_BYTES_MAX else None
