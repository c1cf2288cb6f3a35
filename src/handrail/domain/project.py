"""Projects: a folder in which handrail works, known by an id. Runs, plans and circuit breakers belong to one.

Pure: the values, the names of streams that carry a project, and the refusal of what belongs to another. Which projects
there are is stored in storage/project_registry.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.domain.errors import Invalid, OtherProject
from handrail.domain.journal.event import PLAN_PREFIX, SERVER_PREFIX

PROJECT_PREFIX: Final = "prj_"
NO_PROJECT: Final = ""
"""The project of runs and plans that were written before there were projects."""
UNREGISTERED: Final = PROJECT_PREFIX
"""The id of a folder that nothing was written in yet: no run has it."""

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
        return OtherProject(f"{run_id} belongs to a project that was forgotten ({project_id})", hint=adopt)
    return OtherProject(
        f"{run_id} belongs to another project: {project.name}, in {project.folder}",
        hint=f"work on it from there: `handrail --project {quoted(project.folder)} ...`; if that folder was moved: "
        f"`handrail project move {project.id} FOLDER`",
    )


def quoted(folder: str) -> str:
    """A folder as one word of a command line."""
    return folder if _plain.fullmatch(folder) else "'" + folder.replace("'", "'\"'\"'") + "'"
