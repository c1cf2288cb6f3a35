"""The node that this process is: it beats, says what it works on, and says how many more runs its workers may take.

Async. One node has a worker for each project that it serves; they share its slots (domain/fleet/node.py).
A beat that fails is tried again with the next one: the leases decide who may work, never this."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec.structs import replace

from handrail.domain.errors import HandrailError
from handrail.domain.fleet.node import RUNS_SHOWN, FleetNode, NodeCard, fair_room, share_of
from handrail.engine.fleet.node_table import NodeTable

HAS_MAX: Final = 500
FORGOTTEN_MAX: Final = 100
WANTS_S: Final = 2.0
"""For how long a project that found no slot counts as one that wants some."""

log = logging.getLogger(__name__)


class NodeWorker(Protocol):
    """What a node needs to know of its workers."""

    @property
    def project(self) -> str:
        """The project that it serves."""
        ...

    @property
    def labels(self) -> Collection[str]:
        """What it has for the steps of its project."""
        ...

    def working_on(self) -> Collection[str]:
        """The runs that it is working on right now: not those that only wait for a time."""
        ...


@dataclass
class LocalNode:
    """This process as a node. It beats from the first worker that joins to the last that leaves."""

    table: NodeTable
    card: NodeCard
    workers: list[NodeWorker] = field(default_factory=list)
    paused_by: str = ""
    others: Sequence[FleetNode] = ()
    """The nodes as of the last beat, this one included."""
    _wants: dict[str, float] = field(default_factory=dict)
    """By project: when it last found no slot."""
    _task: asyncio.Task[None] | None = None

    async def join(self, worker: NodeWorker) -> None:
        """Serve one more project."""
        self.workers.append(worker)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._keep_beating())
        await self.beat()

    async def leave(self, worker: NodeWorker) -> None:
        """Serve a project no longer."""
        if worker not in self.workers:
            return  # the store did not answer when it was to join
        self.workers.remove(worker)
        if self.workers or self._task is None:
            return
        self._task.cancel()
        # Its last beat must be over before the node is removed, or it would appear again.
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None
        with contextlib.suppress(HandrailError):  # then it is listed as lost
            # A pause is of the node, not of this process: it has to be there when the node starts again.
            if not await self.table.put(replace(self.present(), has_ended=True)):
                await self.table.drop(self.card.id)

    async def drain(self) -> None:
        """Take nothing more, and let everybody see that."""
        self.card = replace(self.card, is_draining=True)
        await self.beat()

    async def beat(self) -> None:
        """Say what this node does, and look who else is there."""
        try:
            self.paused_by = await self.table.put(self.present())
            self.others = await self.table.all()
            for one in [one for one in self.others if one.is_forgotten][:FORGOTTEN_MAX]:
                await self.table.drop(one.card.id)
        except HandrailError as error:
            log.warning("the beat of node %s: %s; retrying", self.card.id, error)

    def present(self) -> NodeCard:
        """What this node says of itself now."""
        runs = sorted({run for worker in self.workers for run in worker.working_on()})
        projects = tuple(sorted({worker.project for worker in self.workers}))
        has = tuple(sorted({label for worker in self.workers for label in worker.labels} - set(self.card.labels)))
        return replace(self.card, used=len(runs), runs=tuple(runs[:RUNS_SHOWN]), projects=projects, has=has[:HAS_MAX])

    @property
    def is_taking(self) -> bool:
        """Whether this node takes runs at all."""
        return not self.paused_by and not self.card.is_draining

    def room(self, project: str) -> int | None:
        """How many more runs of a project this node may take now; None: as many as there are."""
        if not self.is_taking:
            return 0
        if not self.card.slots:
            return None
        now_s = asyncio.get_running_loop().time()
        # Only those that found too little of late: a project without ready runs must not hold slots empty.
        rivals = sum(1 for one, since_s in self._wants.items() if one != project and now_s - since_s < WANTS_S)
        own = sum(len(worker.working_on()) for worker in self.workers if worker.project == project)
        used = sum(len(worker.working_on()) for worker in self.workers)
        return fair_room(slots=self.card.slots, used=used, own=own, rivals=rivals)

    def share(self, project: str, ready: int) -> int:
        """How many of so many ready runs of a project to take now: its room, and what other nodes leave to this one."""
        # Without this, the node that looks first takes all there is, and the others have nothing to do.
        takers = [one for one in self.others if one.is_taking and project in one.card.projects]
        fair = share_of(ready, len({one.card.id for one in takers} | {self.card.id}))
        room = self.room(project)
        if room is not None and room < ready:
            self._wants[project] = asyncio.get_running_loop().time()
        else:
            self._wants.pop(project, None)
        return fair if room is None else min(room, fair)

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self.card.lease_ms / 3_000)
            await self.beat()
