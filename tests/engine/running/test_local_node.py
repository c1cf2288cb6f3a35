"""This process as a node: what is left of it when it ends, and which of the others it forgets."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from msgspec.structs import replace

from handrail.domain.fleet.node import KEPT_MS, NodeCard, NodeState
from handrail.engine.fleet.node import LocalNode
from handrail.engine.fleet.node_table import pause_node
from handrail.storage.memory_nodes import MemoryNodes
from virtual_time import in_virtual_time

ADA = "person:ada"


class Idle:
    """A worker with nothing to do."""

    project = "prj_a"
    labels = ("gpu",)

    def working_on(self) -> Collection[str]:
        return ()


def card(name: str) -> NodeCard:
    return NodeCard(id=name, name="box", kind="worker", version="1", lease_ms=3_000)


def test_a_node_that_ends_is_gone_unless_it_is_paused_and_then_starts_paused() -> None:
    table, idle = MemoryNodes(), Idle()

    async def scene() -> tuple[int, NodeState, bool, str, int]:
        node = LocalNode(table, card("n-1"))
        await node.join(idle)
        await node.leave(idle)
        gone = len(await table.all())
        await node.join(idle)
        await pause_node(table, "n-1", actor=ADA, is_paused=True)
        await node.leave(idle)  # it has not heard yet that it is paused
        (down,) = await table.all()
        again = LocalNode(table, card("n-1"))
        await again.join(idle)
        is_taking, paused_by = again.is_taking, again.paused_by
        await again.leave(idle)
        await pause_node(table, "n-1", actor=ADA, is_paused=False)
        return gone, down.state, is_taking, paused_by, len(await table.all())

    assert in_virtual_time(scene) == (0, NodeState.DOWN, False, ADA, 0)


def test_a_worker_that_could_not_join_its_node_can_leave_it() -> None:
    async def scene() -> int:
        node, first = LocalNode(MemoryNodes(), card("n-1")), Idle()
        await node.join(first)
        await node.leave(Idle())  # the store did not answer when it was to join
        left = len(node.workers)
        await node.leave(first)
        return left

    assert in_virtual_time(scene) == 1


def test_a_node_forgets_those_that_were_lost_long_ago_and_keeps_their_pauses() -> None:
    table = MemoryNodes()

    async def scene() -> list[str]:
        for name in ("n-2", "n-3", "n-4"):
            await table.put(card(name))
        await table.pause("n-3", ADA)
        for name in ("n-2", "n-3"):
            table._nodes[name] = replace(table._nodes[name], silent_ms=KEPT_MS + 1)
        node = LocalNode(table, card("n-1"))
        await node.join(Idle())
        await asyncio.sleep(10)
        return [one.card.id for one in await table.all()]

    assert in_virtual_time(scene) == ["n-1", "n-3", "n-4"]
