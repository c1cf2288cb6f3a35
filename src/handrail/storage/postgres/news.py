"""News: a notification that something was written, beside the appends, and a call for everyone that listens.

NOTIFY inside an append would make all commits wait for each other, so that it is sent behind them, one for many. It is
only a hint: it may be lost, and through a pooler there is no listening; so everyone also looks from time to time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from handrail.domain.errors import HandrailError
from handrail.engine.clock import new_id, system_entropy
from handrail.storage.postgres.connections import Connections
from handrail.storage.postgres.faults import BELOW

CHANNEL: Final = "handrail"
GATHER_S: Final = 0.1
"""How far apart notifications are at least; the first after a pause is sent at once."""
REST_S: Final = 0.02
"""How long those that listen are left alone after a call."""
CHECK_S: Final = 15.0
"""How often the connection that listens is tried: a network can be gone without a sign."""

TELL: Final = "begin; set local synchronous_commit = off; notify handrail, '{}'; commit"
"""Tell others; nothing has to be synced for that."""

log = logging.getLogger(__name__)


class News:
    """Tells others, and hears from them."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._name = new_id("", system_entropy)
        self._listeners: dict[object, Callable[[], None]] = {}
        self._telling: asyncio.Task[None] | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._heard = asyncio.Event()
        self._notified_s = float("-inf")

    def wrote(self) -> None:
        """Something was written: tell others soon."""
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Call something when others have written; returns how to stop that."""
        token = object()
        self._listeners[token] = heard
        # A pooler gives the connection to others after each transaction: notifications would never arrive.
        if not self._connections.is_pooled and (self._hearing is None or self._hearing.done()):
            self._hearing = asyncio.get_running_loop().create_task(self._hear())
        return lambda: self._stop(token)

    async def close(self) -> None:
        """Stop listening."""
        tasks = [task for task in (self._telling, self._hearing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _stop(self, token: object) -> None:
        self._listeners.pop(token, None)
        if not self._listeners and self._hearing is not None:
            self._hearing.cancel()
            self._hearing = None

    async def _tell(self) -> None:
        loop = asyncio.get_running_loop()
        # NOTIFY takes a lock over the whole database at commit: one for each append would put all nodes in a queue.
        await asyncio.sleep(max(0.0, self._notified_s + GATHER_S - loop.time()))
        self._notified_s = loop.time()
        try:
            async with self._connections.reading() as connection:
                await connection.execute(TELL.format(self._name))
        except (HandrailError, *BELOW) as error:
            log.debug("others were not notified: %s", error)  # they look from time to time

    async def _hear(self) -> None:
        """Listen until the store is closed, on a connection of its own; a lost one is replaced."""
        while True:
            try:
                connection = await self._connections.connect()
            except HandrailError as error:
                log.debug("can't listen: %s", error)
                await asyncio.sleep(1)
                continue
            try:
                await connection.add_listener(CHANNEL, self._notice)
                self._call()  # something may have happened before
                while not connection.is_closed():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(CHECK_S):
                            await self._heard.wait()
                    # A network that drops packets looks like silence; this query fails then, and the connection is
                    # replaced.
                    if not self._heard.is_set():
                        await connection.execute("select 1")
                    self._heard.clear()
                    self._call()
                    await asyncio.sleep(REST_S)
            except BELOW as error:
                log.debug("no longer listening: %s", error)
            finally:
                connection.terminate()

    def _notice(self, _connection: object, _process: int, _channel: str, teller: object) -> None:
        # Our own appends are known here already.
        if teller != self._name:
            self._heard.set()

    def _call(self) -> None:
        for heard in list(self._listeners.values()):
            heard()
