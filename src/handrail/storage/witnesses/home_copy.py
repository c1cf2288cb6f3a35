"""The copy of a shared store's checkpoints in this node's own home: who replaces the database can't replace it.

A witness like the others, and the one that is compared at every start: a store that does not have what this node has
seen signed is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_digest
from handrail.storage.checkpoint_log import CheckpointFile

NAME: Final = "this home"


class SharedLog(Protocol):
    """What is asked of the log of a shared store."""

    async def has(self, sealed: SealedCheckpoint) -> bool:
        """Whether the present log has this checkpoint in its place."""
        ...


class WholeLog(Protocol):
    """What is asked of a log that is read from its start anyway."""

    def all(self) -> AsyncIterator[SealedCheckpoint]:
        """Every checkpoint, oldest first."""
        ...


@dataclass(frozen=True)
class ReadLog:
    """A log that is searched by reading all of it."""

    log: WholeLog

    async def has(self, sealed: SealedCheckpoint) -> bool:
        """Whether the log has this checkpoint."""
        wanted = checkpoint_digest(sealed.checkpoint)
        return any([checkpoint_digest(one.checkpoint) == wanted async for one in self.log.all()])


@dataclass(frozen=True)
class HomeCopy:
    """The copy in a home."""

    file: CheckpointFile
    name: str = NAME

    async def copy(self, sealed: Sequence[SealedCheckpoint]) -> None:
        """Append these checkpoints to the copy; a log that was restarted starts a new one."""
        for one in sealed:
            if await self.file.append(one, after=one.checkpoint.previous):
                continue
            if one.checkpoint.number == 1 and one.checkpoint.is_restart:
                await self.file.restart(one)
            elif not await ReadLog(self.file).has(one):
                raise IntegrityBroken(
                    f"checkpoint {one.checkpoint.number} does not follow what this node has seen",
                    hint="verify the journal: `handrail journal verify`",
                )

    async def require_in(self, log: SharedLog, restarted: SealedCheckpoint | None) -> None:
        """Refuse a store whose log does not have the last checkpoint that this node has seen.

        `restarted` is the first checkpoint of the log, if an operator restarted it and its signature holds: then what
        was seen before was reviewed and accepted."""
        last = await self.file.last()
        if last is None or await log.has(last):
            return
        if restarted is not None and restarted.checkpoint.at >= last.checkpoint.at:
            return
        raise IntegrityBroken(
            f"this node has seen checkpoint {last.checkpoint.number}, over {last.checkpoint.events} events; the store"
            " does not have it: it was cut, replaced, or an older copy was restored",
            hint="restore the newest copy, or review it: `handrail journal verify`, then `journal checkpoint --accept`",
        )
