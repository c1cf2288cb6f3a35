"""Idempotency keys: the same key with the same request is answered as before; with another request it is a conflict.

Kept in memory, for a while: a start is also kept in the journal under its key (domain/run/command.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from handrail.domain.errors import Conflict, Invalid
from handrail.foundation.bounded_cache import BoundedCache

KEPT_BYTES: Final = 8 * 1_024 * 1_024
KEY_LENGTH_MAX: Final = 200
OVERHEAD: Final = 500


class KeptAnswer(Struct, frozen=True):
    """An answer as it was sent."""

    status: int
    body: bytes
    media_type: str


@dataclass
class _Kept:
    request: bytes
    answer: asyncio.Future[KeptAnswer]


@dataclass
class IdempotentAnswers:
    """The answers of the latest writes, by their keys."""

    _kept: BoundedCache[tuple[Hashable, str], _Kept] = field(default_factory=lambda: BoundedCache(KEPT_BYTES))

    async def once(
        self, key: str, who: Hashable, request: bytes, make: Callable[[], Awaitable[KeptAnswer]]
    ) -> tuple[KeptAnswer, bool]:
        """The answer to a request, and whether it was given before; a failure is not kept.

        `who` asks, and where: the same key of somebody else, or in another project, is another key."""
        if len(key) > KEY_LENGTH_MAX or not key.isprintable():
            raise Invalid("the idempotency key is too long", hint=f"give at most {KEY_LENGTH_MAX} characters")
        place = (who, key)
        known = self._kept.get(place)
        if known is not None:
            if known.request != request:
                raise Conflict("this key was used for another request", hint="use a new key for a new request")
            # Shielded: a client that leaves must not take the answer from the others.
            return await asyncio.shield(known.answer), True
        answer: asyncio.Future[KeptAnswer] = asyncio.get_running_loop().create_future()
        self._kept.put(place, _Kept(request, answer), weight=OVERHEAD)
        try:
            made = await make()
        except BaseException as error:
            self._kept.pop(place)
            _fail(answer, error)
            raise
        answer.set_result(made)
        # What failed on our side may work the next time.
        if made.status >= 500:
            self._kept.pop(place)
        elif self._kept.get(place) is not None:
            self._kept.put(place, _Kept(request, answer), weight=OVERHEAD + len(made.body))
        return made, False


def _fail(answer: asyncio.Future[KeptAnswer], error: BaseException) -> None:
    """Let those who wait for the same answer try again themselves."""
    answer.set_exception(error if isinstance(error, Exception) else Conflict("the first request was cut off"))
    answer.exception()  # read once, so that asyncio does not report it as forgotten
