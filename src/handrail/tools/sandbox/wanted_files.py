"""Reading files that a command left in its view of the project, before the view is dropped.

The command may be hostile: only plain files are read, within a limit, and no link is followed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from handrail.engine.sandbox import WANTED_BYTES_MAX
from handrail.foundation.rooted import Blocked, entered


def read_wanted(view: Path, names: Sequence[str]) -> Mapping[str, bytes]:
    """Those of these files that can be read, by name."""
    found = {name: _content(view, name) for name in names}
    return {name: content for name, content in found.items() if content is not None}


def _content(view: Path, name: str) -> bytes | None:
    parts = [part for part in name.split("/") if part not in {"", "."}]
    try:
        with entered(view, parts) as entry:
            handle = entry.open_file()
    except (Blocked, OSError, ValueError):  # nothing there, a link, or a path out of the project
        return None
    with os.fdopen(handle, "rb") as file:
        content = file.read(WANTED_BYTES_MAX + 1)
    return content if len(content) <= WANTED_BYTES_MAX else None
