"""A process that is killed with hundreds of open runs: the next one continues all of them by itself."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from handrail.domain.journal.event import RunCompleted, StepCompleted
from outside.crashes.random_plans import in_a_row
from outside.effects_server import serving_effects
from outside.processes import PATIENCE_S, handrail, place_in, work_until_idle

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a matter of POSIX")

RUNS = 220
OPEN_MIN = 200


async def test_all_open_runs_are_picked_up_and_no_finished_step_is_done_again(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    async with serving_effects() as server:
        runs = await place.start_all([in_a_row(server.url, "a", "b", name=f"row-{number}") for number in range(RUNS)])
        async with handrail(place, "worker") as worker:
            await asyncio.wait_for(server.requests(RUNS // 2), PATIENCE_S)
            await worker.kill()
        before = await place.histories()
        finished = {
            (run, entry.event.step)
            for run, entries in before.items()
            for entry in entries
            if isinstance(entry.event, StepCompleted)
        }
        is_open = [run for run, entries in before.items() if not isinstance(entries[-1].event, RunCompleted)]
        assert len(is_open) >= OPEN_MIN
        assert finished
        await work_until_idle(place)
    after = await place.histories()
    assert set(after) == set(runs)
    assert all(isinstance(entries[-1].event, RunCompleted) for entries in after.values())
    assert all(server.times_done(run) == {"a": 1, "b": 1} for run in runs)
    assert {server.times_asked(run)[step] for run, step in finished} == {1}
    await place.verify()
