"""The bubblewrap sandbox: commands run in their own namespaces, and none of their processes is left afterwards.

No network, no capabilities, no access to other processes, a file system of its own (bubblewrap_view.py), changes that
are thrown away unless they are to be kept (throw_away.py), a filter for system calls (syscall_filter.py), and limits
that are monitored (bubblewrap_watch.py).
Linux only. Imported when first needed."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import msgspec

from handrail.domain.definition.model import Category
from handrail.engine.sandbox import Bounds, Job, Ran, Stopped
from handrail.engine.tool import Progress, ToolFailed
from handrail.foundation.program_search import programs_named
from handrail.tools.sandbox.bubblewrap_trial import HOW_TO_GET, WORDS_MAX, tried
from handrail.tools.sandbox.bubblewrap_view import (
    SandboxView,
    environment_options,
    require_own_project,
)
from handrail.tools.sandbox.bubblewrap_watch import FIRST_OF_ALL, Watch, limit, threads_max
from handrail.tools.sandbox.output_report import OutputReport
from handrail.tools.sandbox.overlay import FAILED, START, NoOverlay, Overlays, overlays_of
from handrail.tools.sandbox.process_limit import TaskLimit, limit_tasks
from handrail.tools.sandbox.project_copy import project_copy, scratch_folder
from handrail.tools.sandbox.replaced_files import replacing
from handrail.tools.sandbox.shown_sockets import LISTENING, sockets_in
from handrail.tools.sandbox.syscall_filter import MACHINES, filter_program
from handrail.tools.sandbox.throw_away import ViewKind, way_here
from handrail.tools.sandbox.wanted_files import with_wanted

NAMESPACES: Final = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL"),
    *("--die-with-parent", "--new-session", "--hostname", "sandbox"),
)
BEYOND: Final = 16
BLOCK_BYTES: Final = 65_536
START_S: Final = 10.0
STATUS_BYTES_MAX: Final = 65_536
INFO_BYTES_MAX: Final = 10_000
LIBRARIES: Final = "LD_LIBRARY_PATH"


class _Info(msgspec.Struct, frozen=True):
    """What bubblewrap reports about a sandbox that it started."""

    pid: int = msgspec.field(name="child-pid")


def _silent(_words: str) -> None:
    """Report no progress."""


class Bubblewrap:
    """A sandbox around the commands of one project."""

    caveat = ""

    def __init__(
        self,
        root: Path,
        *,
        program: str = "",
        private: Sequence[Path] = (),
        read: Sequence[Path] = (),
        way: ViewKind | None = None,
    ) -> None:
        """`private` are folders that no command may see; `read` are more folders that it may read; `program` is
        looked up on PATH unless it is given; `way` is how changes are thrown away, found by a trial unless given."""
        self._root = root
        self._named = program
        self._way = way
        self._view = SandboxView(root, private=private, read=read)

    async def run(self, job: Job, *, progress: Progress = _silent) -> Ran:
        """Run a command until it ends or exceeds a limit; none of its processes is alive afterwards, and nothing that
        it changed unless that is to be kept."""
        program = self._program()
        if job.kept:
            return await self._run(program, job, progress, _FolderSources())
        job = replacing(job)
        way = self._way or await self._way_here(program)
        if way is not ViewKind.COPY:
            try:
                return await self._run_in_overlay(program, job, progress, way)
            # The trial has found overlays, but this project may be on a file system that allows none: then it is
            # copied.
            except NoOverlay as error:
                if self._way is not None:
                    raise _unusable(f"there is no overlay here: {error}") from error
        return await self._run_in_copy(program, job, progress)

    async def _run_in_overlay(self, program: str, job: Job, progress: Progress, way: ViewKind) -> Ran:
        root, read = self._view.root.resolve(), self._view.readable(job)
        if way is ViewKind.MEMORY:
            overlays = overlays_of(root, read)
            return await self._run(program, job, progress, _overlaid(overlays, job))
        async with scratch_folder() as scratch:
            overlays = overlays_of(root, read, scratch=str(scratch))
            return await self._run(program, job, progress, _overlaid(overlays, job))

    async def _run_in_copy(self, program: str, job: Job, progress: Progress) -> Ran:
        root = self._view.root.resolve()
        require_own_project(root)
        # A socket is a door to a process outside: a read-only mount does not close it, and an overlay has none.
        covered = await asyncio.to_thread(sockets_in, [LISTENING, *self._view.readable(job)])
        async with project_copy(root, private=self._view.hidden()) as copy:
            return await self._run(program, job, progress, _FolderSources({root: str(copy)}, covered=covered))

    async def _run(self, program: str, job: Job, progress: Progress, origin: _FolderSources) -> Ran:
        options = [*NAMESPACES, *self._view.options(job, origin.sources, origin.covered), *environment_options(job)]
        if job.bounds.network:
            options.append("--share-net")
        if any("\0" in word for word in (*options, *job.argv)):  # NUL separates options, so it could add some
            raise ToolFailed(Category.INVALID_INPUT, "the command contains the character NUL; leave it out")
        started_s = asyncio.get_running_loop().time()
        with _Handles() as handles:
            sandbox = await _start_sandbox(program, options, job, handles, origin)
            ran = await _supervise(sandbox, job, progress)
            # Read through the handle that was opened while the command ran: its namespace has ended by now.
            view = sandbox.view or Path(origin.sources.get(self._root.resolve(), self._root))
            if job.wanted:
                ran = await asyncio.to_thread(with_wanted, ran, view, job.wanted)
            # Exit 1 alone is no sign: bubblewrap ends with it when it can't start, and so do most commands that fail.
            is_started = sandbox.has_started()
        took_ms = round((asyncio.get_running_loop().time() - started_s) * 1_000)
        if ran.exit == 1 and not is_started and not ran.stopped:
            raise _not_started(ran.stderr.strip(), job)
        return msgspec.structs.replace(ran, took_ms=took_ms)

    @property
    def is_there(self) -> bool:
        """Whether there is a program to make it."""
        try:
            self._program()
        except ToolFailed:
            return False
        return True

    async def trial(self) -> str:
        """Try to escape from the sandbox, once per process; empty if nothing could."""
        try:
            program = self._program()
        except ToolFailed as error:
            return error.message
        trial = tried(
            program, lambda scene: Bubblewrap(scene.root, program=program, private=scene.private, read=scene.read)
        )
        verdict, _ = await asyncio.gather(trial, self._way_here(program))  # the first check needs both
        return verdict

    async def _way_here(self, program: str) -> ViewKind:
        python = [Path(sys.base_prefix), Path(sys.base_exec_prefix)]
        return await way_here(program, lambda root, way: Bubblewrap(root, program=program, read=python, way=way))

    def _program(self) -> str:
        """The path of bubblewrap; ToolFailed says what is missing, and how to get it."""
        if not sys.platform.startswith("linux"):
            raise _unusable("commands need a sandbox, which needs Linux; use a Linux machine or container")
        if platform.machine() not in MACHINES:
            raise _unusable(f"the sandbox supports the processors {', '.join(MACHINES)}, not {platform.machine()}")
        root = self._root.resolve()
        candidates = _candidates(self._named or "bwrap")
        # What the project brings along would be run outside, with all rights of the user.
        if found := next((one for one in candidates if root not in Path(one).resolve().parents), None):
            return found
        if candidates:
            # A command or a stranger could have put it there, to be run outside of the sandbox.
            raise _unusable(f"{candidates[0]} is in the project, where commands could change it; {HOW_TO_GET}")
        raise _unusable(f"{self._named or 'bubblewrap'} was not found; {HOW_TO_GET}")


@dataclass(frozen=True)
class _FolderSources:
    """Where the content of a sandbox's folders comes from."""

    sources: Mapping[Path, str] = field(default_factory=dict)
    """By folder: what is shown there instead of itself."""
    covered: Sequence[Path] = ()
    """Sockets in folders that are shown as they are."""
    overlaid: str = ""
    """Which of these is the project, if overlays are made first."""
    plan: bytes = b""
    """What the program that makes the overlays reads."""


