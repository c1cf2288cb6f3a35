"""Results of checks at two levels: those of this machine first, then those that other machines share with it."""

from __future__ import annotations

from dataclasses import dataclass

from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import Memory


@dataclass(frozen=True)
class LayeredMemory:
    """A result that is found at the second level is kept at the first."""

    own: Memory
    shared: Memory

    async def find(self, key: str) -> CheckOutcome | None:
        """The result from the nearest level that has it."""
        known = await self.own.find(key)
        if known is None and (known := await self.shared.find(key)) is not None:
            await self.own.keep(key, known)
        return known

    async def keep(self, key: str, outcome: CheckOutcome) -> None:
        """Keep a result at both levels."""
        await self.own.keep(key, outcome)
        await self.shared.keep(key, outcome)
