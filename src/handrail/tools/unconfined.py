"""Unconfined: commands run without a sandbox, for checks of people who have said that they may.

Nothing is hidden and nothing is forbidden: a command may do what the person who runs handrail may. But it is bounded:
it has its time, its output, the kernel's limits on memory and files where there are such, a temporary folder that is
removed, and an environment without secrets; and its whole group of processes ends with it. What a command moves out of
its group on purpose lives on: only a sandbox can hold that."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from handrail.domain.definition import Category
from handrail.engine.sandbox import Bounds, Job, Ran, Stopped
from handrail.engine.tool import Progress, ToolFailed, silent
from handrail.tools.output_report import OutputReport

KEPT: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SYSTEMROOT", "TZ", "USER", "USERPROFILE")
"""Of our own environment, what a command gets to know: no secrets."""
CPU_SLACK_S: Final = 5
HANDLES_MAX: Final = 4_096
LINGER_S: Final = 5.0
"""How long output may stay open after the end: somebody who left the group may hold it."""
POSIX: Final = os.name == "posix"
OUT, ERR = 1, 2

_limited = """
import os, resource, sys
for pair in sys.argv[1].split(","):
    name, _, most = pair.partition("=")
    kind = getattr(resource, name, None)
    if kind is not None:
        soft, hard = resource.getrlimit(kind)
        value = int(most) if hard == resource.RLIM_INFINITY else min(int(most), hard)
        try:
            resource.setrlimit(kind, (value, value))
        except (OSError, ValueError):
            pass  # macOS refuses some of these: time and output are bounded from outside all the same
try:
    os.execvpe(sys.argv[2], sys.argv[2:], os.environ)
except OSError as error:
    os.write(2, ("handrail: " + error.strerror).encode())
    os._exit(127)
"""
"""Sets its own limits, then becomes the command: no code of ours runs between fork and exec."""


class _Run(asyncio.SubprocessProtocol):
    """A command at work: what it says, and its end. Its end is its own: others may hold its output open."""

    def __init__(self, bounds: Bounds, progress: Progress) -> None:
        self._bounds, self._report = bounds, OutputReport(progress)
        self.stopped: Stopped = ""
        self.output = {OUT: bytearray(), ERR: bytearray()}
        self.ended, self.silent = asyncio.Event(), asyncio.Event()
        self._open = {OUT, ERR}
        self.transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It has begun."""
        if isinstance(transport, asyncio.SubprocessTransport):
            self.transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It has said something."""
        kept = self.output[fd]
        room = self._bounds.output_bytes - len(kept)
        kept += data[:room]
        self._report.add(len(data))
        if len(data) > room:
            self.stop("output")

    def pipe_connection_lost(self, fd: int, _error: Exception | None) -> None:
        """It will say no more there, or read no more."""
        self._open.discard(fd)
        if not self._open:
            self.silent.set()

    def process_exited(self) -> None:
        """It has ended."""
        self.ended.set()

    def stop(self, why: Stopped) -> None:
        """End all of its group, at once."""
        self.stopped = self.stopped or why
        self.end()

    def end(self) -> None:
        """The same, without a reason; it may have ended by itself."""
        if self.transport is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            if POSIX:
                os.killpg(self.transport.get_pid(), signal.SIGKILL)
            else:
                self.transport.kill()

    def feed(self, content: bytes) -> None:
        """Give it what it may read; it need not."""
        pipe = self.transport.get_pipe_transport(0) if self.transport else None
        if isinstance(pipe, asyncio.WriteTransport):
            pipe.write(content)
            pipe.close()

    async def wait_closed(self) -> int:
        """Wait until all is over: its end, and what it has still to say; its exit."""
        await self.ended.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                await self.silent.wait()
        transport = self.transport
        if transport is None:
            return 0
        transport.close()
        return transport.get_returncode() or 0


class Unconfined:
    """Runs the commands of one project within bounds, and without walls."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def trial(self) -> str:
        """There is nothing to try: a person has said that commands may run without a sandbox."""
        return ""

    async def run(self, job: Job, *, progress: Progress = silent) -> Ran:
        """Run a command to its end or to one of its bounds; nothing of its group is alive afterwards."""
        root = self._root.resolve()
        folder = root / job.cwd
        if not folder.is_dir() or not folder.resolve().is_relative_to(root):
            message = f"there is no folder {job.cwd or '.'} in the project to start in; make it first"
            raise ToolFailed(Category.NOT_FOUND, message)
        # Removed by hand: what is left of a command may still be writing there.
        temporary = await asyncio.to_thread(tempfile.mkdtemp, prefix="handrail-")
        try:
            return await _ran(job, folder, temporary, progress)
        finally:
            await asyncio.to_thread(shutil.rmtree, temporary, ignore_errors=True)


