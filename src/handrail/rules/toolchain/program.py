"""Programs: where to find them, in the project before the machine, and how to notice that they changed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from handrail.rules.toolchain.site import Site

SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OWN_FOLDERS: Final = (".venv/bin", "venv/bin", "node_modules/.bin", "vendor/bin")
"""Where projects install their own programs."""

_default_toolchain = re.compile(r'^default_toolchain\s*=\s*"([\w.+-]{1,100})"', re.MULTILINE)


class FoundProgram(Struct, frozen=True):
    """A program of this machine."""

    name: str
    path: Path
    """As it was found, links not resolved: some programs depend on the name they are called by."""

    @property
    def folder(self) -> Path:
        """The folder that the sandbox must make readable for it to run."""
        real = self.path.resolve()
        return real.parent.parent if real.parent.name == "bin" else real.parent

    @property
    def identity(self) -> str:
        """A text that changes when the program does."""
        try:
            status = self.path.stat()
        except OSError:
            return f"{self.path} is gone"
        return f"{self.path} {status.st_mtime_ns} {status.st_size}"


def find(site: Site, *names: str) -> FoundProgram | None:
    """The first of these that exists: in the project, or on this machine."""
    for name in names:
        own = (folder / place / name for folder in site.above() for place in OWN_FOLDERS)
        if inside := next((path for path in own if os.access(path, os.X_OK)), None):
            return FoundProgram(name, inside)
    return next(filter(None, map(of_machine, names)), None)


def of_machine(name: str) -> FoundProgram | None:
    """A program on this machine's PATH."""
    path = shutil.which(name)
    return FoundProgram(name, _past_rustup(Path(path).absolute())) if path else None


def beside(program: FoundProgram, *names: str) -> FoundProgram | None:
    """The first of these in the same folder."""
    places = ((name, program.path.parent / name) for name in names)
    return next((FoundProgram(name, path) for name, path in places if os.access(path, os.X_OK)), None)


NO_STALE_CODE: Final = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/nonexistent"}
"""Python reuses compiled code if the source has the same size and time in seconds: an agent edits faster than that."""


def environment(programs: Sequence[FoundProgram], more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: the PATH of its programs, and what the tool chain adds."""
    folders = dict.fromkeys(str(program.path.parent) for program in programs)
    return {"PATH": ":".join([*folders, SYSTEM_PATH]), **NO_STALE_CODE, **more}


def identities(programs: Iterable[FoundProgram]) -> str:
    """A text that changes when any of these programs does."""
    return "\n".join(sorted({program.identity for program in programs}))


def _past_rustup(path: Path) -> Path:
    """The program that rustup would choose: rustup itself needs its home folder, which the sandbox hides."""
    if path.resolve().name != "rustup":
        return path
    home = Path(os.environ.get("RUSTUP_HOME") or Path.home() / ".rustup")
    try:
        settings = (home / "settings.toml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return path
    chosen = _default_toolchain.search(settings)
    real = home / "toolchains" / chosen[1] / "bin" / path.name if chosen else path
    return real if real.exists() else path
