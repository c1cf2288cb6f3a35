"""Secrets of runs: the values of secret inputs, so that a node that goes on with a run removes them, too. A protocol.

Values are never in the journal. They are kept sealed until the run ends: in a store that several nodes share, for each
node; beside a file, for this home."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class RunSecrets(Protocol):
    """Where the values of secret inputs of open runs are kept."""

    async def keep(self, run: str, values: Sequence[str]) -> None:
        """Keep the values of a run, for every node that may go on with it."""
        ...

    async def of(self, run: str) -> Sequence[str]:
        """The values of a run; SealedForOthers if there are some that this node can't open."""
        ...

    async def forget(self, run: str) -> None:
        """Remove the values of a run that has ended."""
        ...