async def _ran(job: Job, folder: Path, temporary: str, progress: Progress) -> Ran:
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    env = {**environment, "TMPDIR": temporary, "TEMP": temporary, "TMP": temporary, **job.env}
    program = _program(job.argv[0], folder, env.get("PATH", ""))
    run = _Run(job.bounds, progress)
    await _start(run, (program, *job.argv[1:]), folder, env, job.bounds)
    code = await _supervise(run, job)
    words = {"stdout": run.output[OUT].decode(errors="replace"), "stderr": run.output[ERR].decode(errors="replace")}
    took_ms = round((loop.time() - started_s) * 1_000)
    return Ran(exit=code if code >= 0 else 128 - code, took_ms=took_ms, stopped=run.stopped, **words)


def _program(name: str, folder: Path, path: str) -> str:
    """Where the program is; ToolFailed if it is nowhere."""
    place = str(folder / name) if "/" in name or os.sep in name else name
    found = shutil.which(place, path=path)
    if found is None or "\0" in name:
        raise ToolFailed(
            Category.NOT_FOUND, f"there is no program {name[:200]!r} here; install it, or mend the command"
        )
    return found


async def _start(run: _Run, words: tuple[str, ...], folder: Path, env: dict[str, str], bounds: Bounds) -> None:
    """Start the command. Whoever cancels this waits for it: only then it can be ended."""
    options: dict[str, Any] = {"start_new_session": True} if POSIX else {"creationflags": _new_group()}
    limiter = (sys.executable, "-I", "-S", "-c", _limited, _limits(bounds)) if POSIX else ()
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(
        loop.subprocess_exec(lambda: run, *limiter, *words, env=env, cwd=folder, **options)
    )
    try:
        await asyncio.shield(starting)
    except (OSError, ValueError) as error:
        raise ToolFailed(Category.INVALID_INPUT, f"{words[0]} can't be started: {error}") from error
    except asyncio.CancelledError:
        await starting
        run.end()
        await run.wait_closed()
        raise


def _new_group() -> int:
    return int(getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0))


def _limits(bounds: Bounds) -> str:
    """What the kernel holds each process to; the group as a whole, nobody does."""
    cores = os.cpu_count() or 1
    limits = {
        "RLIMIT_CPU": (bounds.time_ms // 1_000 + CPU_SLACK_S) * cores,
        "RLIMIT_DATA": 2 * bounds.memory_bytes,  # not the address space: Node, Go and Java reserve much and use little
        "RLIMIT_FSIZE": bounds.file_bytes,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": HANDLES_MAX,
    }
    return ",".join(f"{name}={most}" for name, most in limits.items())


async def _supervise(run: _Run, job: Job) -> int:
    """Let it work until its end or its time, and end what is left of it; its exit."""
    run.feed(job.stdin.encode())
    try:
        async with asyncio.timeout(job.bounds.time_ms / 1_000):
            await run.ended.wait()
    except TimeoutError:
        run.stop("time")
    finally:
        run.end()
        code = await run.wait_closed()
    return code
