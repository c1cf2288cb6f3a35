"""The registry of projects: which folder has which id. One small JSON file in HANDRAIL_HOME.

Written whole, by one process at a time, and read strictly: a file that can't be read is reported and never replaced,
because the ids in it are those of runs. Which runs a project has is in the journal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from handrail.domain.errors import Conflict, IntegrityBroken, Invalid, Limited, NotFound, Unavailable
from handrail.domain.project import PROJECT_PREFIX, UNREGISTERED, Project
from handrail.domain.suggestion import did_you_mean
from handrail.engine.clock import new_id, system_entropy
from handrail.engine.passed_in import Entropy
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.storage.file_lock import locked

FILE: Final = "projects.json"
FORMAT: Final = 1
PROJECTS_MAX: Final = 10_000
FOLDER_LENGTH_MAX: Final = 4_096
BYTES_MAX: Final = 50_000_000


class _Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: Annotated[str, Meta(pattern=rf"^{PROJECT_PREFIX}[2-9a-z]{{8}}$")]
    folder: Annotated[str, Meta(min_length=1, max_length=FOLDER_LENGTH_MAX)]


class _Content(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: int = FORMAT
    projects: Annotated[tuple[_Entry, ...], Meta(max_length=PROJECTS_MAX)] = ()


@dataclass
class ProjectRegistry:
    """The projects of one HANDRAIL_HOME."""

    home: Path
    entropy: Entropy = system_entropy
    _read_at: tuple[int, int, int] | None = None
    _known: tuple[Project, ...] = ()

    @property
    def file(self) -> Path:
        """The file with all projects."""
        return self.home / FILE

    def all(self) -> tuple[Project, ...]:
        """Every project, by folder."""
        try:
            found = self.file.stat()
            stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        if stamp != self._read_at:  # a whole new file each time, so the stamp of the old one never comes back
            self._known, self._read_at = self._read(), stamp
        return self._known

    def find(self, project_id: str) -> Project | None:
        """The project with this id; None if it was forgotten, or is of another home."""
        return next((one for one in self.all() if one.id == project_id), None)

    def require(self, project_id: str) -> Project:
        """The project with this id; NotFound names the nearest."""
        if project := self.find(project_id):
            return project
        hint = did_you_mean(project_id, [one.id for one in self.all()]) or "`handrail project list` shows all"
        raise NotFound(f"there is no project {project_id!r}", hint=hint)

    def at(self, folder: Path) -> Project:
        """The project in a folder; one with the id UNREGISTERED if nothing was written there yet. Writes nothing."""
        real = real_path(folder)
        return self._in(real) or _project(UNREGISTERED, real)

    def register(self, folder: Path) -> Project:
        """The project in a folder, which is registered if it is new."""
        real = real_path(folder)
        self._require_outside(real)
        known = self._in(real)
        if not Path(real).is_dir():
            hint = f"if it was moved: `handrail project move {known.id} FOLDER`" if known else "name one that exists"
            raise NotFound(f"there is no folder {real}", hint=hint)
        if known is not None:
            return known
        with self._changing():
            if known := self._in(real):
                return known  # another process was first
            return self._put(self._free_id(), real)

    def move(self, project_id: str, folder: Path, *, replaces: bool = False) -> Project:
        """Note that a project's folder is somewhere else now; `replaces` forgets a project that is registered there."""
        real = real_path(folder)
        self._require_outside(real)
        if not Path(real).is_dir():
            raise NotFound(f"there is no folder {real}", hint="move the folder first, then say where it is")
        with self._changing():
            self.require(project_id)
            other = self._in(real)
            if other is not None and other.id != project_id:
                if not replaces:
                    raise Conflict(
                        f"{real} is registered as another project already: {other.id}",
                        hint=f"forget that one first: `handrail project forget {other.id}`",
                    )
                self._drop(other.id)
            self._drop(project_id)
            return self._put(project_id, real)

    def join(self, project_id: str, folder: Path, *, replaces: bool = False) -> Project:
        """Serve a project of other machines in a folder of this one; `replaces` forgets what the folder was before."""
        real = real_path(folder)
        self._require_outside(real)
        if not Path(real).is_dir():
            raise NotFound(f"there is no folder {real}", hint="make it first, with what the project needs")
        with self._changing():
            known, other = self.find(project_id), self._in(real)
            if known is not None and known.folder == real:
                return known
            if known is not None:
                raise Conflict(
                    f"this machine serves {project_id} already, in {known.folder}",
                    hint=f"if it is to be here instead: `handrail project move {project_id} FOLDER`",
                )
            if other is not None and not replaces:
                raise Conflict(
                    f"{real} is registered as another project already: {other.id}",
                    hint=f"forget that one first: `handrail project forget {other.id}`",
                )
            if other is not None:
                self._drop(other.id)
            return self._put(project_id, real)

    def forget(self, project_id: str) -> Project:
        """Remove a project from the registry; its runs stay in the journal, and wait to be adopted."""
        with self._changing():
            project = self.require(project_id)
            self._drop(project_id)
            self._write(self._known)
            return project

    # --- internal ---------------------------------------------------------------------------------

    def _require_outside(self, real: str) -> None:
        """Refuse HANDRAIL_HOME and every folder in it: plans would write the settings, keys and decisions that are not
        theirs. The other way round is fine: a home inside a project is closed to the tools of plans."""
        if any(_is_same(str(folder), str(self.home)) for folder in (Path(real), *Path(real).parents)):
            raise Invalid(
                f"{real} can't be a project: it is in HANDRAIL_HOME, where handrail keeps its own state",
                hint="work in another folder: change to it, or name it with --project",
            )

    def _in(self, real: str) -> Project | None:
        projects = self.all()
        for project in projects:
            if project.folder == real:
                return project
        # Where upper and lower case are the same to the file system, one folder can be named in several ways.
        alike = (project for project in projects if project.folder.casefold() == real.casefold())
        return next((project for project in alike if _is_same(project.folder, real)), None)

    def _free_id(self) -> str:
        taken = {project.id for project in self._known}
        while (drawn := new_id(PROJECT_PREFIX, self.entropy)) in taken:
            pass
        return drawn

    def _drop(self, project_id: str) -> None:
        self._known = tuple(one for one in self._known if one.id != project_id)

    def _put(self, project_id: str, real: str) -> Project:
        if len(self._known) >= PROJECTS_MAX:
            raise Limited(
                f"{PROJECTS_MAX} projects are registered already",
                hint="`handrail project list` shows them; forget those that are gone: `handrail project forget ID`",
            )
        project = _project(project_id, real)
        self._write(tuple(sorted((*self._known, project), key=lambda one: one.folder)))
        return project

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock, and know what the file says now."""
        try:
            make_private_folder(self.home)
            with locked(self.home / f"{FILE}.lock"):
                self._read_at = None
                self._known = self.all()
                yield
        except OSError as error:
            raise Unavailable(
                f"{self.file} can't be written: {error.strerror or error}", hint="make HANDRAIL_HOME writable"
            ) from error
        finally:
            self._read_at = None

    def _read(self) -> tuple[Project, ...]:
        try:
            with self.file.open("rb") as file:
                text = file.read(BYTES_MAX + 1)
        except OSError as error:
            raise Unavailable(f"{self.file} can't be read: {error.strerror or error}", hint="check it") from error
        if len(text) > BYTES_MAX:
            raise _broken(self.file, f"it has more than {BYTES_MAX} bytes")
        try:
            content = msgspec.json.decode(text, type=_Content)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise _broken(self.file, str(error)) from error
        if content.format != FORMAT:
            raise Unavailable(f"{self.file} was written by a newer handrail", hint="update handrail")
        for names in ([one.id for one in content.projects], [one.folder for one in content.projects]):
            if len(set(names)) < len(names):
                raise _broken(self.file, "a project is in it twice")
        return tuple(_project(one.id, one.folder) for one in content.projects)

    def _write(self, projects: tuple[Project, ...]) -> None:
        entries: list[dict[str, Any]] = [{"id": one.id, "folder": one.folder} for one in projects]
        text = msgspec.json.format(msgspec.json.encode({"format": FORMAT, "projects": entries}), indent=1)
        write_whole(self.file, text + b"\n", takes_turns=True)


def real_path(folder: Path) -> str:
    """The path of a folder without links, as it is on disk."""
    real = os.path.realpath(folder)
    if len(real) > FOLDER_LENGTH_MAX:
        raise Limited(f"the path of the project has more than {FOLDER_LENGTH_MAX} characters", hint="use a shorter one")
    try:
        real.encode()
    except UnicodeEncodeError as error:
        shown = real.encode("utf-8", "replace").decode()
        raise Invalid(f"the path of the project is not UTF-8: {shown}", hint="rename the folder") from error
    return real


def _project(project_id: str, real: str) -> Project:
    return Project(id=project_id, folder=real, name=Path(real).name or real)


def _is_same(folder: str, real: str) -> bool:
    try:
        return Path(folder).samefile(real)
    except OSError:
        return False


def _broken(file: Path, why: str) -> IntegrityBroken:
    return IntegrityBroken(
        f"{file} is damaged: {why}",
        hint="restore it from a backup; or move it away, and give your runs a project again: `handrail project adopt`",
    )
