"""The fleet drill (`make fleet`), short: nothing is lost, whatever happens to nodes and database."""

from __future__ import annotations

import pytest

from hosts.servers import missing
from interfaces.fleet_drill import drill_here

RUNS = 24


def test_nothing_is_lost_when_a_node_is_killed_one_is_stopped_and_the_database_restarts() -> None:
    drilled("temporal")


@pytest.mark.long
@pytest.mark.parametrize("host", ["local", "absurd"])
def test_nothing_is_lost_under_the_other_hosts(host: str) -> None:
    drilled(host)


def drilled(host: str) -> None:
    if reason := missing(host):
        pytest.skip(reason)
    said: list[str] = []
    found = drill_here(RUNS, said.append, host)
    assert found.completed == RUNS, said
    assert (found.steps_completed_twice, found.effects_missing, found.broken) == (0, 0, 0)
    assert found.workers > 1, "one worker did it all: the others were not needed"
