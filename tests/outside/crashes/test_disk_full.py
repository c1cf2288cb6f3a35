"""A disk that is full in the middle of a run: the run stops with a clear message, and continues when there is space."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.domain.run.status import RunStatus
from outside.crashes.random_plans import in_a_row
from outside.effects_server import serving_effects
from outside.processes import PATIENCE_S, handrail, place_in, work_until_idle

CONFINED = Path(__file__).parents[1] / "confined.py"
STEPS = 40
ROOM_BYTES = 400_000
FILLER = "x" * 40_000


def test_a_run_stops_on_a_full_disk_and_goes_on_by_itself_when_there_is_room(tmp_path: Path) -> None:
    """A real full disk: see confined.py."""
    unshare = shutil.which("unshare")
    if unshare is None or not sys.platform.startswith("linux"):
        pytest.skip("mount namespaces are a matter of Linux, and of its tool `unshare`")
    alone = [unshare, "--mount", "--map-root-user"]
    if subprocess.run([*alone, "mount", "-t", "tmpfs", "tmpfs", tmp_path], capture_output=True, check=False).returncode:
        pytest.skip("this system does not let us mount a disk of our own")
    done = subprocess.run(
        [*alone, sys.executable, CONFINED, tmp_path],
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("ok\n", 0), done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="another process's limits are a matter of Linux")
async def test_a_file_that_may_not_grow_stops_the_run_until_a_restart_and_nothing_is_lost(tmp_path: Path) -> None:
    """Not a full disk but a failed write: what is on the disk is unknown, so nothing more is acknowledged."""
    import resource  # only some systems know it

    place = place_in(tmp_path)
    async with serving_effects() as server:
        server.filler = FILLER
        run = await place.start(in_a_row(server.url, *(f"s{number}" for number in range(STEPS))))
        async with handrail(place, "worker") as worker:
            await worker.owner()
            resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE, (ROOM_BYTES, resource.RLIM_INFINITY))
            said = await worker.says("journal.db")
            assert (
                "the disk or the system failed while writing journal.db" in said or "accepts no more events" in said
            ), said
            stopped = await place.run(run)
            assert stopped.status is RunStatus.RUNNING
            assert 0 < stopped.done < STEPS
            assert worker.is_alive
        await place.verify()
        await work_until_idle(place)
        assert (await place.run(run)).status is RunStatus.COMPLETED
        assert server.times_done(run) == {f"s{number}": 1 for number in range(STEPS)}
    await place.verify()
