"""The folder with archive files: written whole, read back and proved.

Its files never change: an archive is written under a new name, and removed when no run needs it any more. The format
is in domain/journal/archive_file.py."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from handrail.domain.journal.archive_file import CONTENT_BYTES_MAX, ArchiveContent, broken, content_of
from handrail.domain.journal.archived import ARCHIVES, Tombstone
from handrail.domain.journal.chain import Record
from handrail.domain.metrics.cache_catalog import ARCHIVES as UNPACKED
from handrail.engine.journal import Placed
from handrail.foundation.atomic_file import make_private_folder, sync_folder, write_whole
from handrail.foundation.cache_use import use_of
from handrail.foundation.locked_cache import LockedCache
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.storage.archives.archived_events import events_of

SUFFIX: Final = ".hra"
KEPT_FILES: Final = 4
_use: Final = use_of(UNPACKED)
KEPT_BYTES_MAX: Final = 2_000_000
"""How large a file may be whose content is kept: a run that is read in pages is then unpacked once."""
_NAME: Final = re.compile(r"arc_[a-z0-9]{6,40}")


class ArchiveFolder:
    """The archive files of one store; the folder is made when the first is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kept: LockedCache[str, ArchiveContent] = _use.keeps(LockedCache(KEPT_FILES))

    @classmethod
    def beside(cls, journal: Path) -> ArchiveFolder:
        """The folder that belongs to a journal in a file."""
        return cls(journal.parent / ARCHIVES)

    def path(self, archive: str) -> Path:
        """Where an archive is."""
        if not _NAME.fullmatch(archive):  # from a row that may be forged: it must not lead out of the folder
            raise broken(repr(archive), "has no name that handrail writes")
        return self.folder / f"{archive}{SUFFIX}"

    def names(self) -> list[str]:
        """The archives that are here."""
        return sorted(file.stem for file in self.folder.glob(f"*{SUFFIX}") if _NAME.fullmatch(file.stem))

    def sizes(self) -> dict[str, int]:
        """How many bytes each archive takes."""
        return {name: self.path(name).stat().st_size for name in self.names()}

    def write(self, archive: str, data: bytes) -> None:
        """Write an archive; it is on the disk when this returns."""
        make_private_folder(self.folder)
        write_whole(self.path(archive), data)

    def read(self, archive: str) -> bytes:
        """The bytes of an archive; IntegrityBroken if it is missing or can't be read."""
        path = self.path(archive)
        try:
            return read_plain(path, bytes_max=CONTENT_BYTES_MAX)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise broken(archive, f"is missing: {path}") from error
        except NotPlain as error:
            raise broken(archive, error.reason) from error

    def content(self, archive: str) -> ArchiveContent:
        """All runs of an archive, each proved by its own hashes."""
        kept = self._kept.get(archive)
        if kept is not None:
            _use.hit()
            return kept
        with _use.making():
            data = self.read(archive)
            content = content_of(data, archive)
        if len(data) <= KEPT_BYTES_MAX:
            self._kept.put(archive, content)
        return content

    def records(self, tombstone: Tombstone, *, after: int, limit: int) -> list[Record]:
        """The events of an archived run after a number; refused unless they end as the store says."""
        run = events_of(tombstone, self.content)
        return [one.record for one in run[max(0, after) : max(0, after) + max(0, limit)]]

    def placed(self, tombstone: Tombstone) -> list[Placed]:
        """All events of an archived run, with their positions."""
        return [Placed(one.place, one.record) for one in events_of(tombstone, self.content)]

    def remove(self, archive: str) -> None:
        """Remove an archive; none is fine."""
        path = self.path(archive)
        path.unlink(missing_ok=True)
        if path.parent.exists():
            sync_folder(os.fspath(path.parent))
