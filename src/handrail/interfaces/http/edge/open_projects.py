"""The projects that are open in this server: which of them answers a request, and how one more is opened.

The only place that decides it. A run is worked on by the parts of its own project, with that project's tools, library,
settings and trust; what is about no run, by those of the project that was asked for. A request is never answered by
another project without a word: it is refused, with the command that opens the right one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from handrail.assembly.opening import Assembly, projects_of, real_folder
from handrail.domain.errors import Conflict, HandrailError, Invalid, Limited, NotFound
from handrail.domain.project import ALL_PROJECTS, Project, no_such_project, not_open, refusal
from handrail.interfaces.http.contract.route import Route
from handrail.interfaces.http.feed.event_feed import OpenProgram
from handrail.settings import Settings

OPEN_MAX: Final = 50
"""How many projects one server opens: each has a worker, and its own tool servers once they are called."""

OpenOther: TypeAlias = Callable[[Settings], Awaitable[Assembly]]
"""Opens another project over the store that is open already."""
SettingsIn: TypeAlias = Callable[[str], Settings]
"""The settings of the project in a folder, read now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectAsked:
    """What a request says about the project that it means."""

    run: str = ""
    project: str | None = None
    """None: the request is about the store itself."""
    session: str = ""
    """The project that the caller came in for."""
    must_be_own: bool = False
    """Whether it works on the run: then only the run's own project answers."""
    spans: bool = False
    """Whether `project` only filters a list, so that any project of this home can be asked for."""


class OpenProjects:
    """The open projects of one server."""

    def __init__(
        self,
        open_first: OpenProgram,
        open_other: OpenOther,
        settings_in: SettingsIn,
        *,
        on_open: Callable[[Assembly], None],
    ) -> None:
        self._open_first, self._open_other = open_first, open_other
        self._settings_in, self._on_open = settings_in, on_open
        self._others: dict[str, Assembly] = {}
        self._first: Assembly | None = None
        self._opening = asyncio.Lock()

    async def first(self) -> Assembly:
        """The project that the server was started in."""
        self._first = await self._open_first()
        return self._first

    @property
    def opened(self) -> Mapping[str, Assembly]:
        """Every open project by its id, the server's own first."""
        first = {_id(self._first): self._first} if self._first is not None else {}
        return {**first, **self._others}

    def of(self, project: str) -> Assembly | None:
        """An open project by its id."""
        return self.opened.get(project)

    async def open(self, folder: str) -> Assembly:
        """Open the project in a folder; the same parts if it is open already."""
        if not await asyncio.to_thread(_is_folder, folder):
            raise NotFound(f"there is no folder {folder[:500]!r}", hint="name the folder of a project in full")
        # Not cut short when its caller leaves: what is half open must be closed again.
        return await asyncio.shield(asyncio.ensure_future(self._open(folder)))

    async def _open(self, folder: str) -> Assembly:
        async with self._opening:
            await self.first()
            # By its real folder: a link to a project must not open it a second time, with a second worker.
            real = real_folder(Path(folder))
            for one in self.opened.values():
                if _project(one).folder == real:
                    return one
            self._require_room_and_place(real)
            parts = await self._open_other(await asyncio.to_thread(self._settings_in, real))
            self._others[_id(parts)] = parts
            self._on_open(parts)
            return parts

    async def is_changed(self, parts: Assembly) -> bool:
        """Whether the settings of an open project would be read differently now; they are not read again."""
        used = parts.writer.reader.settings
        try:
            now = await asyncio.to_thread(self._settings_in, str(used.project))
        except HandrailError:  # they are wrong now
            return True
        return _counting(used) != _counting(now)

    def _require_room_and_place(self, real: str) -> None:
        if len(self.opened) >= OPEN_MAX:
            raise Limited(
                f"{OPEN_MAX} projects are open in this server already", hint="stop it, then open those you need"
            )
        # Before anything is opened: two workers of one project must not work in two folders.
        for moved in self.opened.values():
            now = moved.writer.dispatch.find_project(_id(moved))
            if now is not None and now.folder == real:
                raise Conflict(
                    f"{now.name} was moved here while this server had it open in {_project(moved).folder}",
                    hint="stop the server, then run `handrail open` again",
                )

    async def answering(self, asked: ProjectAsked) -> Assembly:
        """The parts that answer a request; OtherProject if its project is not open here, Invalid if it is unknown."""
        first = await self.first()
        if asked.run:
            return await self._of_run(first, asked)
        if asked.project is None:
            return first
        # A list over all projects is read from the store, which they share; who answers does not matter.
        if asked.project == ALL_PROJECTS:
            if not asked.spans:
                raise Invalid("only lists can span all projects", hint="name one project by its id")
            return self._home_of(asked) or first
        wanted = asked.project or asked.session
        if not wanted:
            return first
        if parts := self.of(wanted):
            return parts
        project = await self.require_known(wanted)
        if asked.project and asked.spans:
            return self._home_of(asked) or first
        raise not_open(project) if project is not None else no_such_project(wanted, self._registered(first))

    async def require_known(self, project: str) -> Project | None:
        """The registered project with this id, or None if it was forgotten and has runs; Invalid if it is unknown."""
        first = await self.first()
        known = self._registered(first)
        found = next((one for one in known if one.id == project), None)
        if found is None and project not in {one.project for one in await first.writer.reader.store.run_counts()}:
            raise no_such_project(project, known)
        return found

    async def _of_run(self, first: Assembly, asked: ProjectAsked) -> Assembly:
        row = await first.writer.reader.store.run(asked.run)
        if row is not None and (parts := self.of(row.project)):
            return parts
        if row is not None and asked.must_be_own:
            project = first.writer.dispatch.find_project(row.project)
            raise not_open(project, row.id) if project else refusal(row.id, row.project, _unknown)
        return self._home_of(asked) or first  # everyone may read; and it says which run was meant

    def _home_of(self, asked: ProjectAsked) -> Assembly | None:
        return self.of(asked.session) if asked.session else None

    def _registered(self, first: Assembly) -> tuple[Project, ...]:
        return projects_of(first.writer.reader.settings).all()


def asked_of(route: Route, path: Mapping[str, Any], query: Any, session: str) -> ProjectAsked:
    """What the address of a request says about its project."""
    return ProjectAsked(
        run=str(path.get("run", "")),
        project=getattr(query, "project", None),
        session=session,
        must_be_own=route.is_own,
        spans=route.spans,
    )


def _is_folder(folder: str) -> bool:
    return Path(folder).is_absolute() and Path(folder).is_dir()


def _project(parts: Assembly) -> Project:
    return parts.writer.reader.project


def _id(parts: Assembly) -> str:
    return _project(parts).id


def _counting(settings: Settings) -> tuple[object, ...]:
    """What counts of the settings of a project, without what the process itself was started with."""
    choices = replace(settings.choices, log_level="warning")
    return choices, settings.tables, settings.home_tables, settings.trust, settings.tools_text


def _unknown(_: str) -> None:
    """Finds none."""
