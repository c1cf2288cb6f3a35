"""Simulated days of a fleet: machines, lanes, labels and a host that loses things; and planted bugs that it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from handrail.domain.journal.mark import Mark
from handrail.engine.journal import Placed
from handrail.engine.running import placing, stretch, sweep, worker
from handrail.engine.running.host import Reason, Rest
from simulation import lanes
from simulation.day import simulate
from simulation.run import report

CHUNK = 200
SEEDS = 150

pytestmark = pytest.mark.usefixtures("unmeasured")

Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("first", range(0, 600, CHUNK))
def test_no_invariant_breaks_on_two_machines_with_lanes_and_a_lossy_host(first: int) -> None:
    for seed in range(first, first + CHUNK):
        outcome = simulate(seed, is_fleet=True)
        assert not outcome.broken, report(outcome)


@pytest.mark.long
@pytest.mark.parametrize("first", range(600, 10_000, 10 * CHUNK))
def test_no_invariant_breaks_in_many_days_of_a_fleet(first: int) -> None:
    for seed in range(first, first + 10 * CHUNK):
        outcome = simulate(seed, is_fleet=True)
        assert not outcome.broken, report(outcome)


def test_a_host_whose_clock_is_ahead_does_not_place_a_resting_run_again_and_again() -> None:
    outcome = simulate(600_101, is_fleet=True)
    assert not outcome.broken, report(outcome)


def test_a_seed_gives_the_same_fleet() -> None:
    assert [simulate(seed, is_fleet=True).digest for seed in (3, 4)] == [
        simulate(seed, is_fleet=True).digest for seed in (3, 4)
    ]


# --- planted bugs -------------------------------------------------------------------------------


def places_are_taken_before_the_commit(patch: Patch) -> str:
    """As by an identity column: a number that is given out early becomes visible late."""
    append = lanes.Lanes.append
    given: dict[bytes, int] = {}

    async def early(self: Any, records: Sequence[Any], *more: Any) -> None:
        self._count += len(records)
        given[records[0].hash] = self._count
        await append(self, records, *more)

    def late(self: Any, lane: int, records: Sequence[Any]) -> None:
        for place, record in enumerate(records, given[records[0].hash] - len(records) + 1):
            self._lanes[lanes.FIRST].append(Placed(place, record, lanes.FIRST, place))
        self._lanes[lanes.FIRST].sort(key=lambda one: one.number)

    def since(self: Any, after: Mark) -> list[Any]:
        known = after.counts.get(lanes.FIRST, 0)
        return [one for one in self._lanes[lanes.FIRST] if one.number > known]

    patch.setattr(lanes.Lanes, "append", early)
    patch.setattr(lanes.Lanes, "_number", late)
    patch.setattr(lanes.Lanes, "since", since)
    return "missed news"


def a_mark_is_one_number_for_all_lanes(patch: Patch) -> str:
    def last(mark: Mark, batch: Sequence[Any]) -> Mark:
        most = max([one.number for one in batch] + [count for _, count in mark.lanes], default=0)
        return Mark.of(dict.fromkeys(range(lanes.FIRST, lanes.FIRST + lanes.LANES), most))

    patch.setattr(lanes, "mark_after", last)
    return "missed news"


def there_is_no_sweep(patch: Patch) -> str:
    patch.setattr(sweep.Sweep, "overdue", lambda self, free, *, now_s: [])
    return "invariant 15"


def a_node_with_the_label_does_not_ask(patch: Patch) -> str:
    asked = placing.Placing.sweep

    async def only_plain(self: Any, free: Sequence[Any]) -> None:
        await asked(self, [one for one in free if not one.needs])

    patch.setattr(placing.Placing, "sweep", only_plain)
    return "invariant 15"


def labels_are_ignored(patch: Patch) -> str:
    patch.setattr("handrail.engine.running.calls.call_place.lacking", lambda asked, has: "")
    return "which has not"


def a_host_is_believed(patch: Patch) -> str:
    """Whoever is told by the host to execute a run takes it, though another node has it."""

    async def is_free(self: Any, lease_holder: Any) -> bool:
        return True

    patch.setattr(worker.Worker, "_is_free", is_free)
    return "invariant 13"


def a_timer_of_the_host_is_forgotten(patch: Patch) -> str:
    conduct = stretch.Stretches.conduct

    async def ended(self: Any, run_id: str) -> Rest:
        rest = await conduct(self, run_id)
        return Rest(run=run_id, why=Reason.ENDED) if rest.why is Reason.TIMER else rest

    patch.setattr(stretch.Stretches, "conduct", ended)
    patch.setattr(sweep.Sweep, "overdue", lambda self, free, *, now_s: [])
    return "invariant 15"


def a_run_that_is_left_stays_leased(patch: Patch) -> str:
    async def nothing(self: Any, lease: Any, *, n: int, needs: str) -> None:
        """The store is not asked."""

    patch.setattr("simulation.disk.Disk.hand_over", nothing)
    return "invariant 15"


PLANTED = [
    places_are_taken_before_the_commit,
    a_mark_is_one_number_for_all_lanes,
    there_is_no_sweep,
    a_node_with_the_label_does_not_ask,
    labels_are_ignored,
    a_host_is_believed,
    a_timer_of_the_host_is_forgotten,
    a_run_that_is_left_stays_leased,
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_a_fleet_is_found(plant: Callable[[Patch], str], monkeypatch: Patch) -> None:
    wanted = plant(monkeypatch)
    found: list[str] = []
    for seed in range(SEEDS):
        broken = simulate(seed, is_fleet=True).broken
        if any(wanted in complaint for complaint in broken):
            return
        found += broken[:1]
    pytest.fail(f"{SEEDS} seeds did not find it; they found: {found[:5]}")
