"""Snapshots: what a server answered to the methods that every client asks first, kept in a file, with what it rests on.

The file begins with a stamp of all that the answers depend on, which is compared as a whole; so a stale snapshot is
never read. Making the answers is the work of recording.py, giving them that of clerk.py. Only `os` is needed here."""

from __future__ import annotations

import os
import sys
from binascii import crc32
from collections.abc import Iterator
from itertools import islice
from typing import Final

from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.interfaces.mcp.stdio.clerk import Answers
from handrail.interfaces.mcp.stdio.places import Places

FORMAT: Final = b"handrail snapshot 1"
FILE_BYTES_MAX: Final = 2_000_000
FILES_MAX: Final = 20
STAMPED_MAX: Final = 5_000
"""How many files are looked at; whoever has more does without a snapshot."""
PACKAGE: Final = __file__.rsplit("interfaces", 1)[0]


class Snapshot:
    """The file that would hold the answers of a server like this one."""

    def __init__(self, places: Places, toolsets: tuple[str, ...]) -> None:
        self._places, self._toolsets = places, toolsets
        self.stamp = self._stamp()

    def load(self) -> Answers | None:
        """The answers, if there is a file and nothing has changed since it was written."""
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
        if size != str(len(lines)).encode():  # the power went out while it was written
            return None
        return dict(_answer(line) for line in lines.splitlines())

    def save(self, answers: Answers) -> bool:
        """Keep these answers for the next start; False: something has changed meanwhile, or they are too many."""
        if self.stamp is None or self.stamp != self._stamp():
            return False
        lines = b"".join(b"%s %s %s\n" % (v.encode(), m.encode(), result) for (v, m), result in answers.items())
        data = _head(self.stamp) + str(len(lines)).encode() + b"\n" + lines
        if len(data) > FILE_BYTES_MAX:
            return False
        make_private_folder(self._places.snapshots)
        write_whole(self._file(self.stamp), data, is_synced=False)
        _remove_old(self._places.snapshots)
        return True

    def _file(self, stamp: bytes) -> str:
        return os.path.join(self._places.snapshots, f"{crc32(stamp):08x}.snapshot")

    def _stamp(self) -> bytes | None:
        """Everything that the answers depend on; None: too much to look at."""
        said = list(islice(self._said(), STAMPED_MAX + 1))
        return None if len(said) > STAMPED_MAX else "\n".join(said).encode("utf-8", "surrogateescape")

    def _said(self) -> Iterator[str]:
        home, project = self._places
        mine = os.path.join(project, ".handrail")
        yield from (sys.version, *self._toolsets, home, project)
        for folder in sys.path:
            yield from _packages(folder or os.curdir)
        for folder in (home, mine):
            yield from (_mark(f"{folder}/config.toml"), _mark(f"{folder}/tools.json"))
        for folder in (PACKAGE, f"{mine}/workflows", f"{home}/workflows"):
            yield from _marks(folder)


def _head(stamp: bytes) -> bytes:
    return FORMAT + b" " + str(len(stamp)).encode() + b"\n" + stamp + b"\n"


def _answer(line: bytes) -> tuple[tuple[str, str], bytes]:
    version, method, result = line.split(b" ", 2)
    return (version.decode(), method.decode()), result


def _packages(folder: str) -> Iterator[str]:
    """A folder of installed packages changes whenever one comes or goes, be it the SDK or handrail itself."""
    if os.path.isfile(f"{folder}/mcp/__init__.py") or os.path.isdir(f"{folder}/handrail"):
        yield _mark(folder)
        yield _mark(f"{folder}/mcp/__init__.py")


def _marks(folder: str) -> Iterator[str]:
    """A mark of each file in a folder and below."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        if entry.name.startswith((".", "__pycache__")):
            continue
        if entry.is_dir():
            yield from _marks(entry.path)
        else:
            yield _mark(entry.path)


def _mark(path: str) -> str:
    try:
        seen = os.stat(path)
    except OSError:
        return f"{path} -"
    return f"{path} {seen.st_mtime_ns} {seen.st_size}"


def _remove_old(folder: str) -> None:
    with os.scandir(folder) as entries:
        files = sorted(((entry.stat().st_mtime_ns, entry.path) for entry in entries), reverse=True)
    for _, path in files[FILES_MAX:]:
        os.unlink(path)
