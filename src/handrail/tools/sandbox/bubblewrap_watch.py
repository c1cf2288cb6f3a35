"""Monitoring a sandbox: its number of processes and their memory; also sets the kernel's own limits.

The kernel does not limit the number of processes of the superuser, and has no limit for the memory of several processes
together. So a thread checks them many times a second. bubblewrap.py decides what happens when a limit is exceeded."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread, get_native_id
from typing import Final, NamedTuple

from handrail.engine.sandbox import Bounds, Stopped

LOOK_S: Final = 0.025
READY_LOOK_S: Final = 0.005
READY_LOOKS: Final = 2_000
"""How often to check whether bubblewrap has set up the sandbox."""
THREADS_PER_PROCESS: Final = 4
THREADS_SPARE: Final = 32
"""Few programs have many threads, and few run at the same time; Node has a dozen."""
HANDLES_MAX: Final = 4_096
CPU_SLACK_S: Final = 5
STAT_BYTES_MAX: Final = 4_096
NICENESS: Final = 10
FIRST_OF_ALL: Final = -20
"""The highest priority: the watch must get the processor, whatever runs in the sandbox."""

_proportion = re.compile(rb"^Pss:\s+(\d+) kB", re.MULTILINE)


class _ProcessUsage(NamedTuple):
    pid: str
    threads: int
    resident: int


def limit(pid: int, bounds: Bounds) -> None:
    """Set the kernel's limits on the first process of a sandbox, before it runs anything; all others inherit them.

    The address space is not limited: Node, Go and Java reserve tens of gigabytes and use little. RLIMIT_DATA is, so
    that no single process can use much more between two checks."""
    cores = os.cpu_count() or 1
    limits = {
        resource.RLIMIT_CPU: (bounds.time_ms // 1_000 + CPU_SLACK_S) * cores,
        resource.RLIMIT_DATA: 2 * bounds.memory_bytes,
        resource.RLIMIT_FSIZE: bounds.file_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: HANDLES_MAX,
        resource.RLIMIT_MEMLOCK: 65_536,
    }
    # Before, the kernel counted all processes of the user: a limit would hit those outside the sandbox, too.
    if _counts_by_namespace(os.uname().release):
        limits[resource.RLIMIT_NPROC] = threads_max(bounds)
    for name, value in limits.items():
        _, hard = resource.prlimit(pid, name)
        # A limit can only be lowered: one above the machine's own would be refused, and the command with it.
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.prlimit(pid, name, (most, most))
    # Checks run beside the work of a person, and beside other checks: they must not make either slow.
    os.setpriority(os.PRIO_PROCESS, pid, NICENESS)


def threads_max(bounds: Bounds) -> int:
    """The maximum number of threads of all processes of a sandbox together."""
    return bounds.processes * THREADS_PER_PROCESS + THREADS_SPARE


def _counts_by_namespace(release: str) -> bool:
    """Whether the kernel counts the processes of a sandbox separately from others of the same user: since 5.14."""
    found = re.match(r"(\d+)\.(\d+)", release)
    return found is not None and (int(found[1]), int(found[2])) >= (5, 14)


class Watch:
    """A thread that checks all processes of a sandbox, and stops it when a limit is exceeded.

    It has its own thread, with the highest priority if that is allowed: in a fork bomb thousands of processes compete
    for the processor, and a task in the event loop would run too late."""

    def __init__(self, pid: int, bounds: Bounds, stop: Callable[[Stopped], None]) -> None:
        """`stop` is called from the thread, once, with the limit that was exceeded."""
        self._pid, self._bounds, self._stop = pid, bounds, stop
        self._ended = Event()
        self._thread = Thread(target=self._run, name="handrail-sandbox-watch", daemon=True)
        self.failed = ""
        """Why the sandbox could not be monitored; it is stopped then."""

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, get_native_id(), FIRST_OF_ALL)
        try:
            processes = self._opened()
        except OSError as error:
            self.failed = str(error)
            self._stop("")
            return
        try:
            self._look(processes)
        finally:
            if processes is not None:
                os.close(processes)

    def _opened(self) -> int | None:
        """The sandbox's own /proc: exactly its processes, however they were started."""
        for _ in range(READY_LOOKS):
            with suppress(FileNotFoundError, ProcessLookupError):
                seen_from_inside = Path("/proc", str(self._pid), "root", "proc")
                found = os.open(seen_from_inside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                if os.fstat(found).st_dev != os.stat("/proc").st_dev:  # noqa: PTH116 - beside its fstat
                    return found
                os.close(found)  # too early: this is still our own /proc
            if self._ended.wait(READY_LOOK_S):
                return None
        raise TimeoutError("it did not start")

    def _look(self, processes: int | None) -> None:
        while processes is not None:
            if passed := _passed(processes, self._bounds):
                self._stop(passed)
                return
            if self._ended.wait(LOOK_S):
                return


def _passed(processes: int, bounds: Bounds) -> Stopped:
    pids = [name for name in os.listdir(processes) if name.isdigit()]
    if len(pids) - 1 > bounds.processes:  # the first is bubblewrap itself
        return "processes"
    seen = [found for pid in pids if (found := _seen(processes, pid))]
    if sum(one.threads for one in seen) > threads_max(bounds):
        return "processes"
    if sum(one.resident for one in seen) <= bounds.memory_bytes:
        return ""
    # Forked processes share memory until they write to it. The exact count is slow, so it is made only now.
    return "memory" if sum(_share(processes, one) for one in seen) > bounds.memory_bytes else ""


def _seen(processes: int, pid: str) -> _ProcessUsage | None:
    """The usage of a process, if it still exists."""
    # The name, in brackets, can contain anything. After it, field 18 is the threads, field 22 the resident pages.
    figures = _read(processes, f"{pid}/stat").rpartition(b")")[2].split()
    if len(figures) < 22:
        return None
    return _ProcessUsage(pid, int(figures[17]), int(figures[21]) * resource.getpagesize())


def _share(processes: int, one: _ProcessUsage) -> int:
    """The memory of a process, with its part of shared memory."""
    found = _proportion.search(_read(processes, f"{one.pid}/smaps_rollup"))
    if found:
        return int(found[1]) * 1_024
    again = _seen(processes, one.pid)  # most likely the process is just ending
    return again.resident if again else 0


def _read(processes: int, name: str) -> bytes:
    try:
        handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=processes)
    except OSError:  # the process ended in the meantime
        return b""
    try:
        return os.read(handle, STAT_BYTES_MAX)
    except OSError:
        return b""
    finally:
        os.close(handle)
