"""Overlays: a command sees the project's files and may change them, and the changes are gone when it ends.

The kernel's overlay file system keeps what is written in a folder in memory that only the sandbox has, so that even a
killed handrail leaves nothing behind. A socket seen through an overlay refuses every connection; one in a folder that
can have no overlay is covered. bubblewrap 0.8 can't
make overlays, so a small program (START) makes them in namespaces of its own and then becomes bubblewrap.
Which way is used on this machine is decided in throw_away.py."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from handrail.tools.sandbox.shown_sockets import ENTRIES_MAX as LOOKS_MAX
from handrail.tools.sandbox.shown_sockets import LISTENING

PLACE: Final = "/sys"
"""Where the overlays are mounted, in the namespace of the starting program: no command sees or needs it."""
FAILED: Final = "handrail-overlay: "
"""How the starting program starts its error message."""
ENTRIES_MAX: Final = 1_000
FILES_MAX: Final = 1_000_000
MOUNTS: Final = Path("/proc/self/mountinfo")
START: Final = r"""
import ctypes, json, os, signal, stat, sys
NEW_MOUNTS, NEW_USERS, PRIVATE, RECURSIVE, BIND, NO_SUID_NO_DEVICES = 0x20000, 0x10000000, 0x40000, 0x4000, 0x1000, 6
libc = ctypes.CDLL(None, use_errno=True)
def end(words):
    os.write(2, ("FAILED" + words).encode())
    os._exit(1)
def mount(source, place, kind, flags, data=None):
    given = [None if one is None else os.fsencode(one) for one in (source, place, kind)]
    return libc.mount(*given, ctypes.c_ulong(flags), None if data is None else os.fsencode(data)) == 0
def require(done, words):
    if not done:
        end(words + ": " + os.strerror(ctypes.get_errno()))
def write(place, text):
    with open(place, "w") as file:
        file.write(text)
def folder(path):
    os.mkdir(path)
    return path
def held(path):
    # By its number, because a path may contain what separates options.
    return "/proc/self/fd/%d" % os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
def own_namespaces():
    # The superuser needs no namespace of users, and then files of other users can be changed, too.
    if os.geteuid() == 0 and not plan["as_user"] and libc.unshare(NEW_MOUNTS) == 0:
        return ""
    uid, gid = os.geteuid(), os.getegid()
    require(libc.unshare(NEW_USERS | NEW_MOUNTS) == 0, "no namespaces")
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", "%d %d 1" % (uid, uid))
    write("/proc/self/gid_map", "%d %d 1" % (gid, gid))
    return ",userxattr"
def changeable(path, own, kept_in):
    lower, above = held(path), folder(kept_in + "/upper")
    found = os.stat(path)
    os.chmod(above, found.st_mode & 0o777)
    if os.geteuid() == 0 and not more:
        os.chown(above, found.st_uid, found.st_gid)
    data = "lowerdir=%s,upperdir=%s,workdir=%s%s" % (lower, held(above), held(folder(kept_in + "/work")), more)
    require(mount("overlay", own, "overlay", NO_SUID_NO_DEVICES, data), "no overlay of " + path)
def readable(path, own):
    data = "lowerdir=%s:%s%s" % (held(path), held("PLACE/empty"), more)
    if not mount("overlay", own, "overlay", NO_SUID_NO_DEVICES, data):
        require(mount(path, own, None, BIND | RECURSIVE), "no view of " + path)
        cover_sockets(own)
def cover_sockets(own):
    left = plan["looks_max"]
    for above, _, names in os.walk(own):
        left -= len(names)
        if left < 0:
            end("too many files to look for sockets")
        for path in [above + "/" + name for name in names]:
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                require(mount("/dev/null", path, None, BIND), "no cover of " + path)
with open(int(sys.argv[1])) as file:
    plan = json.load(file)
