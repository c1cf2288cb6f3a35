"""The nodes of a store for readers: who is up and does what, and how many runs wait for a node, by what they need.

Async; nothing is written. What a node is: domain/fleet/node.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from handrail.domain.fleet.label import is_met
from handrail.domain.fleet.node import FleetNode, NodeState, Waiting
from handrail.engine.fleet.node_table import NodeTable
from handrail.engine.reading.step_view import Shown
from handrail.engine.running.lease import Leases

IsSettled: TypeAlias = Callable[[str], Awaitable[bool]]

COUNTED_MAX: Final = 100_000
PAGE: Final = 1_000


class NodeView(Shown, frozen=True):
    """One node."""

    id: str
    name: str
    """The one that it was admitted by; else of its machine."""
    machine: str
    kind: str
    state: NodeState
    version: str
    labels: tuple[str, ...] = ()
    slots: int = 0
    """0: as many as come."""
    used: int = 0
    runs: tuple[str, ...] = ()
    """The runs that it works on right now, at most 100."""
    projects: tuple[str, ...] = ()
    beats: int = 0
    beat_ms: int = 0
    """How long ago its last beat was; what others ask of it, it hears with the next."""
    paused_by: str = ""


class NodesView(Shown, frozen=True):
    """All nodes, and what waits for one."""

    nodes: tuple[NodeView, ...] = ()
    waiting: int = 0
    """Runs that are ready and that no node has taken."""
    by_label: tuple[Waiting, ...] = ()
    """The same by what they need: what to start more of."""


class FleetStore(Leases, Protocol):
    """What a reader of nodes needs of a store."""

    def nodes(self) -> NodeTable:
        """Who works on this store."""
        ...


@dataclass(frozen=True)
class NodeReader:
    """Reads who works on a store."""

    store: FleetStore
    is_settled: IsSettled | None = None
    """Whether a run waits for somebody: for a store that does not know it itself."""

    async def all(self, *, now: int) -> NodesView:
        """All nodes, and what waits."""
        nodes = await self.store.nodes().all()
        waiting = await self._waiting(nodes, now)
        return NodesView(
            nodes=tuple(node_view(one) for one in nodes), waiting=sum(one.runs for one in waiting), by_label=waiting
        )

    async def _waiting(self, nodes: list[FleetNode], now: int) -> tuple[Waiting, ...]:
        counts: Counter[str] = Counter()
        after = ""
        while page := await self.store.lease_holders(after=after, limit=PAGE, is_awake=True, now=now):
            # What a node that was lost still holds is not counted: another one takes it over, with the room it has.
            free = [one for one in page if not one.owner]
            if self.is_settled is not None:
                free = [one for one in free if not await self.is_settled(one.run)]
            counts.update(one.needs for one in free)
            after = page[-1].run
            if counts.total() >= COUNTED_MAX:
                break
        up = [one for one in nodes if one.state is NodeState.UP]
        return tuple(
            Waiting(needs=needs, runs=runs, nodes=sum(is_met(needs, (*one.card.labels, *one.card.has)) for one in up))
            for needs, runs in sorted(counts.items())
        )


def node_view(node: FleetNode) -> NodeView:
    """One node as readers see it."""
    card = node.card
    return NodeView(
        id=card.id,
        name=card.admitted or card.name,
        machine=card.name,
        kind=card.kind,
        state=node.state,
        version=card.version,
        labels=card.labels,
        slots=card.slots,
        used=card.used,
        runs=card.runs,
        projects=card.projects,
        beats=node.beat,
        beat_ms=node.silent_ms,
        paused_by=node.paused_by,
    )
