"""A session: settings, logs and the SDK's server, from when the heavy part is wanted until the client is done.

Imported only after the first answers are given. What a server is made of is told in serving.py, not here."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final

from mcp.server.lowlevel.server import Server

from handrail.interfaces.mcp.stdio.arguments import Options
from handrail.interfaces.mcp.stdio.front import Ending, Front
from handrail.interfaces.mcp.stdio.handover import hand_over
from handrail.interfaces.mcp.stdio.recording import record
from handrail.interfaces.mcp.stdio.signals import heed_signals
from handrail.interfaces.mcp.stdio.snapshot import Snapshot
from handrail.logs import start_logging
from handrail.settings import Settings, read_settings

QUIET_S: Final = 0.3
"""How long nothing may be asked before the snapshot is taken."""
LAST_S: Final = 2.0
"""How long the end may be put off for a snapshot."""

Served = Callable[[Settings, Sequence[str]], AbstractAsyncContextManager[Server[Any]]]
log = logging.getLogger(__name__)


def serve(front: Front, options: Options, unrecorded: Snapshot | None, served: Served) -> None:
    """Serve the front's client to the end; take a snapshot of what has none."""
    settings = read_settings(options.flags, os.environ)
    start_logging(settings.home / "logs", level=settings.choices.log_level, days=settings.choices.log_days)
    # What lists show may then depend on files that the front does not look at: it has to wait for the SDK.
    camera = unrecorded if not settings.choices.library else None
    asyncio.run(_session(front, camera, served(settings, options.toolsets)))


async def _session(
    front: Front, unrecorded: Snapshot | None, opening: AbstractAsyncContextManager[Server[Any]]
) -> None:
    loop = asyncio.get_running_loop()

    def end() -> None:
        with suppress(RuntimeError):  # the loop has ended, and so does the process
            loop.call_soon_threadsafe(front.end, Ending.SIGNAL)

    heed_signals(end)
    async with opening as server:
        camera = Camera(server, unrecorded, front)
        await hand_over(server, front, camera.take_in_a_quiet_moment)
        if front.ending is Ending.CLIENT_IS_DONE:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_S):
                    await camera.take()


class Camera:
    """Takes one snapshot, if there is none yet."""

    def __init__(self, server: Server[Any], snapshot: Snapshot | None, front: Front) -> None:
        self._server, self._snapshot, self._front = server, snapshot, front

    async def take_in_a_quiet_moment(self) -> None:
        """Take it when nobody waits for an answer."""
        while self._snapshot is not None:
            await asyncio.sleep(QUIET_S)
            if self._front.is_idle:
                await self.take()

    async def take(self) -> None:
        """Take it now, giving way between two questions."""
        if self._snapshot is None:
            return
        snapshot = self._snapshot
        try:
            answers = await record(self._server, lambda: asyncio.sleep(0))
            self._snapshot = None
            kept = snapshot.save(answers)
        except (OSError, TimeoutError) as error:  # the next start is slower, and that is all
            self._snapshot = None
            log.info("no snapshot was kept: %s", error)
        else:
            log.debug("snapshot of %d answers: %s", len(answers), "kept" if kept else "not kept")
