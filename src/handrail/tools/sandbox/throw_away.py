"""Which way this machine can give a command a view of the project that is thrown away afterwards.

Tried once per process for each bubblewrap, on a small project of our own: everything that builds and tests do must work
there, a socket must be out of reach, and nothing may be left. The first way that holds is used: an overlay in memory
(overlay.py), an overlay on disk (before Linux 6.6 memory can't hold a folder that replaces another one), else a copy
(project_copy.py)."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Final

from handrail.engine.sandbox import Bounds, Job, Sandbox
from handrail.engine.tool import ToolFailed

TRIAL_MS: Final = 10_000
MEMORY_BYTES: Final = 67_108_864
PYTHON: Final = str(Path(sys.executable).resolve())
SAID: Final = "all of it\n"
PROBE: Final = r"""
import os, shutil, socket
def write(path, text):
    with open(path, "w") as file:
        file.write(text)
write("file", "changed")
os.rename("moved", "elsewhere")
os.remove("removed")
os.chmod("mode", 0o700)
shutil.rmtree("folder")
os.mkdir("folder")
assert os.listdir("folder") == [], "a removed folder has its files again"
write("folder/new", "new")
os.mkdir("made")
os.rename("made", "renamed")
wire = socket.socket(socket.AF_UNIX)
try:
    wire.connect("socket")
except OSError:
    print("all of it")
"""


class ViewKind(StrEnum):
    """How a command gets a view of the project that is thrown away."""

    MEMORY = "an overlay in memory"
    DISK = "an overlay on disk"
    COPY = "a copy"


_chosen: dict[str, ViewKind] = {}


async def way_here(program: str, around: Callable[[Path, ViewKind], Sandbox]) -> ViewKind:
    """The first way that holds, with the sandboxes that `around` makes for a project and a way."""
    if program not in _chosen:
        _chosen[program] = await _first(around)
    return _chosen[program]


async def _first(around: Callable[[Path, ViewKind], Sandbox]) -> ViewKind:
    # In memory first: it needs no cleaning up after a crash, and is the fastest for the few files that checks write.
    for way in (ViewKind.MEMORY, ViewKind.DISK):
        if await holds(around, way):
            return way
    return ViewKind.COPY


async def holds(around: Callable[[Path, ViewKind], Sandbox], way: ViewKind) -> bool:
    """Whether a command can work as usual that way, reaches no socket, and leaves nothing behind."""
    with tempfile.TemporaryDirectory(prefix="handrail-trial-") as folder, socket.socket(socket.AF_UNIX) as listening:
        root = Path(folder, "project")
        (root / "folder").mkdir(parents=True)
        for name in ("file", "moved", "removed", "mode", "folder/file"):
            (root / name).write_text(name)
        _listen(listening, root)
        before = _state(root)
        command = (PYTHON, "-I", "-S", "-c", PROBE)
        bounds = Bounds(time_ms=TRIAL_MS, memory_bytes=MEMORY_BYTES)
        try:
            ran = await around(root, way).run(Job(argv=command, bounds=bounds))
        except ToolFailed:
            return False
        # Both: that the command could do all of it, and that nothing of it is left. Kernels differ in each.
        return ran.stdout == SAID and _state(root) == before


def _listen(listening: socket.socket, root: Path) -> None:
    """Listen at a socket in a folder, by the folder's handle: the whole path may be too long for a socket."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listening.bind(f"/proc/self/fd/{handle}/socket")
    finally:
        os.close(handle)
    listening.listen()


def _state(root: Path) -> dict[str, tuple[int, str]]:
    files = sorted(root.rglob("*"))
    return {str(file): (file.lstat().st_mode, file.read_text() if file.is_file() else "") for file in files}
