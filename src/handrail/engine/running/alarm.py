"""An alarm: one callback at one future time, which setting it again replaces; and something done again and again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from handrail.domain.errors import HandrailError

log = logging.getLogger(__name__)


class Alarm:
    """At most one pending callback of the event loop."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        """Whether it was set and not cleared since."""
        return self._handle is not None

    def set(self, delay_s: float, ring: Callable[[], None]) -> None:
        """Call back after the delay, instead of at any earlier setting."""
        self.clear()
        self._handle = asyncio.get_running_loop().call_later(delay_s, ring)

    def clear(self) -> None:
        """Cancel the callback."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


async def repeat(do: Callable[[], Awaitable[None]], poke: asyncio.Event, every_s: float) -> None:
    """Do something at intervals, or at once when poked."""
    while True:
        poke.clear()
        try:
            await do()
        except HandrailError as error:
            log.warning("%s; retrying", error)
        except Exception:  # whatever goes wrong, the worker continues
            log.exception("unexpected error in the worker; retrying")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(every_s):  # wait_for loses a cancellation that arrives together with a poke
                await poke.wait()
