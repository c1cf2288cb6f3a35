"""A cache in Redis or Valkey. Imported only if the settings name one; its library is the extra `redis`.

A server that does not answer is asked again only after a pause: no check waits for it twice."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from handrail.foundation.address_text import without_password

VALUE_BYTES_MAX: Final = 1_000_000
ANSWER_S: Final = 0.5
PAUSE_S: Final = 30.0
SCANNED: Final = 1_000

Result = TypeVar("Result")

log = logging.getLogger(__name__)


class RedisCache:
    """Values under names with a prefix, each for a limited time."""

    def __init__(self, address: str, *, prefix: str, keep_s: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Connects when it is first asked."""
        self.address = without_password(address)
        self._prefix, self._keep_s, self._clock = prefix, keep_s, clock
        # Its blocking client, in threads: it belongs to no event loop, and needs no closing.
        self._client: Redis = Redis.from_url(
            address,
            socket_timeout=ANSWER_S,
            socket_connect_timeout=ANSWER_S,
            retry=Retry(NoBackoff(), 0),
        )
        self._not_before = 0.0

    async def get(self, name: str) -> bytes | None:
        """What is kept under a name."""
        # A range, so that no value, of whatever size, fills the memory.
        found = await self._asked(lambda one: one.getrange(self._prefix + name, 0, VALUE_BYTES_MAX))
        return found or None

    async def put(self, name: str, value: bytes) -> None:
        """Keep a value, unless it is too large."""
        if len(value) <= VALUE_BYTES_MAX:
            await self._asked(lambda one: one.set(self._prefix + name, value, ex=self._keep_s))

    async def clear(self) -> int:
        """Remove all values with the prefix."""
        return await self._asked(self._clear) or 0

    async def entries(self) -> int | None:
        """How many values have the prefix."""
        return await self._asked(lambda one: sum(1 for _ in one.scan_iter(f"{self._prefix}*", count=SCANNED)))

    def _clear(self, client: Any) -> int:
        return sum(client.delete(name) for name in client.scan_iter(f"{self._prefix}*", count=SCANNED))

    async def _asked(self, ask: Callable[[Any], Result]) -> Result | None:
        """What the server answers; None if it does not, or did not a moment ago."""
        if self._clock() < self._not_before:
            return None
        try:
            return await asyncio.to_thread(ask, self._client)
        except (RedisError, OSError) as error:
            self._not_before = self._clock() + PAUSE_S
            log.warning("the shared cache at %s is left alone for %g s: %s", self.address, PAUSE_S, error)
            return None
