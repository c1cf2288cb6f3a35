"""Programs: where to find them, in the project before the machine, and how to notice that they changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from handrail.rules.toolchain.installed.installation import needs_of
from handrail.rules.toolchain.installed.shims import machine_programs
from handrail.rules.toolchain.site import Site

SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OWN_FOLDERS: Final = (".venv/bin", "venv/bin", "node_modules/.bin", "vendor/bin")
"""Where projects install their own programs."""


class FoundProgram(Struct, frozen=True):
    """A program of this machine."""

    name: str
    path: Path
    """As it was found, links not resolved: some programs depend on the name they are called by."""
    why: str = ""
    """Why it was chosen, if that is not plain from its path."""
    version: str = ""
    """Its version, if that is known without asking it."""
    needs: tuple[Path, ...] = ()
    """Places that it needs besides its own installation."""
    words: tuple[str, ...] = ()
    """How it is started, if not by its path alone: a script by its interpreter."""

    @property
    def call(self) -> tuple[str, ...]:
        """The first words of a command that runs it."""
        return self.words or (str(self.path),)

    @property
    def folder(self) -> Path:
        """The folder that the sandbox must make readable for it to run."""
        # Behind the links, because a sandbox shows real folders: /usr/bin/x may lead to /opt/x/bin/x.
        real = self.path.resolve()
        return real.parent.parent if real.parent.name == "bin" else real.parent

    @property
    def shows(self) -> tuple[Path, ...]:
        """Every place outside the project that it needs to run."""
        return (*needs_of(self.path), *self.needs)

    @property
    def identity(self) -> str:
        """A string that changes when the program does."""
        return "\n".join(map(_state, (self.path, *self.needs)))


def find(site: Site, *names: str) -> FoundProgram | None:
    """The first of these that exists: in the project, or on this machine."""
    for name in names:
        # The project's own programs first, at the folder and then above it: they have the versions that its authors
        # chose.
        own = (folder / place / name for folder in site.above() for place in OWN_FOLDERS)
        if inside := next((path for path in own if os.access(path, os.X_OK)), None):
            return FoundProgram(name, inside)
    above = tuple(site.above())
    return next(filter(None, (of_machine(name, above) for name in names)), None)


def of_machine(name: str, above: Sequence[Path] = ()) -> FoundProgram | None:
    """A program on this machine's PATH, never a shim; `above` are the folders whose files choose its version."""
    found = next(machine_programs(name, above), None)
    return FoundProgram(name, found.path, found.why) if found else None


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


def shown_for(programs: Iterable[FoundProgram], more: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Every place outside the project that a command with these programs needs."""
    return tuple(dict.fromkeys((*more, *(place for program in programs for place in program.shows))))


def identities(programs: Iterable[FoundProgram]) -> str:
    """A string that changes when any of these programs does."""
    return "\n".join(sorted({program.identity for program in programs}))


def _state(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return f"{path} is gone"
    return f"{path} {status.st_mtime_ns} {status.st_size}"
