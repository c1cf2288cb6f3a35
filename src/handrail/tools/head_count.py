"""The kernel's own count of what runs in a sandbox, for the superuser: a control group with so many tasks at most.

Linux holds every other user to RLIMIT_NPROC, and the superuser to nothing; between two looks of whoever watches, a fork
bomb is thousands of processes. Where control groups can't be had (a container often shows them read-only), the watch
is all there is (bubblewrap_watch.py)."""

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
    """A group that was made for one sandbox."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def remove(self) -> None:
        """Remove it, once all that was in it has ended; one that stays is removed with the next."""
        for _ in range(REMOVAL_TRIES):
            try:
                self.folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:  # the last of them are just being taken away
                await asyncio.sleep(REMOVAL_PAUSE_S)


def limit_tasks(pid: int, most: int, *, mounted: Path = MOUNTED) -> TaskLimit | None:
    """Hold a process, and all that it will start, to so many tasks; None if that can't be had here."""
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
    """The group that counts this process, in either version of control groups."""
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
    with suppress(OSError):  # refused where processes stand in the group itself; then there is no pids.max below
        (unified / "cgroup.subtree_control").write_text("+pids")
    return unified


def _sweep(above: Path) -> None:
    """Remove what processes have left behind that are no more; what is in use can't be removed anyhow."""
    for left in above.glob(f"{NAME}*"):
        owner = left.name.removeprefix(NAME).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            with suppress(OSError):
                left.rmdir()
