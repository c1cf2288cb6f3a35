"""The pulse of something that is done again and again: when it last worked, and why it does not now.

It only remembers: what goes wrong is raised to the caller as before. Who judges it: domain/health/judgement.py."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from handrail.domain.errors import HandrailError, Unavailable


@dataclass
class Pulse:
    """When it last worked, and what is wrong."""

    last_s: float | None = None
    """By the loop's clock; None if it never worked."""
    failing_s: float | None = None
    """Since when it does not work."""
    problem: HandrailError | None = None

    async def around(self, work: Awaitable[None]) -> None:
        """Do it, and remember how it went."""
        try:
            await work
        except HandrailError as error:
            self._note(error)
            raise
        except Exception as error:
            self._note(Unavailable(f"unexpected error: {type(error).__name__}", hint="see `handrail logs`"))
            raise
        self.last_s, self.failing_s, self.problem = _now_s(), None, None

    @property
    def age_ms(self) -> int:
        """How long it does not work, or how long ago it last worked; 0 before the first time."""
        since_s = self.failing_s if self.failing_s is not None else self.last_s
        return 0 if since_s is None else max(0, int((_now_s() - since_s) * 1_000))

    def _note(self, problem: HandrailError) -> None:
        self.problem = problem
        self.failing_s = _now_s() if self.failing_s is None else self.failing_s


def _now_s() -> float:
    return asyncio.get_running_loop().time()
