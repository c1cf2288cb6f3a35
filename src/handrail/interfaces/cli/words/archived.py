"""Where the events of an archived run are, for the commands that show one."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from handrail.assembly.opening import StoreReader
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.storage.archives.archive_folder import ArchiveFolder


class ArchivedIn(Struct, frozen=True):
    """The archive that a run is in, and its file."""

    archive: str
    file: str


async def archived_in(look: StoreReader, run: str) -> ArchivedIn | None:
    """Where a run is archived; None if its events are in the journal."""
    stone = await look.store.archives().tombstone(run)
    if stone is None or not stone.archive:
        return None
    return ArchivedIn(stone.archive, str(ArchiveFolder.beside(look.settings.journal).path(stone.archive)))


def archived_data(archived: ArchivedIn | None) -> dict[str, Any]:
    """The same as data."""
    return {"archived": {"archive": archived.archive, "file": archived.file}} if archived is not None else {}


def print_archived(archived: ArchivedIn | None) -> None:
    """Print it, if the run is archived."""
    if archived is not None:
        say(f"  archived: its events were read from {archived.file}")
