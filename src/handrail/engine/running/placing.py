"""Placing: asks the host for nodes, at once for what has just changed, and by the sweep for what it has lost.

Async. A host that is slow or down never holds up who asks: the run is in the journal, and is asked for again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from handrail.domain.errors import HandrailError
from handrail.domain.run.state import Run
from handrail.engine.dispatch import Dispatch
from handrail.engine.running.host import Conduct, Host, Room, Wake
from handrail.engine.running.lease import LeaseHolder
from handrail.engine.running.sweep import Sweep

WAKES_MAX: Final = 1_000
"""How many wakes may be on their way to the host at once; the sweep finds the others."""
AT_ONCE: Final = 32
"""How many of them are sent at once: a host that is asked for hundreds of runs in one moment answers none in time."""
SWEPT_MAX: Final = 5_000
"""How many runs without a node one sweep looks at, the oldest first: behind a long queue nothing is gained by more."""
RETRY_S: Final = 1.0

log = logging.getLogger(__name__)


class Placing:
    """What a worker asks of its host, and what it conducts for it."""

    def __init__(self, host: Host, dispatch: Dispatch, conduct: Conduct, room: Room) -> None:
        self.host = host
        self.dispatch = dispatch
        self.conduct = conduct
        self.room = room
        self._sweep = Sweep()
        self._asking: set[asyncio.Task[None]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closing = False
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._is_failing = False
        """Whether the host could not be asked the last time."""

    def open(self) -> None:
        """Take what the host places here."""
        self._tasks.append(asyncio.get_running_loop().create_task(self._serve()))

    async def close(self) -> None:
        """Take nothing more; ends when everything that was placed here has ended."""
        self._is_closing = True
        # Wakes on their way are let through: a run that was just handed over would otherwise wait for the next sweep.
        await asyncio.gather(*self._asking, return_exceptions=True)
        await self.host.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self) -> None:
        """Serve until this is closed; while the host is down, try again from time to time."""
        while not self._is_closing:
            try:
                await self.host.serve(self.conduct, self.room)
            except HandrailError as error:
                log.warning("nothing is placed on this node now: %s", error)
            except Exception:  # whatever the host's library raises, the node goes on
                log.exception("nothing is placed on this node now")
            await asyncio.sleep(RETRY_S)

    def ask(self, run: Run, *, again: int = 0, needs: str = "") -> None:
        """Ask for a node for this run, beside what else is done."""
        if len(self._asking) < WAKES_MAX:
            task = asyncio.get_running_loop().create_task(self._ask(run, again, needs))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        else:
            self._sweep.failed(run.id, now_s=asyncio.get_running_loop().time())

    async def sweep(self, free: Sequence[LeaseHolder]) -> None:
        """Ask again for those of the runs without a node that have had none for a while; this node could do them."""
        for needs in sorted({one.needs for one in free if one.needs}):
            self.host.offer(needs)
        for one, again in self._sweep.overdue(free, now_s=asyncio.get_running_loop().time()):
            self.ask(await self.dispatch.current(one.run), again=again, needs=one.needs)

    async def _ask(self, run: Run, again: int, needs: str) -> None:
        wake = Wake(
            run=run.id,
            n=run.n,
            project=run.project,
            workflow=run.workflow,
            status=run.status.value,
            priority=run.priority,
            needs=needs,
            again=again,
        )
        async with self._turns:
            if self._is_closing and self._is_failing:
                return  # the others would fail one after the other, and this node would not end
            has_asked = await self._has_asked(wake)
            self._is_failing = not has_asked
        if not has_asked:
            self._sweep.failed(run.id, now_s=asyncio.get_running_loop().time())

    async def _has_asked(self, wake: Wake) -> bool:
        try:
            await self.host.wake(wake)
        except HandrailError as error:
            log.warning("run %s waits until it can be placed: %s", wake.run, error)
            return False
        except Exception:  # whatever the host's library raises, the sweep asks again
            log.exception("run %s can't be placed now", wake.run)
            return False
        return True
