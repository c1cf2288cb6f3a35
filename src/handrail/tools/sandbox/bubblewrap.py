"""The bubblewrap sandbox: commands run in their own namespaces, and none of their processes is left afterwards.

No network, no capabilities, no access to other processes, a file system of its own (bubblewrap_view.py), a filter for
system calls (syscall_filter.py), and limits that are monitored (bubblewrap_watch.py).
Linux only. Imported when first needed."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import msgspec

from handrail.domain.definition.model import Category
from handrail.engine.sandbox import Bounds, Job, Ran, Stopped
from handrail.engine.tool import Progress, ToolFailed
from handrail.tools.sandbox.bubblewrap_trial import HOW_TO_GET, WORDS_MAX, tried
from handrail.tools.sandbox.bubblewrap_view import SandboxView, environment_options
from handrail.tools.sandbox.bubblewrap_watch import FIRST_OF_ALL, Watch, limit, threads_max
from handrail.tools.sandbox.output_report import OutputReport
from handrail.tools.sandbox.process_limit import TaskLimit, limit_tasks
from handrail.tools.sandbox.syscall_filter import MACHINES, filter_program

NAMESPACES: Final = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL"),
    *("--die-with-parent", "--new-session", "--hostname", "sandbox"),
)
BEYOND: Final = 16
BLOCK_BYTES: Final = 65_536
START_S: Final = 10.0
INFO_BYTES_MAX: Final = 10_000


class _Info(msgspec.Struct, frozen=True):
    """What bubblewrap reports about a sandbox that it started."""

    pid: int = msgspec.field(name="child-pid")


def _silent(_words: str) -> None:
    """Report no progress."""


class Bubblewrap:
    """A sandbox around the commands of one project."""

    def __init__(
        self, root: Path, *, program: str = "", private: Sequence[Path] = (), read: Sequence[Path] = ()
    ) -> None:
        """`private` are folders that no command may see; `read` are more folders that it may read; `program` is
        looked up on PATH unless it is given."""
        self._root = root
        self._named = program
        self._view = SandboxView(root, private=private, read=read)

    async def run(self, job: Job, *, progress: Progress = _silent) -> Ran:
        """Run a command until it ends or exceeds a limit; none of its processes is alive afterwards."""
        program = self._program()
        options = [*NAMESPACES, *self._view.options(job), *environment_options(job)]
        if job.bounds.network:
            options.append("--share-net")
        if any("\0" in word for word in (*options, *job.argv)):  # NUL separates options, so it could add some
            raise ToolFailed(Category.INVALID_INPUT, "the command contains the character NUL; leave it out")
        started_s = asyncio.get_running_loop().time()
        with _Handles() as handles:
            sandbox = await _start_sandbox(program, options, job, handles)
            ran = await _supervise(sandbox, job, progress)
        took_ms = round((asyncio.get_running_loop().time() - started_s) * 1_000)
        _require_started(ran, job)
        return msgspec.structs.replace(ran, took_ms=took_ms)

    async def trial(self) -> str:
        """Try to escape from the sandbox, once per process; empty if nothing could."""
        try:
            program = self._program()
        except ToolFailed as error:
            return error.message
        return await tried(
            program, lambda scene: Bubblewrap(scene.root, program=program, private=scene.private, read=scene.read)
        )

    def _program(self) -> str:
        """The path of bubblewrap; ToolFailed says what is missing, and how to get it."""
        if not sys.platform.startswith("linux"):
            raise _unusable("commands need a sandbox, which needs Linux; use a Linux machine or container")
        if platform.machine() not in MACHINES:
            raise _unusable(f"the sandbox supports the processors {', '.join(MACHINES)}, not {platform.machine()}")
        found = shutil.which(self._named or "bwrap")
        if found is None:
            raise _unusable(f"{self._named or 'bubblewrap'} was not found; {HOW_TO_GET}")
        if self._root.resolve() in Path(found).resolve().parents:
            # A command could have put it there, to be run outside of the sandbox the next time.
            raise _unusable(f"{found} is in the project, where commands could change it; {HOW_TO_GET}")
        return found


@dataclass
class _RunningSandbox:
    """A sandbox that is running."""

    process: Process
    """bubblewrap, outside."""
    pid: int
    """The first process inside: when it ends, the kernel ends all others."""
    handle: int
    group: TaskLimit | None = None
    """The control group that limits its processes, where there is one."""
    stopped: Stopped = ""
    output: dict[str, bytearray] = field(default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()})

    def stop(self, why: Stopped) -> None:
        """Kill everything in it at once."""
        self.stopped = self.stopped or why
        self.kill()

    def kill(self) -> None:
        """The same, without a reason."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, 0)
            with suppress(PermissionError):  # it ends all others when it is scheduled: let that be next
                os.setpriority(os.PRIO_PROCESS, self.pid, FIRST_OF_ALL)
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)


