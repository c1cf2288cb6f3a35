"""The nodes of a store in memory: for tests, and for a store that does not exist yet. There is no clock: all are up."""

from __future__ import annotations

from msgspec.structs import replace

from handrail.domain.fleet.node import FleetNode, NodeCard


class MemoryNodes:
    """Who works on this store."""

    def __init__(self) -> None:
        self._nodes: dict[str, FleetNode] = {}

    async def put(self, card: NodeCard) -> str:
        """Record a beat of a node; returns who has paused it, if anybody has."""
        known = self._nodes.get(card.id)
        beat, paused_by = (known.beat + 1, known.paused_by) if known else (1, "")
        self._nodes[card.id] = FleetNode(card=card, beat=beat, silent_ms=0, paused_by=paused_by)
        return paused_by

    async def all(self) -> list[FleetNode]:
        """All nodes by id."""
        return [one for _, one in sorted(self._nodes.items())]

    async def pause(self, node: str, by: str) -> bool:
        """Note who paused a node, or with an empty name that it may work again; whether there is such a node."""
        if node in self._nodes:
            self._nodes[node] = replace(self._nodes[node], paused_by=by)
        return node in self._nodes

    async def drop(self, node: str) -> None:
        """Remove a node that has ended."""
        self._nodes.pop(node, None)
