"""Copies of a project, for machines without overlays: a command works on the copy, which is removed at its end.

Slow for large projects, but needs nothing from the kernel. Plain files, folders and links are copied, on file systems
that can do so without copying content; sockets, pipes and devices are left out. A copy whose process was killed is
removed by the next one."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Final, Protocol

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed
from handrail.foundation.open_flags import NO_BLOCK, NO_FOLLOW
from handrail.foundation.program_search import programs_named

PREFIX: Final = "handrail-view-"
FILES_MAX: Final = 200_000
BYTES_MAX: Final = 4_294_967_296
BLOCK_BYTES: Final = 1_073_741_824
TOO_LARGE: Final = (
    f"the project has more than {FILES_MAX:,} files or {BYTES_MAX // 1_000_000:,} MB, too much to copy for a command "
    "that must not change it; with a sandbox and overlays in user namespaces (Linux 5.11 or newer) nothing is copied"
)


@asynccontextmanager
async def scratch_folder() -> AsyncIterator[Path]:
    """A folder of our own that is removed afterwards, whatever is in it."""
    making = asyncio.ensure_future(asyncio.to_thread(_new_folder))
    try:
        yield await asyncio.shield(making)
    finally:
        # A cancellation, be it a second one or while the thread makes the folder, must not leave it behind.
        await asyncio.shield(_remove_made(making))


class CopyRules(Protocol):
    """What of a project is not simply copied."""

    def takes(self, source: Path, target: Path) -> bool:
        """Whether a folder was put into the copy in another way, so that its content is not copied."""
        ...

    def link(self, source: Path) -> Path:
        """Where a link of the project leads to in the copy."""
        ...


class AsItIs:
    """Copies everything: for a command that finds the copy at the path of the project."""

    def takes(self, source: Path, target: Path) -> bool:
        """Never."""
        return False

    def link(self, source: Path) -> Path:
        """The same place."""
        return source.readlink()


AS_IT_IS: Final = AsItIs()


@asynccontextmanager
async def project_copy(
    root: Path, *, private: Sequence[Path], rules: Callable[[Path], CopyRules] = lambda _: AS_IT_IS
) -> AsyncIterator[Path]:
    """A copy of a project without the content of private folders; ToolFailed if that can't be made.

    `rules` is given where the copy will be, which has the name of the project's folder."""
    async with scratch_folder() as folder:
        copy = folder / (root.name or "project")
        copier = _Copier([*private, folder], rules(copy))  # it may be in the project, if temporary files are
        copying = asyncio.ensure_future(asyncio.to_thread(copier.copy, root, copy))
        try:
            await asyncio.shield(copying)
        except asyncio.CancelledError:
            # The thread can't be cancelled; without waiting for it, it would go on writing into a folder that is being
            # removed.
            copier.stopped.set()
            await asyncio.wait([copying])
            raise
        except OSError as error:
            message = f"the project can't be copied for a command that must not change it: {error}"
            raise ToolFailed(Category.PERMISSION, message) from error
        yield copy


async def remove(folder: Path) -> None:
    """Remove a folder with commands of the system: they can remove any depth of folders, and any mode after chmod."""
    for words in (("rm", "-rf"), ("chmod", "-R", "u+rwx"), ("rm", "-rf")):
        if await asyncio.to_thread(folder.exists):
            program = next(programs_named(words[0]), words[0])
            argv = (program, *words[1:], "--", str(folder))
            process = await asyncio.create_subprocess_exec(*argv, stdout=DEVNULL, stderr=DEVNULL)
            await process.wait()


async def _remove_made(making: asyncio.Future[Path]) -> None:
    await asyncio.wait([making])
    if making.exception() is None:
        await remove(making.result())


def _new_folder() -> Path:
    above = Path(tempfile.gettempdir()).resolve()
    for left in above.glob(f"{PREFIX}*"):
        owner = left.name.removeprefix(PREFIX).partition("-")[0]
        # Left behind by a process that was killed: its name has the number of the process for this.
        if owner.isdigit() and _has_ended(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=above))


def _has_ended(process: int) -> bool:
    """Whether a process is gone; where that can't be asked without harm, it counts as running."""
    if os.name != "posix":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


class _Copier:
    """Copies a project, within limits."""

    def __init__(self, private: Sequence[Path], rules: CopyRules) -> None:
        self.stopped = Event()
        self._private = frozenset(map(str, private))
        self._rules = rules
        self._files = self._bytes = 0

    def copy(self, source: Path, target: Path) -> None:
        """Copy a folder, without recursion: folders may be nested deeply. Paths are texts, because there are many."""
        target.mkdir()
        open_folders = [(str(source), str(target))]
        folders = []
        while open_folders and not self.stopped.is_set():
            one = open_folders.pop()
            folders.append(one)
            with suppress(FileNotFoundError):  # removed meanwhile
                open_folders += self._copied(*one)
        for original, copied in reversed(folders):  # times and modes last: writing into a folder changes its time
            with suppress(FileNotFoundError):
                shutil.copystat(original, copied, follow_symlinks=False)

    def _copied(self, source: str, target: str) -> list[tuple[str, str]]:
        inner = []
        with os.scandir(source) as entries:
            for entry in entries:
                path, other = entry.path, f"{target}/{entry.name}"
                with suppress(FileNotFoundError):  # removed meanwhile
                    if entry.is_symlink():
                        Path(other).symlink_to(self._rules.link(Path(path)))
                    elif entry.is_file(follow_symlinks=False):
                        self._copy_file(path, other)
                    elif entry.is_dir(follow_symlinks=False) and not self._rules.takes(Path(path), Path(other)):
                        Path(other).mkdir()
                        inner += [(path, other)] if path not in self._private else []
        return inner

    def _copy_file(self, source: str, target: str) -> None:
        try:
            # Without blocking: a named pipe in the project would otherwise hold up the copy without end.
            reading = os.open(source, os.O_RDONLY | NO_FOLLOW | NO_BLOCK)
        except PermissionError:  # a command could not read it either
            return
        try:
            status = os.fstat(reading)
            self._count(status.st_size)
            writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                _copy_content(reading, writing)
            finally:
                os.close(writing)
        finally:
            os.close(reading)
        Path(target).chmod(stat.S_IMODE(status.st_mode))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _count(self, size: int) -> None:
        self._files += 1
        self._bytes += size
        if self._files > FILES_MAX or self._bytes > BYTES_MAX:
            raise ToolFailed(Category.PERMISSION, TOO_LARGE)


def _copy_content(reading: int, writing: int) -> None:
    try:
        while os.copy_file_range(reading, writing, BLOCK_BYTES):  # shares the content where the file system can
            pass
    except (OSError, AttributeError):  # between two file systems, on older kernels; only Linux has it
        os.lseek(reading, 0, os.SEEK_SET)
        os.ftruncate(writing, 0)
        with os.fdopen(reading, "rb", closefd=False) as source, os.fdopen(writing, "wb", closefd=False) as target:
            shutil.copyfileobj(source, target)
