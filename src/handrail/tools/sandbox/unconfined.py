"""Commands without a sandbox, for checks, if a person has allowed that.

Nothing is hidden or forbidden: a command may do whatever the user of handrail may do. But there are limits: time,
output, the kernel's limits on memory and files where they exist, a temporary folder that is removed, and an environment
without secrets; and its whole process group is killed at the end. A process that leaves the group on purpose survives:
only a sandbox can prevent that. Commands work in the project itself, except those that need another state of it: they
get a copy (working_copy.py)."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from handrail.domain.definition.model import Category
from handrail.engine.sandbox import Bounds, Job, Ran, Stopped
from handrail.engine.tool import Progress, ToolFailed, silent
from handrail.tools.sandbox.output_report import OutputReport
from handrail.tools.sandbox.project_copy import project_copy
from handrail.tools.sandbox.replaced_files import write_replaced
from handrail.tools.sandbox.wanted_files import with_wanted
from handrail.tools.sandbox.working_copy import WorkingCopy, as_in_project, at_copy

KEPT: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SYSTEMROOT", "TZ", "USER", "USERPROFILE")
"""The variables of our own environment that a command gets: no secrets."""
CPU_SLACK_S: Final = 5
HANDLES_MAX: Final = 4_096
LINGER_S: Final = 5.0
"""How long output may stay open after the end: a process that left the group may hold it."""
CAVEAT: Final = (
    "commands ran without a sandbox: they could read and change all that the user of handrail can; "
    "another state of the project is a copy of its files"
)
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
            pass  # macOS refuses some of these: time and output are still limited from outside
try:
    os.execvpe(sys.argv[2], sys.argv[2:], os.environ)
except OSError as error:
    os.write(2, ("handrail: " + error.strerror).encode())
    os._exit(127)
"""
"""Sets its own limits, then becomes the command: running Python code between fork and exec is not safe."""


class _Run(asyncio.SubprocessProtocol):
    """A running command: its output and its end. The end is tracked separately: others may hold its output open."""

    def __init__(self, bounds: Bounds, progress: Progress) -> None:
        self._bounds, self._report = bounds, OutputReport(progress)
        self.stopped: Stopped = ""
        self.output = {OUT: bytearray(), ERR: bytearray()}
        self.ended, self.silent = asyncio.Event(), asyncio.Event()
        self._open = {OUT, ERR}
        self.transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The command was started."""
        if isinstance(transport, asyncio.SubprocessTransport):
            self.transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """The command wrote output."""
        kept = self.output[fd]
        room = self._bounds.output_bytes - len(kept)
        kept += data[:room]
        self._report.add(len(data))
        if len(data) > room:
            self.stop("output")

    def pipe_connection_lost(self, fd: int, _error: Exception | None) -> None:
        """A pipe of the command was closed."""
        self._open.discard(fd)
        if not self._open:
            self.silent.set()

    def process_exited(self) -> None:
        """The command has ended."""
        self.ended.set()

    def stop(self, why: Stopped) -> None:
        """Kill its whole process group at once."""
        self.stopped = self.stopped or why
        self.end()

    def end(self) -> None:
        """The same, without a reason; it may have ended already."""
        if self.transport is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            if POSIX:
                os.killpg(self.transport.get_pid(), signal.SIGKILL)
            else:
                self.transport.kill()

    def feed(self, content: bytes) -> None:
        """Write its input; the command does not have to read it."""
        pipe = self.transport.get_pipe_transport(0) if self.transport else None
        if isinstance(pipe, asyncio.WriteTransport):
            pipe.write(content)
            pipe.close()

    async def wait_closed(self) -> int:
        """Wait for its end and the rest of its output; its exit code."""
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
    """Runs the commands of one project with limits, but without isolation."""

    caveat = CAVEAT

    def __init__(self, root: Path, *, private: Sequence[Path] = ()) -> None:
        """`private` are folders that are left out of copies of the project."""
        self._root = root
        self._private = private

    async def trial(self) -> str:
        """Nothing to try: a person has allowed commands without a sandbox."""
        return ""

    async def run(self, job: Job, *, progress: Progress = silent) -> Ran:
        """Run a command until it ends or exceeds a limit; none of its process group is alive afterwards."""
        root = self._root.resolve()
        if not job.apart:
            return await _ran_at(root, job, progress)
        private = [folder.resolve() for folder in self._private]
        async with project_copy(root, private=private, rules=partial(WorkingCopy, root)) as copy:
            await asyncio.to_thread(write_replaced, copy, job.replaced)
            return as_in_project(await _ran_at(copy, at_copy(job, root, copy), progress), root, copy)


async def _ran_at(root: Path, job: Job, progress: Progress) -> Ran:
    folder = root / job.cwd
    if not folder.is_dir() or not folder.resolve().is_relative_to(root):
        message = f"there is no folder {job.cwd or '.'} in the project to start in; create it first"
        raise ToolFailed(Category.NOT_FOUND, message)
    # Not TemporaryDirectory: a process that is left may still write there, which would make its removal fail.
    # Not in a thread: a cancellation while that makes the folder, or removes it, would leave it behind.
    temporary = tempfile.mkdtemp(prefix="handrail-")
    try:
        ran = await _ran(job, folder, temporary, progress)
        return await asyncio.to_thread(with_wanted, ran, root, job.wanted) if job.wanted else ran
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, temporary, ignore_errors=True))


async def _ran(job: Job, folder: Path, temporary: str, progress: Progress) -> Ran:
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    env = {**environment, "TMPDIR": temporary, "TEMP": temporary, "TMP": temporary, **job.env}
    program = _program(job.argv[0], folder, env.get("PATH", ""))
    run = _Run(job.bounds, progress)
    await _start(run, (program, *job.argv[1:]), folder, env, job.bounds)
    code = await _supervise(run, job)
    stdout, stderr = (run.output[stream].decode(errors="replace") for stream in (OUT, ERR))
    took_ms = round((loop.time() - started_s) * 1_000)
    exit_code = code if code >= 0 else 128 - code
    return Ran(exit=exit_code, stdout=stdout, stderr=stderr, took_ms=took_ms, stopped=run.stopped)


def _program(name: str, folder: Path, path: str) -> str:
    """The path of the program; ToolFailed if it was not found."""
    place = str(folder / name) if "/" in name or os.sep in name else name
    found = shutil.which(place, path=path)
    if found is None or "\0" in name:
        raise ToolFailed(Category.NOT_FOUND, f"there is no program {name[:200]!r} here; install it, or fix the command")
    return found


async def _start(run: _Run, words: tuple[str, ...], folder: Path, env: dict[str, str], bounds: Bounds) -> None:
    """Start the command. A cancelled caller waits until it is started: only then can it be killed."""
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
    """The kernel's limits for each process; there are none for the group as a whole."""
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
    """Wait for its end or its time limit, and kill what is left of it; its exit code."""
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