class _Handles:
    """Open files, each closed once."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._open.update(ends)
        return ends

    def gate(self) -> int:
        """A pipe opened for reading and writing: it stays open when other ends close, which would count as a signal."""
        reading, writing = self.pipe()
        gate = os.open(f"/proc/self/fd/{reading}", os.O_RDWR | os.O_CLOEXEC)
        self._open.add(gate)
        self.close(reading, writing)
        return gate

    def content(self, content: bytes) -> int:
        """A file in memory, to be read from its start."""
        handle = os.memfd_create("sandbox")
        self._open.add(handle)
        os.write(handle, content)
        os.lseek(handle, 0, os.SEEK_SET)
        return handle

    def process(self, pid: int) -> int:
        handle = os.pidfd_open(pid)
        self._open.add(handle)
        return handle

    def close(self, *handles: int) -> None:
        for handle in handles:
            self._open.discard(handle)
            os.close(handle)

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(*self._open.copy())


async def _start_sandbox(program: str, options: Sequence[str], job: Job, handles: _Handles) -> _RunningSandbox:
    """Start the command with its limits set; ToolFailed if the sandbox could not be created."""
    info, info_writer = handles.pipe()
    gate = handles.gate()
    plan = handles.content("".join(f"{option}\0" for option in options).encode())
    calls = handles.content(filter_program(platform.machine()))
    # The environment of a command is passed in a file, because all users can see the arguments of a process.
    extras = ("--info-fd", str(info_writer), "--block-fd", str(gate), "--seccomp", str(calls))
    command = (program, "--args", str(plan), *extras, "--", *job.argv)
    process = await _start_process(command, (plan, calls, info_writer, gate))
    try:
        handles.close(info_writer)
        pid = await _first_pid(info)
        sandbox = _RunningSandbox(process, pid, handles.process(pid))
        limit(pid, job.bounds)
        # A few more than the watch allows: a command over the limit is then killed, not only denied more processes.
        sandbox.group = limit_tasks(pid, threads_max(job.bounds) + BEYOND)
        os.write(gate, b"!")  # bubblewrap waits for this before it runs the command
    except (OSError, ValueError, TimeoutError) as error:
        words = await _abandon(process)
        raise _unusable(f"the sandbox could not be created: {words or error}") from error
    except asyncio.CancelledError:
        await _abandon(process)
        raise
    return sandbox


async def _start_process(words: Sequence[str], handles: Sequence[int]) -> Process:
    """Start bubblewrap. A cancelled caller waits until it is started: only then can it be killed with its child."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env={}, cwd="/", pass_fds=handles, start_new_session=True
        )
    )
    try:
        return await asyncio.shield(starting)
    except OSError as error:
        raise _unusable(f"{words[0]} can't be started: {error.strerror}") from error
    except asyncio.CancelledError:
        await _abandon(await starting)
        raise


async def _first_pid(info: int) -> int:
    """The pid of the first process inside, as bubblewrap reports it."""
    words = b""
    os.set_blocking(info, False)
    async with asyncio.timeout(START_S):
        while not words.endswith(b"}\n"):
            await _readable(info)
            block = os.read(info, INFO_BYTES_MAX)
            words += block
            if not block or len(words) > INFO_BYTES_MAX:
                raise ValueError("bubblewrap reported no process")
    return msgspec.json.decode(words, type=_Info).pid


async def _readable(handle: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(handle, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(handle)


async def _abandon(process: Process) -> str:
    """Kill a sandbox that did not run its command yet; the end of its error output."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # its child is still in its group, but would not end with it yet
    _, words = await process.communicate()
    return words.decode(errors="replace").strip()[-WORDS_MAX:]


async def _supervise(sandbox: _RunningSandbox, job: Job, progress: Progress) -> Ran:
    """Handle a command until its end: its input, its output, its time limit and its other limits."""
    report = OutputReport(progress)
    talking = [
        asyncio.create_task(_feed(sandbox.process, job.stdin.encode())),
        asyncio.create_task(_collect(sandbox, "stdout", job.bounds, report)),
        asyncio.create_task(_collect(sandbox, "stderr", job.bounds, report)),
    ]
    with Watch(sandbox.pid, job.bounds, sandbox.stop) as watch:
        try:
            async with asyncio.timeout(job.bounds.time_ms / 1_000):
                await sandbox.process.wait()
        except TimeoutError:
            sandbox.stop("time")
        finally:
            sandbox.kill()
            await sandbox.process.wait()
            await asyncio.wait(talking)
            if sandbox.group is not None:
                await sandbox.group.remove()
    if watch.failed:
        raise _unusable(f"the sandbox can't be monitored: {watch.failed}")
    code = sandbox.process.returncode or 0
    words = {name: content.decode(errors="replace") for name, content in sandbox.output.items()}
    return Ran(exit=code if code >= 0 else 128 - code, took_ms=0, stopped=sandbox.stopped, **words)


async def _feed(process: Process, content: bytes) -> None:
    if process.stdin is not None:
        with suppress(ConnectionError):  # a command does not have to read its input
            process.stdin.write(content)
            await process.stdin.drain()
            process.stdin.close()
            await process.stdin.wait_closed()


async def _collect(
    sandbox: _RunningSandbox, name: Literal["stdout", "stderr"], bounds: Bounds, report: OutputReport
) -> None:
    stream, kept = getattr(sandbox.process, name), sandbox.output[name]
    while block := await stream.read(BLOCK_BYTES):
        room = bounds.output_bytes - len(kept)
        kept += block[:room]
        report.add(len(block))
        if len(block) > room:
            sandbox.stop("output")  # the rest of the pipe is still read, so that it can be closed


def _require_started(ran: Ran, job: Job) -> None:
    """Distinguish a command that failed from one that could not be started."""
    words = ran.stderr.strip()
    if ran.exit != 1 or ran.stopped or not words.startswith("bwrap: ") or "\n" in words:
        return
    if words.startswith("bwrap: execvp "):
        hint = "it has the system's folders and the project; [shell] read adds more"
        raise ToolFailed(Category.NOT_FOUND, f"there is no program {job.argv[0][:200]} in the sandbox; {hint}")
    if words.startswith("bwrap: Can't chdir"):
        raise ToolFailed(Category.NOT_FOUND, f"there is no folder {job.cwd or '.'} to start in; create it first")
    raise _unusable(f"the sandbox could not be created: {words[-WORDS_MAX:]}")


def _unusable(message: str) -> ToolFailed:
    return ToolFailed(Category.PERMISSION, message)
