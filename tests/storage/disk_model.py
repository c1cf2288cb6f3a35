"""A model of a disk, built from what strace saw a process do, and what a power cut may leave of it.

Strict, as POSIX is: what was written to a file is safe only when that file was synced afterwards; a new, removed or
renamed name is safe only when its folder was synced afterwards. Of everything else, any part may be there or not,
down to single sectors. The `-shm` files are shared memory, and are rebuilt by whoever opens the database."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

SECTOR = 512
LINE = re.compile(r"^(?P<pid>\d+) +(?P<text>.*)$")
RESUMED = re.compile(r"^<\.\.\. (?P<name>\w+) resumed>(?P<rest>.*)$")
CALL = re.compile(r"^(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)(?: .*)?$", re.DOTALL)
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
SYSCALLS = (
    "openat,close,pwrite64,write,writev,pwritev,fsync,fdatasync,ftruncate,?unlink,unlinkat,?rename,renameat,renameat2"
)
"""All that can change a file or make it safe; those with a mark are not known to every processor."""


@dataclass(frozen=True)
class Call:
    """A system call that succeeded; `began` and `ended` are its places in the order of all that happened."""

    name: str
    arguments: str
    result: int
    began: int
    ended: int

    def text(self, number: int = 0) -> bytes:
        """The n-th string among the arguments, as bytes."""
        return bytes.fromhex(STRING.findall(self.arguments)[number].replace("\\x", ""))

    def number(self, at: int) -> int:
        """The argument at a place; strings in between hold no commas, as they are written in hexadecimal."""
        return int(self.arguments.split(", ")[at])


def calls(trace: Path) -> Iterator[Call]:
    """The successful calls in a trace made by `strace -f -xx -o`, in the order in which they ended."""
    begun: dict[str, tuple[int, str]] = {}
    for place, line in enumerate(trace.read_text().splitlines()):
        match = LINE.match(line)
        assert match, line
        pid, text = match["pid"], match["text"]
        if text.endswith("<unfinished ...>"):
            begun[pid] = place, text.removesuffix("<unfinished ...>").rstrip()
            continue
        began = place
        if resumed := RESUMED.match(text):
            began, start = begun.pop(pid)
            text = start + resumed["rest"]
        call = CALL.match(text)
        if call and int(call["result"]) >= 0:
            yield Call(call["name"], call["arguments"], int(call["result"]), began, place)


@dataclass(frozen=True)
class Write:
    """Bytes that a process put at an offset of a file."""

    offset: int
    content: bytes
    ended: int


@dataclass(frozen=True)
class Cut:
    """A file's new length."""

    length: int
    ended: int


@dataclass
class File:
    """What is surely on the disk, and what may be."""

    name: str
    synced: bytearray = field(default_factory=bytearray)
    pending: list[Write | Cut] = field(default_factory=list)

    def sync(self, began: int) -> None:
        """What ended before the sync began is safe now."""
        for change in [one for one in self.pending if one.ended < began]:
            apply(self.synced, change)
            self.pending.remove(change)

    def after_power_cut(self, chance: random.Random) -> bytes:
        """The synced bytes, and of the rest whatever chance leaves."""
        content = bytearray(self.synced)
        for change in self.pending:
            fate = chance.random()
            if fate < 0.4:
                apply(content, change)
            elif fate < 0.6 and isinstance(change, Write):
                for sector in sectors(change):
                    if chance.random() < 0.5:
                        apply(content, sector)
        return bytes(content)


def apply(content: bytearray, change: Write | Cut) -> None:
    length = change.length if isinstance(change, Cut) else change.offset + len(change.content)
    if isinstance(change, Cut):
        del content[length:]
    if len(content) < length:
        content.extend(bytes(length - len(content)))
    if isinstance(change, Write):
        content[change.offset : length] = change.content


def sectors(write: Write) -> Iterator[Write]:
    """The parts of a write that a disk writes as one."""
    at = write.offset
    while at < write.offset + len(write.content):
        end = min((at // SECTOR + 1) * SECTOR, write.offset + len(write.content))
        yield Write(at, write.content[at - write.offset : end - write.offset], write.ended)
        at = end


@dataclass
class Disk:
    """The files of one folder, as a process has made them; fed with its calls, one by one."""

    folder: str
    names: dict[str, File] = field(default_factory=dict)
    safe_names: dict[str, File] = field(default_factory=dict)
    renamings: list[tuple[int, str, File | None]] = field(default_factory=list)
    handles: dict[int, File | str] = field(default_factory=dict)

    def see(self, call: Call) -> None:
        """Let a call change the disk."""
        match call.name:
            case "openat":
                self._open(call)
            case "close":
                self.handles.pop(call.number(0), None)
            case "pwrite64":
                self._change(call, lambda: Write(call.number(3), call.text(), call.ended))
            case "ftruncate":
                self._change(call, lambda: Cut(call.number(1), call.ended))
            case "fsync" | "fdatasync":
                self._sync(call)
            case "unlink" | "unlinkat":
                if name := self._name(call.text()):
                    self._rename(call, name, None)
            case "rename" | "renameat" | "renameat2":
                assert not self._name(call.text(1)), "the model knows no renaming"
            case _:
                assert not self.file(call), f"the model knows no {call.name} to the files it watches"

    def after_power_cut(self, chance: random.Random) -> dict[str, bytes]:
        """What may be found in the folder when the power comes back."""
        names = dict(self.safe_names)
        for _, name, file in self.renamings:
            if chance.random() < 0.5:
                put_name(names, name, file)
        return {name: file.after_power_cut(chance) for name, file in names.items()}

    def file(self, call: Call) -> File | None:
        """The file in the folder that a call is about, by its first argument."""
        handle = self.handles.get(call.number(0))
        return handle if isinstance(handle, File) else None

    def _open(self, call: Call) -> None:
        path = call.text()
        if path.decode() == self.folder:
            self.handles[call.result] = self.folder
        elif name := self._name(path):
            if name not in self.names:
                self._rename(call, name, File(name))
            self.handles[call.result] = self.names[name]
        else:
            self.handles.pop(call.result, None)

    def _name(self, path: bytes) -> str | None:
        place = PurePosixPath(path.decode())
        return place.name if str(place.parent) == self.folder and not place.name.endswith("-shm") else None

    def _rename(self, call: Call, name: str, file: File | None) -> None:
        put_name(self.names, name, file)
        self.renamings.append((call.ended, name, file))

    def _change(self, call: Call, change: Callable[[], Write | Cut]) -> None:
        if file := self.file(call):
            file.pending.append(change())

    def _sync(self, call: Call) -> None:
        handle = self.handles.get(call.number(0))
        if isinstance(handle, File):
            handle.sync(call.began)
        elif handle is not None:
            for renaming in [one for one in self.renamings if one[0] < call.began]:
                put_name(self.safe_names, renaming[1], renaming[2])
                self.renamings.remove(renaming)


def put_name(names: dict[str, File], name: str, file: File | None) -> None:
    if file is None:
        names.pop(name, None)
    else:
        names[name] = file
