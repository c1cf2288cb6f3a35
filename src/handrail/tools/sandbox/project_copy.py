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
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Final

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed
from handrail.foundation.open_flags import NO_BLOCK, NO_FOLLOW

PREFIX: Final = "handrail-view-"
FILES_MAX: Final = 200_000
BYTES_MAX: Final = 4_294_967_296
BLOCK_BYTES: Final = 1_073_741_824
TOO_LARGE: Final = (
    f"the project has more than {FILES_MAX:,} files or {BYTES_MAX // 1_000_000:,} MB, too much to copy for a command "
    "that must not change it; allow overlays in user namespaces (Linux 5.11 or newer)"
)


@asynccontextmanager
async def scratch_folder() -> AsyncIterator[Path]:
    """A folder of our own that is removed afterwards, whatever is in it."""
    folder = await asyncio.to_thread(_new_folder)
    try:
        yield folder
    finally:
        await asyncio.shield(remove(folder))


@asynccontextmanager
async def project_copy(root: Path, *, private: Sequence[Path]) -> AsyncIterator[Path]:
    """A copy of a project without the content of private folders; ToolFailed if that can't be made."""
    async with scratch_folder() as folder:
        copier = _Copier(private)
        copying = asyncio.ensure_future(asyncio.to_thread(copier.copy, root, folder / "project"))
        try:
            await asyncio.shield(copying)
        except asyncio.CancelledError:
            copier.stopped.set()
            await asyncio.wait([copying])
            raise
        except OSError as error:
            message = f"the project can't be copied for a command that must not change it: {error}"
            raise ToolFailed(Category.PERMISSION, message) from error
        yield folder / "project"


async def remove(folder: Path) -> None:
    """Remove a folder with commands of the system: they can remove any depth of folders, and any mode after chmod."""
    for words in (("rm", "-rf"), ("chmod", "-R", "u+rwx"), ("rm", "-rf")):
        if await asyncio.to_thread(folder.exists):
            process = await asyncio.create_subprocess_exec(*words, "--", str(folder), stdout=DEVNULL, stderr=DEVNULL)
            await process.wait()


def _new_folder() -> Path:
    above = Path(tempfile.gettempdir())
    for left in above.glob(f"{PREFIX}*"):
        owner = left.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))


class _Copier:
    """Copies a project, within limits."""

    def __init__(self, private: Sequence[Path]) -> None:
        self.stopped = Event()
        self._private = frozenset(private)
        self._files = self._bytes = 0

    def copy(self, source: Path, target: Path) -> None:
        """Copy a folder, without recursion: folders may be nested deeply."""
        target.mkdir()
        open_folders = [(source, target)]
        folders = []
        while open_folders and not self.stopped.is_set():
            one = open_folders.pop()
            folders.append(one)
            open_folders += self._copied(*one)
        for original, copied in reversed(folders):  # times and modes last: writing into a folder changes its time
            shutil.copystat(original, copied, follow_symlinks=False)

    def _copied(self, source: Path, target: Path) -> list[tuple[Path, Path]]:
        inner = []
        for path in source.iterdir():
            other = target / path.name
            with suppress(FileNotFoundError):  # removed meanwhile
                mode = path.lstat().st_mode
                if stat.S_ISDIR(mode):
                    other.mkdir()
                    if path not in self._private:
                        inner.append((path, other))
                elif stat.S_ISLNK(mode):
                    other.symlink_to(path.readlink())
                elif stat.S_ISREG(mode):
                    self._copy_file(path, other)
        return inner

    def _copy_file(self, source: Path, target: Path) -> None:
        try:
            reading = os.open(source, os.O_RDONLY | NO_FOLLOW | NO_BLOCK)
        except PermissionError:  # a command could not read it either
            return
        try:
            self._count(os.fstat(reading).st_size)
            writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                _copy_content(reading, writing)
            finally:
                os.close(writing)
        finally:
            os.close(reading)
        shutil.copystat(source, target, follow_symlinks=False)

    def _count(self, size: int) -> None:
        self._files += 1
        self._bytes += size
        if self._files > FILES_MAX or self._bytes > BYTES_MAX:
            raise ToolFailed(Category.PERMISSION, TOO_LARGE)


def _copy_content(reading: int, writing: int) -> None:
    try:
        while os.copy_file_range(reading, writing, BLOCK_BYTES):  # shares the content where the file system can
            pass
    except OSError:  # between two file systems, on older kernels
        os.lseek(reading, 0, os.SEEK_SET)
        os.ftruncate(writing, 0)
        with os.fdopen(reading, "rb", closefd=False) as source, os.fdopen(writing, "wb", closefd=False) as target:
            shutil.copyfileobj(source, target)
