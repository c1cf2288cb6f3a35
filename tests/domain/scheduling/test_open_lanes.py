"""Open lanes: closing what is inside a container closes nothing else."""

from __future__ import annotations

from domain.facts import after, fresh, plan
from handrail.domain.run.command import OpenStep
from handrail.domain.scheduling.agenda import Agenda


def two_loops() -> Agenda:
    inner = [{"id": "in", "tool": "x.y"}]
    definition = plan(
        {"id": "load", "each": "[1, 2]", "parallel": 2, "steps": inner},
        {"id": "load_all", "each": "[1]", "steps": inner, "after": []},
    )
    opened = [OpenStep(step="load", rounds=2), OpenStep(step="load_all", rounds=1)]
    return Agenda(definition, after(fresh(definition), opened, definition))


def test_closing_a_loop_leaves_one_with_a_longer_name_alone() -> None:
    lanes = two_loops().lanes
    assert set(lanes.by_prefix) == {"", "load[0].", "load[1].", "load_all[0]."}
    assert lanes.close_inside("load") == ["load[0].in", "load[1].in"]
    assert set(lanes.by_prefix) == {"", "load_all[0]."}
    assert set(lanes.rounds) == {"load_all"}


def test_a_container_is_stuck_only_if_all_its_lanes_are() -> None:
    lanes = two_loops().lanes
    lanes.by_prefix["load[0]."].moving.clear()
    assert lanes.stuck_in("load") is None
    lanes.by_prefix["load[1]."].moving.clear()
    assert lanes.stuck_in("load") == "load[0]."
