"""A control group that limits the number of tasks in a sandbox, needed for the superuser.

RLIMIT_NPROC limits every other user, but not the superuser; a fork bomb starts thousands of processes between two
checks of the watch (bubblewrap_watch.py). Where control groups are not available (containers often have them
read-only), there is only the watch."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

MOUNTED: Final = Path("/sys/fs/cgroup")
NAME: Final = "handrail-"
REMOVAL_TRIES: Final = 50
REMOVAL_PAUSE_S: Final = 0.01

_numbers = count(1)


class TaskLimit:
    """A control group that was created for one sandbox."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def remove(self) -> None:
        """Remove it, once all its processes have ended; one that stays is removed by the next sandbox."""
        for _ in range(REMOVAL_TRIES):
            try:
                self.folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:  # the kernel is still removing its last processes
                await asyncio.sleep(REMOVAL_PAUSE_S)


def limit_tasks(pid: int, most: int, *, mounted: Path = MOUNTED) -> TaskLimit | None:
    """Limit a process and its descendants to that many tasks; None if control groups are not available."""
    above = _own_group(mounted) if os.geteuid() == 0 else None
    if above is None:
        return None
    _sweep(above)
    group = TaskLimit(above / f"{NAME}{os.getpid()}-{next(_numbers)}")
    try:
        group.folder.mkdir()
        (group.folder / "pids.max").write_text(str(most))
        (group.folder / "cgroup.procs").write_text(str(pid))
    except OSError:
        with suppress(OSError):
            group.folder.rmdir()
        return None
    return group


def _own_group(mounted: Path) -> Path | None:
    """The control group of this process, in either version of control groups."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    paths = {kinds: path for _, kinds, path in (line.split(":", 2) for line in lines)}
    for kinds, path in paths.items():
        if "pids" in kinds.split(","):
            return mounted / kinds / path.lstrip("/")
    if "" not in paths:
        return None
    unified = mounted / paths[""].lstrip("/")
    with suppress(OSError):  # refused if the group itself has processes; then a subgroup has no pids.max
        (unified / "cgroup.subtree_control").write_text("+pids")
    return unified


def _sweep(above: Path) -> None:
    """Remove groups of processes that no longer exist; a group in use can't be removed anyway."""
    for left in above.glob(f"{NAME}*"):
        owner = left.name.removeprefix(NAME).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            with suppress(OSError):
                left.rmdir()
