"""What every store promises about nodes: who beat last, what it said, and who paused it."""

from __future__ import annotations

from handrail.domain.fleet.node import NodeCard, NodeState
from handrail.engine.running.lease import Lease
from storage.conformance import Store
from storage.stories import Story


def card(node: str, **said: object) -> NodeCard:
    return NodeCard(id=node, name="box", kind="worker", version="1", **said)  # type: ignore[arg-type]


async def test_a_node_is_listed_with_what_it_last_said_until_it_ends(store: Store) -> None:
    nodes = store.nodes()
    assert await nodes.all() == []
    await nodes.put(card("n-b", labels=("gpu",), slots=4))
    await nodes.put(card("n-a"))
    await nodes.put(card("n-b", labels=("gpu", "\N{SNOWMAN}"), slots=4, used=2, runs=("run_x",), projects=("prj_a",)))
    first, second = await nodes.all()
    assert first.card == card("n-a")
    assert (first.beat, second.beat) == (1, 2)
    assert second.card.labels == ("gpu", "\N{SNOWMAN}")
    assert second.card.used == 2
    assert 0 <= second.silent_ms < 60_000
    assert second.state is NodeState.UP
    await nodes.drop("n-b")
    await nodes.drop("n-b")
    assert [one.card.id for one in await nodes.all()] == ["n-a"]


async def test_a_pause_stays_until_it_is_ended_and_the_node_hears_it_with_its_beat(store: Store) -> None:
    nodes = store.nodes()
    assert not await nodes.pause("n-a", "person:ada")
    assert await nodes.put(card("n-a")) == ""
    assert await nodes.pause("n-a", "person:ada")
    assert await nodes.put(card("n-a")) == "person:ada"
    (one,) = await nodes.all()
    assert (one.state, one.paused_by) == (NodeState.PAUSED, "person:ada")
    assert await nodes.pause("n-a", "")
    assert await nodes.put(card("n-a")) == ""


async def test_a_run_that_is_handed_over_needs_its_labels_until_its_next_event(store: Store) -> None:
    story = Story("run_a")
    lease = Lease("run_a", "worker-ada")
    await store.append(*story.tell(), lease=lease)
    await store.hand_over(Lease("run_a", "worker-bob"), n=1, needs="mac")  # not his
    await store.hand_over(lease, n=1, needs="gpu,linux|mac")
    (free,) = await store.lease_holders(is_awake=True)
    assert (free.owner, free.needs) == ("", "gpu,linux|mac")
    assert await store.lease_holder("run_a") == free
    (taken,) = await store.claim("worker-bob", [free])
    await store.release([taken])  # it was not the last word: nothing has happened
    (free,) = await store.lease_holders(project=None)
    assert free.needs == "gpu,linux|mac"
    await store.append(*story.tell())
    (changed,) = await store.lease_holders()
    assert (changed.n, changed.needs) == (2, "")