mask = os.umask(0o022)
try:
    more = own_namespaces()
    libc.prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != plan["parent"]:
        os._exit(1)
    require(mount(None, "/", None, PRIVATE | RECURSIVE), "mounts are shared")
    room = "size=%d,nr_inodes=%d,mode=0755" % (plan["bytes_max"], plan["files_max"])
    require(mount("handrail", "PLACE", "tmpfs", NO_SUID_NO_DEVICES, room), "no memory")
    for name in ("empty", "tmp", "shm"):
        folder("PLACE/" + name)
    for number, (path, is_changeable) in enumerate(plan["layers"]):
        own = folder("PLACE/%d" % number)
        if is_changeable:
            changeable(path, folder(own + "/view"), folder((plan["scratch"] or own) + "/kept%d" % number))
        else:
            readable(path, folder(own + "/view"))
except OSError as error:
    end(str(error))
os.umask(mask)
os.execve(sys.argv[2], sys.argv[2:], {})
""".replace("FAILED", FAILED).replace("PLACE", PLACE)


class NoOverlay(Exception):
    """There can be no overlay of this project; the message says why."""


class _Plan(msgspec.Struct, frozen=True):
    """What the starting program reads."""

    layers: tuple[tuple[str, bool], ...]
    bytes_max: int
    scratch: str
    as_user: bool
    parent: int
    files_max: int = FILES_MAX
    looks_max: int = LOOKS_MAX


@dataclass(frozen=True)
class Overlays:
    """The overlays of one command."""

    changeable: tuple[Path, ...]
    """The project, and what is mounted in it."""
    readable: tuple[Path, ...]
    scratch: str = ""
    """A folder for what is written; in memory if it is empty."""
    as_user: bool = False
    """Whether the superuser makes them like any other user: for tests."""

    def sources(self) -> Mapping[Path, str]:
        """By folder: where the starting program mounts what a command sees there."""
        folders = (*self.changeable, *self.readable)
        rooms = {Path("/tmp"): f"{PLACE}/tmp", Path("/dev/shm"): f"{PLACE}/shm"}  # noqa: S108 - the sandbox's own
        return {**rooms, **{folder: f"{PLACE}/{number}/view" for number, folder in enumerate(folders)}}

    def plan(self, bytes_max: int) -> bytes:
        """What the starting program is to do; a command may write at most so much, /tmp included."""
        layers = (*((str(one), True) for one in self.changeable), *((str(one), False) for one in self.readable))
        found = _Plan(
            layers=layers, bytes_max=bytes_max, scratch=self.scratch, as_user=self.as_user, parent=os.getpid()
        )
        return msgspec.json.encode(found)


def overlays_of(root: Path, read: Sequence[Path], *, scratch: str = "", as_user: bool = False) -> Overlays:
    """The overlays for a command of this project; NoOverlay if they would not let it work as it expects."""
    if os.geteuid() != 0 and (name := _of_another_group(root)):
        # The kernel can't copy it: its group does not exist in the namespace.
        raise NoOverlay(f"{name} belongs to another group than new files")
    inner = [path for path in mounted_in(root) if path.is_dir()]
    more = [LISTENING] if LISTENING.is_dir() and not LISTENING.is_symlink() else []
    readable = tuple(dict.fromkeys((*more, *read)))
    return Overlays((root, *inner), readable, scratch=scratch, as_user=as_user)


def mounted_in(folder: Path) -> Iterator[Path]:
    """What is mounted in a folder, outer ones first: an overlay does not show it."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    places = {Path(_unescaped(line.split(" ")[4])) for line in lines if line.count(" ") > 4}
    yield from sorted(place for place in places if folder in place.parents)


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _of_another_group(root: Path) -> str:
    """One of our files here whose group is not our own; projects are rarely mixed, so only the top is looked at."""
    own = (os.geteuid(), os.getegid())
    for path, status in _top(root):
        if status.st_uid == own[0] and status.st_gid != own[1] and not stat.S_ISLNK(status.st_mode):
            return path
    return ""


def _top(root: Path) -> Iterable[tuple[str, os.stat_result]]:
    yield ".", root.stat()
    with os.scandir(root) as entries:
        for entry in islice(entries, ENTRIES_MAX):
            yield entry.name, entry.stat(follow_symlinks=False)