def _overlaid(overlays: Overlays, job: Job) -> _FolderSources:
    sources = overlays.sources()
    project = sources[overlays.changeable[0]]
    return _FolderSources(sources, overlaid=project, plan=overlays.plan(job.bounds.memory_bytes))


@dataclass
class _RunningSandbox:
    """A sandbox that is running."""

    process: Process
    """bubblewrap, outside."""
    pid: int
    """The first process inside: when it ends, the kernel ends all others."""
    handle: int
    status: int
    """Where bubblewrap reports the end of its command, which has no access to it."""
    group: TaskLimit | None = None
    """The control group that limits its processes, where there is one."""
    view: Path | None = None
    """The project as the command sees it, held open from outside; only if something in it is wanted."""
    stopped: Stopped = ""
    output: dict[str, bytearray] = field(default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()})

    def has_started(self) -> bool:
        """Whether the command was started, once everything has ended. Not read from its output, where it can say
        anything: bubblewrap reports an exit code only of a command that it has started."""
        os.set_blocking(self.status, False)
        with suppress(BlockingIOError):
            return b'"exit-code"' in os.read(self.status, STATUS_BYTES_MAX)
        return False

    def stop(self, why: Stopped) -> None:
        """Kill everything in it at once."""
        self.stopped = self.stopped or why
        self.kill()

    def kill(self) -> None:
        """The same, without a reason."""
        with suppress(ProcessLookupError):
            # By a handle, not by number: the number of an ended process may belong to another one by now.
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
        # bubblewrap reads on from where the shared position is.
        os.lseek(handle, 0, os.SEEK_SET)
        return handle

    def folder(self, path: str) -> Path:
        """A folder that stays reachable when the namespace of its path has ended."""
        handle = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._open.add(handle)
        return Path(f"/proc/self/fd/{handle}")

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


