"""Trust decisions, in one private file in HANDRAIL_HOME: outside every project, so that a project can't write it.

What a decision means is in domain/trust/decision.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from handrail.domain.errors import Invalid, Limited, Unavailable
from handrail.domain.trust.decision import TrustDecision
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.storage.file_lock import locked

TRUST_NAME: Final = "trust.json"
FILE_BYTES_MAX: Final = 20_000_000
DECISIONS_MAX: Final = 5_000
FORMAT: Final = 1


class _KeptTrust(Struct, frozen=True, kw_only=True):
    format: int = FORMAT
    decisions: tuple[TrustDecision, ...] = ()


class TrustFile:
    """The decisions of one user, by the real path of each project."""

    def __init__(self, home: Path) -> None:
        self._path = home / TRUST_NAME
        self._lock = home / "trust.lock"

    def find(self, project: str) -> TrustDecision | None:
        """The decision about a folder, by its real path; None if there is none."""
        return next((one for one in self.all() if one.project == project), None)

    def all(self) -> Sequence[TrustDecision]:
        """All decisions, by folder; Invalid if the file can't be read: then nothing may count as trusted."""
        try:
            content = read_plain(self._path, bytes_max=FILE_BYTES_MAX)
            kept = msgspec.json.decode(content, type=_KeptTrust)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except (NotPlain, msgspec.DecodeError, UnicodeDecodeError) as error:
            hint = f"remove {self._path}, then run `handrail trust` again in each project"
            raise Invalid(f"the trust decisions can't be read: {error}", hint=hint) from error
        if kept.format != FORMAT:
            raise Invalid(f"{self._path} was written by another version of handrail", hint="use that version")
        return kept.decisions

    def keep(self, decision: TrustDecision) -> None:
        """Keep a decision in place of the one about the same folder."""
        self._replace(decision.project, [decision])

    def remove(self, project: str) -> bool:
        """Remove the decision about a folder; False if there was none."""
        return self._replace(project, [])

    def _replace(self, project: str, new: Sequence[TrustDecision]) -> bool:
        try:
            make_private_folder(self._path.parent)
            with locked(self._lock):  # two projects may be trusted at the same time
                known = self.all()
                others = [one for one in known if one.project != project]
                decisions = tuple(sorted((*others, *new), key=lambda one: one.project))
                if len(decisions) > DECISIONS_MAX:
                    raise Limited(f"{len(decisions)} projects are trusted", hint="revoke some: `handrail trust list`")
                write_whole(self._path, msgspec.json.format(msgspec.json.encode(_KeptTrust(decisions=decisions))))
        except OSError as error:
            hint = f"make {self._path.parent} writable; nothing was changed"
            raise Unavailable(f"{self._path} can't be written: {error.strerror or error}", hint=hint) from error
        return len(others) < len(known)
