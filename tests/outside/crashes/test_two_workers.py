"""Two real workers on one store: never both execute a run, and one takes over what the other can't continue."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
from pathlib import Path

import pytest

from handrail.assembly.opening import open_reader
from handrail.domain.journal.event import AnswerCameLate, AttemptStarted, Entry
from handrail.domain.run.status import RunStatus
from handrail.engine.stream_pages import entries_of
from outside.crashes.random_plans import in_a_row
from outside.effects_server import serving_effects
from outside.processes import PATIENCE_S, Place, handrail, place_in

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are a matter of POSIX")

LEASE_S = 2
SLACK_S = 12
"""What a busy machine may take longer; on a quiet one it is below two seconds."""
RUNS = 60


def lease_of(place: Place, run: str) -> tuple[str, int] | None:
    """Who holds a run, and by which epoch, as the table says."""
    with contextlib.closing(sqlite3.connect(f"file:{place.settings.journal}?mode=ro", uri=True)) as connection:
        row = connection.execute("SELECT owner, epoch FROM lease WHERE run = ?", [run]).fetchone()
    return (str(row[0]), int(row[1])) if row else None


async def taken_over(place: Place, run: str, actor: str, *, within_s: float) -> tuple[float, list[tuple[str, int]]]:
    """Wait until somebody else tries a step of a run: after how long, and who held it meanwhile, one after another."""
    loop = asyncio.get_running_loop()
    began, held = loop.time(), []
    async with open_reader(place.settings) as look, asyncio.timeout(within_s):
        while True:
            lease = lease_of(place, run)
            if lease is not None and lease not in held:
                held.append(lease)
            entries = await entries_of(look.store, run)
            if any(entry.actor == actor and isinstance(entry.event, AttemptStarted) for entry in entries):
                return loop.time() - began, held
            await asyncio.sleep(0.02)


def written_by(entries: list[Entry], actor: str) -> list[Entry]:
    return [entry for entry in entries if entry.actor == actor]


async def test_a_worker_that_stands_still_loses_its_run_and_its_late_answer_changes_nothing(tmp_path: Path) -> None:
    place = place_in(tmp_path, lease=f"{LEASE_S}s")
    async with serving_effects() as server:
        gate = server.gate("long")
        run = await place.start(in_a_row(server.url, "before", "long", "after"))
        async with handrail(place, "worker") as first:
            await asyncio.wait_for(gate.reached.wait(), PATIENCE_S)
            one = await first.owner()
            async with handrail(place, "worker") as second:
                other = await second.owner()
                first.stop()
                took_s, held = await taken_over(place, run, f"worker:{other}", within_s=PATIENCE_S)
                assert LEASE_S - 1 <= took_s <= LEASE_S + SLACK_S
                assert held == [(one, 1), (other, 2)]
                await asyncio.wait_for(server.requests(3), PATIENCE_S)
                gate.opened.set()
                done = await place.until(run, lambda state: state.status is RunStatus.COMPLETED)
                first.go_on()
                entries = await late_answer(place, run)
                assert first.is_alive
    last = entries[-1]
    assert (last.actor, last.event.step) == (f"worker:{one}", "long")  # type: ignore[union-attr]
    restarted = next(entry.n for entry in written_by(entries, f"worker:{other}"))
    assert [entry.n for entry in written_by(entries, f"worker:{one}") if entry.n > restarted] == [last.n]
    assert (await place.run(run)).steps == done.steps
    assert server.times_done(run) == {"before": 1, "long": 1, "after": 1}
    assert server.times_asked(run)["long"] == 2
    assert len(server.keys_of(run, "long")) == 1
    await place.verify()


async def late_answer(place: Place, run: str) -> list[Entry]:
    """The events of a run, once a late answer is among them."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            entries = await place.events(run)
            if any(isinstance(entry.event, AnswerCameLate) for entry in entries):
                return entries
            await asyncio.sleep(0.02)


async def test_the_runs_of_a_killed_worker_are_taken_over_at_once_and_not_after_its_lease(tmp_path: Path) -> None:
    place = place_in(tmp_path, lease="60s")
    async with serving_effects() as server:
        gate = server.gate("long")
        run = await place.start(in_a_row(server.url, "before", "long", "after"))
        async with handrail(place, "worker") as first:
            await asyncio.wait_for(gate.reached.wait(), PATIENCE_S)
            one = await first.owner()
            async with handrail(place, "worker") as second:
                other = await second.owner()
                assert lease_of(place, run) == (one, 1)
                await first.kill()
                gate.opened.set()
                took_s, held = await taken_over(place, run, f"worker:{other}", within_s=PATIENCE_S)
                assert took_s <= SLACK_S
                assert held[-1] == (other, 2)
                await place.until(run, lambda state: state.status is RunStatus.COMPLETED)
    assert server.times_done(run) == {"before": 1, "long": 1, "after": 1}
    assert len(server.keys_of(run, "long")) == 1
    await place.verify()


async def test_two_workers_that_begin_together_execute_no_run_twice(tmp_path: Path) -> None:
    place = place_in(tmp_path, lease=f"{LEASE_S}s")
    async with serving_effects() as server:
        plans = [in_a_row(server.url, "a", "b", "c", name=f"row-{number}") for number in range(RUNS)]
        runs = await place.start_all(plans)
        async with handrail(place, "worker", "--until-idle") as one, handrail(place, "worker", "--until-idle") as other:
            assert tuple(await asyncio.gather(one.ended(), other.ended())) == (0, 0)
    histories = await place.histories()
    assert set(histories) == set(runs)
    for run, entries in histories.items():
        assert server.times_asked(run) == {"a": 1, "b": 1, "c": 1}
        assert len({entry.actor for entry in entries[1:]}) == 1
    await place.verify()
