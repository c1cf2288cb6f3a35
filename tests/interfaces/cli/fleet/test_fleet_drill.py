"""The fleet drill (`make fleet`), short: nothing is lost, whatever happens to nodes and database."""

from __future__ import annotations

import pytest

from interfaces.fleet_drill import drill_here
from storage.postgres import server

RUNS = 24


@pytest.mark.skipif(bool(server.MISSING), reason=server.MISSING or "-")
def test_nothing_is_lost_when_a_node_is_killed_one_is_stopped_and_the_database_restarts() -> None:
    said: list[str] = []
    found = drill_here(RUNS, said.append)
    assert found.completed == RUNS, said
    assert (found.steps_completed_twice, found.effects_missing, found.broken) == (0, 0, 0)
