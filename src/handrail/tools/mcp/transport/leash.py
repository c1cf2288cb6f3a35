"""The leash of an MCP server: a small process between handrail and the server, which ends when either of them ends.

A separate script, run as `python -I -S leash.py <lifeline> <command> <args...>`: it imports nothing of handrail, so
that it starts in a few milliseconds. POSIX only. It does not touch standard input, output and error. The lifeline is a
socket to handrail: when it closes, handrail is gone for whatever reason, and all descendants are killed. On it the
leash reports `pid <n>` once the server runs, and `exit <n>` or `signal <n>` as soon as it has ended.

    handrail == lifeline == leash (reaper of all descendants, also of those that left) -- server -- its children

launch.py starts and stops it from handrail's side."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import sys
import time

GRACE_S = 1.0
"""How long descendants have to end by themselves after SIGTERM."""
KILL_S = 3.0
POLL_S = 0.01
PROCESSES_MAX = 100_000
CAN_NOT_START = 127

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(argv: list[str]) -> int:
    """Run the command on the leash; the exit status is the server's, or 128 plus its signal."""
    lifeline = socket.socket(fileno=int(argv[0]))
    lifeline.set_inheritable(False)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    # Signals arrive as bytes on a pipe, so that one `select` waits for them and for the lifeline.
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    server = _started(argv[1:])
    _release_pipes()
    _report(lifeline, f"pid {server}")
    status = _watched(server, lifeline, woken)
    if status is not None:
        _report(lifeline, f"exit {status}" if status >= 0 else f"signal {-status}")
    _end_all(server)
    return 0 if status is None else status if status >= 0 else 128 - status


def _started(command: list[str]) -> int:
    """Start the server in a session of its own; the kernel kills it if the leash is killed."""
    leash = os.getpid()
    server = os.fork()
    if server:
        return server
    try:
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the server would inherit that
        if os.getppid() == leash:
            os.execvp(command[0], command)  # noqa: S606 - an argv that a person declared, and no shell
    except OSError as error:
        os.write(2, f"{command[0]} can't be started: {error.strerror}\n".encode())
    finally:
        os._exit(CAN_NOT_START)


def _release_pipes() -> None:
    """Close the server's pipes here: otherwise handrail would not notice when the server closes one."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _watched(server: int, lifeline: socket.socket, woken: int) -> int | None:
    """The server's exit status (negative: its signal); None if it still runs and must be stopped."""
    while True:
        ended, status = _reaped(server)
        if ended:
            return status
        ready, _, _ = select.select([lifeline.fileno(), woken], [], [])
        if lifeline.fileno() in ready:
            return None
        if any(number != signal.SIGCHLD for number in os.read(woken, 4096)):
            return None  # a signal that asks the leash to stop is meant for the server


def _reaped(server: int) -> tuple[bool, int]:
    """Whether the server has ended, and how; also reaps all other descendants that have ended."""
    found = (False, 0)
    with contextlib.suppress(ChildProcessError):
        while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
            if reaped[0] == server:
                found = (True, os.waitstatus_to_exitcode(reaped[1]))
    return found


def _end_all(server: int) -> None:
    """Stop the server's group and all descendants: SIGTERM first, then SIGKILL; within a time limit."""
    started_at = time.monotonic()
    _signal_all(server, signal.SIGTERM)
    while _alive(server):
        passed = time.monotonic() - started_at
        if passed > GRACE_S + KILL_S:
            return
        if passed > GRACE_S:
            _signal_all(server, signal.SIGKILL)  # repeatedly: new ones may be forked in the meantime
        time.sleep(POLL_S)


def _alive(server: int) -> bool:
    _reaped(server)
    if _descendants():
        return True
    try:
        os.killpg(server, 0)
    except OSError:
        return False
    return True


def _signal_all(server: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(server, number)
    for process in _descendants():
        with contextlib.suppress(OSError):
            os.kill(process, number)


def _descendants() -> list[int]:
    """All descendants of this process, where /proc exists; orphans become our children, so none is missed."""
    children: dict[int, list[int]] = {}
    try:
        with os.scandir("/proc") as entries:
            names = [entry.name for entry in entries if entry.name.isdigit()]
    except OSError:
        return []
    for name in names[:PROCESSES_MAX]:
        parent = _parent(name)
        if parent:
            children.setdefault(parent, []).append(int(name))
    found, waiting = [], [os.getpid()]
    while waiting:
        below = children.pop(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _parent(process: str) -> int:
    """The parent of a running process; 0 for a zombie."""
    try:
        file = os.open(f"/proc/{process}/stat", os.O_RDONLY)
    except OSError:
        return 0
    try:
        # The name is in brackets and may contain anything, even brackets.
        state, parent = os.read(file, 4096).rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return 0
    finally:
        os.close(file)
    return 0 if state in b"ZX" else int(parent)


def _report(lifeline: socket.socket, words: str) -> None:
    with contextlib.suppress(OSError):
        lifeline.sendall(words.encode() + b"\n")


def _prctl(option: int, value: int) -> None:
    """Call prctl on Linux; other systems have none, and there only the process group is stopped."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