async def _start_sandbox(
    program: str, options: Sequence[str], job: Job, handles: _Handles, origin: _FolderSources
) -> _RunningSandbox:
    """Start the command with its limits set; ToolFailed if the sandbox could not be created, NoOverlay if it is only
    that its overlays could not."""
    info, info_writer = handles.pipe()
    status, status_writer = handles.pipe()
    gate = handles.gate()
    plan = handles.content("".join(f"{option}\0" for option in options).encode())
    # Namespaces hide things; the filter removes the system calls by which kernels were escaped from most often.
    calls = handles.content(filter_program(platform.machine()))
    # The environment of a command is passed in a file, because all users can see the arguments of a process.
    extras = ["--info-fd", str(info_writer), "--json-status-fd", str(status_writer)]
    extras += ["--block-fd", str(gate), "--seccomp", str(calls)]
    first, more = _overlay_start(origin, handles)
    command = (*first, program, "--args", str(plan), *extras, "--", *job.argv)
    process = await _start_process(command, (plan, calls, info_writer, status_writer, gate, *more))
    try:
        handles.close(info_writer, status_writer)
        pid = await _first_pid(info)
        sandbox = _RunningSandbox(process, pid, handles.process(pid), status)
        limit(pid, job.bounds)
        # A few more than the watch allows: a command over the limit is then killed, not only denied more processes.
        sandbox.group = limit_tasks(pid, threads_max(job.bounds) + BEYOND)
        if job.wanted and origin.overlaid:
            sandbox.view = handles.folder(f"/proc/{process.pid}/root{origin.overlaid}")
        os.write(gate, b"!")  # bubblewrap waits for this before it runs the command
    except (OSError, ValueError, TimeoutError) as error:
        words = await _abandon(process)
        if words.startswith(FAILED):
            raise NoOverlay(words.removeprefix(FAILED)) from error
        raise _unusable(f"the sandbox could not be created: {words or error}") from error
    except asyncio.CancelledError:
        await _abandon(process)
        raise
    return sandbox


def _overlay_start(origin: _FolderSources, handles: _Handles) -> tuple[Sequence[str], Sequence[int]]:
    """The words that make overlays before bubblewrap starts, if there are any, and the file that these need."""
    if not origin.plan:
        return (), ()
    plan = handles.content(origin.plan)
    return (sys.executable, "-I", "-S", "-B", "-c", START, str(plan)), (plan,)


async def _start_process(words: Sequence[str], handles: Sequence[int]) -> Process:
    """Start bubblewrap. A cancelled caller waits until it is started: only then can it be killed with its child."""
    # Some Pythons do not find their own library without this; bubblewrap itself gets no environment.
    env = {LIBRARIES: os.environ[LIBRARIES]} if words[0] == sys.executable and LIBRARIES in os.environ else {}
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env, cwd="/", pass_fds=handles, start_new_session=True
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
    stdout, stderr = (sandbox.output[name].decode(errors="replace") for name in ("stdout", "stderr"))
    exit_code = code if code >= 0 else 128 - code
    return Ran(exit=exit_code, stdout=stdout, stderr=stderr, took_ms=0, stopped=sandbox.stopped)


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


def _not_started(words: str, job: Job) -> ToolFailed:
    """Why a command was not started, in bubblewrap's words: the command has printed nothing yet."""
    if words.startswith("bwrap: execvp "):
        hint = "it has the system's folders and the project; ask a person if it needs more"
        return ToolFailed(Category.NOT_FOUND, f"there is no program {job.argv[0][:200]} in the sandbox; {hint}")
    if words.startswith("bwrap: Can't chdir"):
        return ToolFailed(Category.NOT_FOUND, f"there is no folder {job.cwd or '.'} to start in; create it first")
    return _unusable(f"the sandbox could not be created: {words[-WORDS_MAX:]}")


def _candidates(name: str) -> list[str]:
    """The programs of that name: an absolute path, or one for each folder of PATH."""
    if os.sep in name:
        return [name] if Path(name).is_absolute() and shutil.which(name) else []
    return list(programs_named(name))


def _unusable(message: str) -> ToolFailed:
    return ToolFailed(Category.PERMISSION, message)
