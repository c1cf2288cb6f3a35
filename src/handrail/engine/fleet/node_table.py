"""The nodes of a store, as a protocol, and how a person pauses one. What a node is: domain/fleet/node.py."""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from handrail.domain.errors import NotFound
from handrail.domain.fleet.node import FleetNode, NodeCard, required
from handrail.domain.policy.act import Act
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import require_allowed


class NodeTable(Protocol):
    """The nodes of a store."""

    async def put(self, card: NodeCard) -> str:
        """Record a beat of a node, and what it says of itself; returns who has paused it, if anybody has."""
        ...

    async def all(self) -> list[FleetNode]:
        """All nodes by id, those too that were lost not long ago, or have ended and are paused."""
        ...

    async def pause(self, node: str, by: str) -> bool:
        """Note who paused a node, or with an empty name that it may work again; whether there is such a node."""
        ...

    async def drop(self, node: str) -> None:
        """Remove a node that has ended."""
        ...


async def pause_node(table: NodeTable, asked: str, *, actor: str, is_paused: bool) -> FleetNode:
    """Let a node take no more runs, or take them again; the node as it is then. Runs in progress continue."""
    require_allowed(may(actor, Act.PAUSE_NODE))
    node = required(await table.all(), asked)
    if not await table.pause(node.card.id, actor if is_paused else ""):
        raise NotFound(f"the node {node.card.id} has ended meanwhile", hint="`handrail nodes` lists all")
    if node.card.has_ended and not is_paused:
        await table.drop(node.card.id)  # it was listed for its pause only
    return replace(node, paused_by=actor if is_paused else "")
