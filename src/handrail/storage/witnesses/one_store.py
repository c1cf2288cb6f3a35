"""A witness has the checkpoints of one store only: another store's beside them would hide that a store was replaced."""

from __future__ import annotations

from collections.abc import Sequence

from handrail.domain.errors import Conflict
from handrail.domain.journal.checkpoint import SealedCheckpoint
from handrail.domain.journal.witnessed import witnessed_from


def require_same_store(line: bytes, sealed: Sequence[SealedCheckpoint], name: str) -> None:
    """Refuse to copy to a witness whose newest line is of another store."""
    newest = witnessed_from(line) if line else None
    if newest is not None and newest.store != sealed[0].checkpoint.store:
        raise Conflict(
            f"it has the checkpoints of another store ({newest.store})",
            hint=f"if this store was replaced, find out who did it; else give each home its own, not {name}",
        )
