"""The snapshot file: what a server answered to the methods that every client calls first.

The file starts with a stamp of everything the answers depend on. The whole stamp is compared, so a stale snapshot is
never used. Answers are made in recording.py and given in snapshot_answers.py. Only `os` is needed here."""

from __future__ import annotations

import os
import sys
from binascii import crc32
from collections.abc import Iterator
from itertools import islice
from typing import Final

from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.interfaces.mcp.stdio.folders import Folders
from handrail.interfaces.mcp.stdio.snapshot_answers import RecordedResults

FORMAT: Final = b"handrail snapshot 1"
FILE_BYTES_MAX: Final = 2_000_000
FILES_MAX: Final = 20
STAMPED_MAX: Final = 5_000
"""How many files go into a stamp; with more files there is no snapshot."""
PACKAGE: Final = __file__.rsplit("interfaces", 1)[0]


class SnapshotFile:
    """The snapshot file of a server with these folders and toolsets; it may not exist yet."""

    def __init__(self, folders: Folders, toolsets: tuple[str, ...]) -> None:
        self._folders, self._toolsets = folders, toolsets
        self.stamp = self._stamp()

    def load(self) -> RecordedResults | None:
        """The answers, if the file exists and nothing has changed since it was written."""
        if self.stamp is None:
            return None
        try:
            with open(self._file(self.stamp), "rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
        except OSError:
            return None
        head, body = _head(self.stamp), data[len(_head(self.stamp)) :]
        if not data.startswith(head) or len(data) > FILE_BYTES_MAX:
            return None
        size, _, lines = body.partition(b"\n")
        if size != str(len(lines)).encode():  # save() doesn't fsync: a power cut can leave the file incomplete
            return None
        return dict(_answer(line) for line in lines.splitlines())

    def save(self, answers: RecordedResults) -> bool:
        """Save these answers for the next start; False if something has changed meanwhile, or they are too large."""
        if self.stamp is None or self.stamp != self._stamp():
            return False
        lines = b"".join(b"%s %s %s\n" % (v.encode(), m.encode(), result) for (v, m), result in answers.items())
        data = _head(self.stamp) + str(len(lines)).encode() + b"\n" + lines
        if len(data) > FILE_BYTES_MAX:
            return False
        make_private_folder(self._folders.snapshots)
        write_whole(self._file(self.stamp), data, is_synced=False)
        _remove_old(self._folders.snapshots)
        return True

    def _file(self, stamp: bytes) -> str:
        return os.path.join(self._folders.snapshots, f"{crc32(stamp):08x}.snapshot")

    def _stamp(self) -> bytes | None:
        """Everything that the answers depend on; None if there are too many files."""
        parts = list(islice(self._stamp_parts(), STAMPED_MAX + 1))
        return None if len(parts) > STAMPED_MAX else "\n".join(parts).encode("utf-8", "surrogateescape")

    def _stamp_parts(self) -> Iterator[str]:
        home, project = self._folders
        project_folder = os.path.join(project, ".handrail")
        yield from (sys.version, *self._toolsets, home, project)
        for folder in sys.path:
            yield from _packages(folder or os.curdir)
        for folder in (home, project_folder):
            yield from (_mark(f"{folder}/config.toml"), _mark(f"{folder}/tools.json"))
        yield _mark(f"{home}/trust.json")  # it decides what counts of the project's files
        workflows = os.path.realpath(f"{project_folder}/workflows")
        inside = [workflows] if workflows.startswith(os.path.realpath(project)) else []
        for folder in (PACKAGE, *inside, f"{home}/workflows"):
            yield from _marks(folder)


def _head(stamp: bytes) -> bytes:
    return FORMAT + b" " + str(len(stamp)).encode() + b"\n" + stamp + b"\n"


def _answer(line: bytes) -> tuple[tuple[str, str], bytes]:
    version, method, result = line.split(b" ", 2)
    return (version.decode(), method.decode()), result


def _packages(folder: str) -> Iterator[str]:
    """Marks of a folder of installed packages: it changes when the SDK or handrail is installed or upgraded."""
    if os.path.isfile(f"{folder}/mcp/__init__.py") or os.path.isdir(f"{folder}/handrail"):
        yield _mark(folder)
        yield _mark(f"{folder}/mcp/__init__.py")


def _marks(folder: str) -> Iterator[str]:
    """A mark of each file in a folder and its subfolders."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        if entry.name.startswith((".", "__pycache__")):
            continue
        if entry.is_dir(follow_symlinks=False):  # the library follows no linked folders either
            yield from _marks(entry.path)
        else:
            yield _mark(entry.path)


def _mark(path: str) -> str:
    """Time and size instead of a hash: reading thousands of files would delay the first answer."""
    try:
        status = os.stat(path)
    except OSError:
        return f"{path} -"
    return f"{path} {status.st_mtime_ns} {status.st_size}"


def _remove_old(folder: str) -> None:
    with os.scandir(folder) as entries:
        files = sorted(((entry.stat().st_mtime_ns, entry.path) for entry in entries), reverse=True)
    for _, path in files[FILES_MAX:]:
        os.unlink(path)
