"""Projects: a folder in which handrail works, known by an id. Runs, plans and circuit breakers belong to one.

Pure: the values, the names of streams that carry a project, and the refusal of what belongs to another. Which projects
there are is stored in storage/project_registry.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.domain.errors import Invalid, OtherProject
from handrail.domain.journal.event import PLAN_PREFIX, SERVER_PREFIX
from handrail.domain.suggestion import NAMES_COMPARED_MAX

PROJECT_PREFIX: Final = "prj_"
NO_PROJECT: Final = ""
"""The project of runs and plans that were written before there were projects."""
UNREGISTERED: Final = PROJECT_PREFIX
"""The id of a folder that nothing was written in yet: no run has it."""
PROGRAM: Final = "handrail"
ALL_PROJECTS: Final = "*"
"""Asks a list for all projects."""
KNOWN_SHOWN: Final = 8

_plain = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
# Ids of plans and names of servers are in kebab-case: none looks like the id of a project.
_scoped = re.compile(rf"({PROJECT_PREFIX}[2-9a-z]{{8}})/(.+)", re.DOTALL)


class Project(Struct, frozen=True, kw_only=True):
    """A folder in which handrail works; its name is the folder's."""

    id: str
    folder: str
    name: str


FindProject: TypeAlias = Callable[[str], Project | None]
"""The registered project with an id."""


def unknown_project(_: str) -> None:
    """Finds no project: for parts that are used without a registry."""


def scoped(project: str, name: str) -> str:
    """A name that only means something inside a project; the same as before if there is none."""
    return f"{project}/{name}" if project else name


def unscoped(name: str) -> tuple[str, str]:
    """The project and the plain name in a scoped name."""
    found = _scoped.fullmatch(name)
    return (found[1], found[2]) if found else (NO_PROJECT, name)


def require_plain(name: str) -> str:
    """The name, if it carries no project: `prj_.../ship` would otherwise reach into another project's streams."""
    if unscoped(name)[0]:
        raise Invalid(f"{name!r} names a project", hint="give the plain name; use --project FOLDER for another project")
    return name


def plan_stream(project: str, plan_id: str) -> str:
    """The stream of a plan: plans with the same id in two projects are two plans."""
    return PLAN_PREFIX + scoped(project, require_plain(plan_id))


def row_stream(project: str, plan_id: str) -> str:
    """The stream that a stored row of a plan says it is of. Refuses nothing: a wrong row is to be reported."""
    return PLAN_PREFIX + scoped(project, plan_id)


def plan_in(stream: str) -> tuple[str, str]:
    """The project and the id of the plan that a stream is of."""
    return unscoped(stream.removeprefix(PLAN_PREFIX))


def server_stream(project: str, server: str) -> str:
    """The stream of a tool server's circuit breaker: servers with the same name in two projects are two servers."""
    return SERVER_PREFIX + scoped(project, require_plain(server))


def server_in(stream: str) -> tuple[str, str]:
    """The project and the name of the tool server that a stream is of."""
    return unscoped(stream.removeprefix(SERVER_PREFIX))


def refusal(run_id: str, project_id: str, find: FindProject) -> OtherProject:
    """Why a run can't be worked on here, and the command that would work."""
    adopt = f"to continue it in the folder you are in: `handrail project adopt {run_id}`"
    if not project_id:
        return OtherProject(f"{run_id} belongs to no project: it was started before runs had one", hint=adopt)
    project = find(project_id)
    if project is None:
        joining = f"if other machines serve it, in a folder of its own: `handrail project join {project_id}`"
        return OtherProject(
            f"{run_id} belongs to a project that is elsewhere, or was forgotten ({project_id})",
            hint=f"{adopt}; {joining}",
        )
    return OtherProject(
        f"{run_id} belongs to another project: {project.name}, in {project.folder}",
        hint=f"work on it from there: `{program_in(project.folder)} ...`; if that folder was moved: "
        f"`handrail project move {project.id} FOLDER`",
    )


def not_open(project: Project, run_id: str = "") -> OtherProject:
    """Why a server that has not opened a project does nothing in it, and the command that opens it."""
    where = f"{project.name}, in {project.folder}"
    what = f"{run_id} belongs to a project that" if run_id else "this project"
    return OtherProject(f"{what} is not open in this server: {where}", hint=f"open it: `{opening(project.folder)}`")


def program_in(folder: str) -> str:
    """The first words of a command that works in a project from everywhere; without a folder, only there."""
    return f"{PROGRAM} --project {quoted(folder)}" if folder else PROGRAM


def opening(folder: str) -> str:
    """The command that opens the project in a folder in the console."""
    return f"{program_in(folder)} open"


def no_such_project(asked: str, known: Iterable[Project]) -> Invalid:
    """That nothing is known of the project that was asked for, with the nearest that is."""
    by_name = {name: one for one in islice(known, NAMES_COMPARED_MAX) for name in (one.name, one.folder, one.id)}
    near = get_close_matches(asked, by_name, n=1)
    if near:
        hint = f"did you mean `{by_name[near[0]].id}` ({by_name[near[0]].name})?"
    else:
        some = list({one.id: one for one in by_name.values()}.values())[:KNOWN_SHOWN]
        hint = f"known: {', '.join(f'{one.id} ({one.name})' for one in some)}" if some else "no project is registered"
    return Invalid(f"there is no project {asked[:100]!r}", hint=hint)


def quoted(folder: str) -> str:
    """A folder as one word of a command line."""
    return folder if _plain.fullmatch(folder) else "'" + folder.replace("'", "'\"'\"'") + "'"
