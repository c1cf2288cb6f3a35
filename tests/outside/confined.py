"""A scene that needs a disk of its own: a worker on a disk that fills up. Run in a private mount namespace:

    unshare --mount --map-root-user python confined.py <folder>

Says `ok` when all was as it must be. See test_disk_full.py."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from handrail.domain.run.status import RunStatus
from outside.crashes.random_plans import in_a_row
from outside.effects_server import serving_effects
from outside.processes import handrail, place_in

STEPS = 60
DISK = "8m"
BALLAST_BYTES = 6_000_000
FILLER = "x" * 40_000


async def full(folder: Path) -> None:
    """A run stops when the disk is full, says so, loses nothing, and goes on by itself when there is room."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], check=True)
    ballast = folder / "ballast"
    place = place_in(folder)
    async with serving_effects() as server:
        server.filler = FILLER
        run = await place.start(in_a_row(server.url, *(f"s{number}" for number in range(STEPS))))
        ballast.write_bytes(b"x" * BALLAST_BYTES)
        async with handrail(place, "worker") as worker:
            await worker.says("the disk is full")
            stopped = await place.run(run)
            assert stopped.status is RunStatus.RUNNING
            assert 0 < stopped.done < STEPS
            assert worker.is_alive
            await place.verify()
            ballast.unlink()
            await place.until(run, lambda state: state.status is RunStatus.COMPLETED)
            assert worker.is_alive
        assert server.times_asked(run) == {f"s{number}": 1 for number in range(STEPS)}
    await place.verify()


if __name__ == "__main__":
    asyncio.run(full(Path(sys.argv[1])))
    sys.stdout.write("ok\n")
