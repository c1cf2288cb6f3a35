"""Where the events of an archived run are, for the commands that show one."""

from __future__ import annotations

from typing import Any

from handrail.assembly.retention.archives import ArchivedIn
from handrail.interfaces.cli.words.terminal_edge import say


def archived_data(archived: ArchivedIn | None) -> dict[str, Any]:
    """The same as data."""
    return {"archived": {"archive": archived.archive, "file": archived.file}} if archived is not None else {}


def print_archived(archived: ArchivedIn | None) -> None:
    """Print it, if the run is archived."""
    if archived is not None:
        say(f"  archived: its events were read from {archived.file}")
