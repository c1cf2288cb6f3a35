"""A host that loses things: a wake is refused, forgotten, late or double; a stretch on a dead node is noticed or not.

It is outside of all processes, as a real one. Once all is calm it loses nothing any more; but what it has lost by then,
only the sweep of the nodes finds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

from handrail.domain.errors import HandrailError, Unavailable
from handrail.engine.running.host import Conduct, Reason, Rest, Room, Wake, wait_ms
from simulation.loop import Process
from simulation.outside import Outside

AGAIN_S: Final = 0.2
QUEUED_MAX: Final = 100
"""How often it looks for a node that serves a queue, before it gives up."""


class LossyHost:
    """The host, as it is out there."""

    def __init__(self, outside: Outside, *, lease_s: float, wall: Callable[[], int]) -> None:
        self.outside = outside
        self.lease_s = lease_s
        self.wall = wall
        self.nodes: list[HostedNode] = []

    @property
    def random(self) -> Random:
        """Where its moods come from."""
        return self.outside.random

    def is_lost(self, chance: float) -> bool:
        """Whether something gets lost now."""
        return not self.outside.is_calm and self.random.random() < chance

    def wake(self, wake: Wake) -> None:
        """Note that a run needs a node, or not."""
        if self.is_lost(0.1):
            raise Unavailable("the host is down")
        if self.is_lost(0.2):
            return
        for _ in range(2 if self.is_lost(0.2) else 1):
            self.place(wake.run, wake.needs, self.random.choice((0.0, 0.0, 0.05, 1.5)))

    def place(self, run: str, needs: str, after_s: float, tries: int = QUEUED_MAX) -> None:
        """Place a run after a while on some node that serves its queue."""
        self.outside.later(after_s, self._placed, run, needs, tries)

    def _placed(self, run: str, needs: str, tries: int) -> None:
        # It does not know that a node is dead before it has been silent for long.
        serving = [node for node in self.nodes if not needs or needs in node.offered]
        if serving:
            node = self.random.choice(serving)
            node.process.do(self._stretch(node, run, needs))
            self.outside.later(self.lease_s, self._look_after, node, run, needs)
        elif tries:
            self.place(run, needs, AGAIN_S, tries - 1)

    def _look_after(self, node: HostedNode, run: str, needs: str) -> None:
        if not node.process.is_dead:
            return
        if node in self.nodes:
            self.nodes.remove(node)
        if not self.is_lost(0.5):
            self.place(run, needs, 0.0)

    async def _stretch(self, node: HostedNode, run: str, needs: str) -> None:
        try:
            rest = await node.conduct(run)
        except HandrailError:
            self.place(run, needs, AGAIN_S)
            return
        self._rested(rest, needs)

    def _rested(self, rest: Rest, needs: str) -> None:
        if self.is_lost(0.1):
            return
        if rest.why is Reason.TIMER and rest.until is not None:
            self.place(rest.run, "", wait_ms(rest.until, self.wall()) / 1_000)
        if rest.why is Reason.HANDED_OVER:
            self.place(rest.run, needs, AGAIN_S)


class HostedNode:
    """The host as one process sees it."""

    def __init__(self, host: LossyHost, process: Process) -> None:
        self.host = host
        self.process = process
        self.offered: set[str] = set()
        self._conduct: Conduct | None = None

    async def wake(self, wake: Wake) -> None:
        """Ask for a node."""
        await self.process.port()
        self.host.wake(wake)

    async def conduct(self, run: str) -> Rest:
        """Execute a run that was placed here."""
        assert self._conduct is not None
        return await self._conduct(run)

    async def serve(self, conduct: Conduct, room: Room) -> None:
        """Be one of the nodes."""
        self._conduct = conduct
        self.host.nodes.append(self)
        await asyncio.Event().wait()

    def offer(self, needs: str) -> None:
        """Serve one more queue."""
        self.offered.add(needs)

    async def close(self) -> None:
        """Be none of the nodes any more."""
        if self in self.host.nodes:
            self.host.nodes.remove(self)
