"""Nodes and labels: who may take a run, who gets how many, and what a reader is told when nobody does."""

from __future__ import annotations

import pytest

from handrail.domain.errors import Invalid, Limited, NotFound
from handrail.domain.fleet.label import in_words, is_met, labels_of, needs_of
from handrail.domain.fleet.node import (
    KEPT_MS,
    FleetNode,
    NodeCard,
    NodeState,
    fair_room,
    required,
    share_of,
    wait_for,
)


def node(name: str, *, silent_ms: int = 0, paused_by: str = "", **said: object) -> FleetNode:
    card = NodeCard(id=name, name="box", kind="worker", version="1", projects=("prj_a",), **said)  # type: ignore[arg-type]
    return FleetNode(card=card, beat=1, silent_ms=silent_ms, paused_by=paused_by)


def test_labels_are_read_once_each_and_what_is_none_is_refused() -> None:
    assert labels_of(" gpu, linux,,gpu ") == ("gpu", "linux")
    for wrong in ("GPU", "server:x", "home:x", "a b", "-x", "x" * 41):
        with pytest.raises(Invalid, match="is not a label"):
            labels_of(wrong)
    with pytest.raises(Limited):
        labels_of(",".join(f"l{number}" for number in range(21)))


def test_a_run_goes_on_where_all_labels_of_one_of_its_alternatives_are() -> None:
    needs = needs_of([("gpu", "linux"), ("mac",), ()])
    assert needs == "gpu,linux|mac"
    assert is_met(needs, ("mac",))
    assert is_met(needs, ("linux", "gpu", "more"))
    assert not is_met(needs, ("gpu",))
    assert is_met("", ())
    assert in_words("gpu,server:docs|home:k") == "gpu and the tool server docs or what was stored for its undo"


def test_a_node_is_lost_when_its_beat_is_older_than_its_lease() -> None:
    assert node("a").state is NodeState.UP
    assert node("a", silent_ms=10_001).state is NodeState.LOST
    assert node("a", paused_by="person:ada").state is NodeState.PAUSED
    assert node("a", paused_by="person:ada", is_draining=True).state is NodeState.DRAINING
    assert node("a", paused_by="person:ada", has_ended=True, silent_ms=99_999).state is NodeState.DOWN


def test_a_lost_node_is_forgotten_after_a_while_but_not_its_pause() -> None:
    assert not node("a", silent_ms=KEPT_MS).is_forgotten
    assert node("a", silent_ms=KEPT_MS + 1).is_forgotten
    assert not node("a", silent_ms=KEPT_MS + 1, paused_by="person:ada").is_forgotten


def test_why_nobody_took_a_run_is_said_in_one_sentence() -> None:
    gpu = node("a", labels=("gpu",), slots=2, used=2)
    assert wait_for([], "prj_a", "") == "waits for a node that serves its project: none is up"
    assert wait_for([node("a")], "prj_a", "") == ""
    assert wait_for([node("a")], "prj_b", "") == "waits for a node that serves its project: none is up"
    assert wait_for([node("a")], "prj_a", "gpu") == "waits for a node with gpu: none is up"
    assert wait_for([node("a", labels=("gpu",), silent_ms=99_999)], "prj_a", "gpu").endswith("none is up")
    assert wait_for([gpu], "prj_a", "gpu") == "waits for a node with gpu: all slots are taken"
    paused = node("b", labels=("gpu",), paused_by="person:ada")
    assert wait_for([paused], "prj_a", "gpu") == "waits for a node with gpu: paused"
    assert wait_for([node("c", labels=("gpu",)), paused], "prj_a", "gpu") == "waits for a node with gpu"
    ended = node("b", labels=("gpu",), paused_by="person:ada", has_ended=True)
    assert wait_for([ended], "prj_a", "gpu") == "waits for a node with gpu: none is up"


@pytest.mark.parametrize(
    ("slots", "used", "own", "rivals", "room"),
    [(4, 1, 1, 0, 3), (4, 4, 4, 0, 0), (4, 1, 1, 1, 1), (4, 2, 2, 1, 0), (1, 0, 0, 3, 1), (3, 5, 0, 0, 0)],
)
def test_slots_are_shared_by_the_projects_that_want_some(
    slots: int, used: int, own: int, rivals: int, room: int
) -> None:
    assert fair_room(slots=slots, used=used, own=own, rivals=rivals) == room


def test_ready_runs_are_shared_by_the_nodes_that_take_some() -> None:
    assert [share_of(6, takers) for takers in (0, 1, 2, 3, 4)] == [6, 6, 3, 2, 2]
    assert share_of(0, 3) == 0


def test_a_node_is_found_by_its_id_or_by_a_name_that_only_one_has() -> None:
    one, other = node("n-a"), node("n-b")
    assert required([one, other], "n-b") is other
    assert required([one], "box") is one
    named = node("n-c", admitted="gpu-1")
    assert required([one, other, named], "gpu-1") is named
    with pytest.raises(NotFound, match="2 nodes are called"):
        required([one, other], "box")
    with pytest.raises(NotFound, match="there is no node"):
        required([one], "n-zzz")
