"""The register of a home's backups: when each was made, and whether it was ever restored and verified.

A file in HANDRAIL_HOME, for doctor, lists and the schedule. It proves nothing: a backup proves itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.errors import Unavailable
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.storage.file_lock import locked

FILE: Final = "backups.json"
LOCK: Final = "backups.lock"
BYTES_MAX: Final = 10_000_000
KNOWN_MAX: Final = 1_000


class BackupProof(StrEnum):
    """What is known about a backup."""

    NONE = "not verified"
    VERIFIED = "verified"
    BROKEN = "broken"
    FAILED = "could not be verified"


class KnownBackup(Struct, frozen=True, kw_only=True):
    """One backup of this home."""

    id: str
    folder: str
    at: int
    events: int
    proof: BackupProof = BackupProof.NONE
    proved_at: int = 0
    reason: str = ""


@dataclass(frozen=True)
class BackupRegister:
    """The register in one home."""

    home: Path

    def all(self) -> list[KnownBackup]:
        """Every known backup, newest first."""
        try:
            content = read_plain(self.home / FILE, bytes_max=BYTES_MAX)
            known = msgspec.json.decode(content, type=list[KnownBackup])
        except FileNotFoundError:
            return []
        except (NotPlain, msgspec.MsgspecError) as error:
            raise Unavailable(
                f"{FILE} can't be read: {error}", hint=f"remove {self.home / FILE}; verify the newest backup again"
            ) from error
        return sorted(known, key=lambda one: (one.at, one.id), reverse=True)

    def add(self, backup: KnownBackup) -> None:
        """Add a backup that was made."""
        self._change(lambda known: [backup, *(one for one in known if one.id != backup.id)])

    def prove(self, backup: str, proof: BackupProof, *, at: int, reason: str = "") -> None:
        """Note what a verification has found, if the backup is known."""
        self._change(
            lambda known: [
                replace(one, proof=proof, proved_at=at, reason=reason) if one.id == backup else one for one in known
            ]
        )

    def forget(self, removed: Sequence[str]) -> None:
        """Remove backups that were deleted."""
        self._change(lambda known: [one for one in known if one.id not in removed])

    def _change(self, change: Callable[[list[KnownBackup]], list[KnownBackup]]) -> None:
        try:
            make_private_folder(self.home)
            # Read and written under one lock: a schedule and a person may make backups at the same time.
            with locked(self.home / LOCK):
                content = msgspec.json.encode(change(self.all())[:KNOWN_MAX])
                write_whole(self.home / FILE, content + b"\n", takes_turns=True)
        except OSError as error:
            raise Unavailable(f"{FILE} can't be written: {error.strerror}", hint=f"check {self.home}") from error
