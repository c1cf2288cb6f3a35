"""A session: settings, logs and the SDK's server, from the moment the SDK is needed until the client has left.

Imported only after the first answers. The server itself is built in serving.py."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final

from mcp.server.lowlevel.server import Server

from handrail.domain.metrics.cache_catalog import AGENT_ANSWERS
from handrail.foundation.cache_use import use_of
from handrail.interfaces.mcp.stdio.arguments import Options
from handrail.interfaces.mcp.stdio.front import Ending, Front
from handrail.interfaces.mcp.stdio.recording import record
from handrail.interfaces.mcp.stdio.sdk_bridge import run_server
from handrail.interfaces.mcp.stdio.signals import handle_signals
from handrail.interfaces.mcp.stdio.snapshot_file import SnapshotFile
from handrail.logs import start_logging
from handrail.settings import Settings, read_settings

QUIET_S: Final = 0.3
"""How long to wait before each look whether the client is idle, so that a snapshot can be taken."""
LAST_S: Final = 2.0
"""How long a snapshot may delay the exit."""

OpenServer = Callable[[Settings, Sequence[str]], AbstractAsyncContextManager[Server[Any]]]
log = logging.getLogger(__name__)


def serve(front: Front, options: Options, unrecorded: SnapshotFile | None, open_server: OpenServer) -> None:
    """Serve the front's client until it leaves; take a snapshot if none exists yet."""
    settings = read_settings(options.flags, os.environ)
    start_logging(settings.home / "logs", level=settings.choices.log_level, days=settings.choices.log_days)
    use = use_of(AGENT_ANSWERS)
    (use.missed if unrecorded is not None else use.hit)()
    # With more library folders, lists depend on files that the snapshot's stamp doesn't cover: take no snapshot.
    file = unrecorded if not settings.choices.library else None
    asyncio.run(_session(front, file, open_server(settings, options.toolsets)))


async def _session(
    front: Front, unrecorded: SnapshotFile | None, opening: AbstractAsyncContextManager[Server[Any]]
) -> None:
    loop = asyncio.get_running_loop()

    def end() -> None:
        with suppress(RuntimeError):  # the loop is closed: the process is about to exit anyway
            loop.call_soon_threadsafe(front.end, Ending.SIGNAL)

    handle_signals(end)
    async with opening as server:
        taker = SnapshotTaker(server, unrecorded, front)
        await run_server(server, front, taker.take_when_idle)
        if front.ending is Ending.CLIENT_IS_DONE:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_S):
                    await taker.take()


class SnapshotTaker:
    """Takes one snapshot, if none exists yet."""

    def __init__(self, server: Server[Any], file: SnapshotFile | None, front: Front) -> None:
        self._server, self._file, self._front = server, file, front

    async def take_when_idle(self) -> None:
        """Take it when no request waits for an answer."""
        while self._file is not None:
            await asyncio.sleep(QUIET_S)
            if self._front.is_idle:
                await self.take()

    async def take(self) -> None:
        """Take it now; other tasks may run between two questions."""
        if self._file is None:
            return
        file = self._file
        try:
            answers = await record(self._server, lambda: asyncio.sleep(0))
            self._file = None
            saved = file.save(answers)
        except (OSError, TimeoutError) as error:  # without a snapshot the next start is only slower
            self._file = None
            log.info("no snapshot was saved: %s", error)
        else:
            log.debug("snapshot of %d answers: %s", len(answers), "saved" if saved else "not saved")
