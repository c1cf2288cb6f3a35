"""Joining: a folder of this machine serves a project that others serve, too.

Part of the only place that knows which parts the program is made of; nothing is decided here but what is known."""

from __future__ import annotations

from typing import Final

from handrail.assembly.opening import open_reader, projects_of
from handrail.assembly.stores import is_shared
from handrail.domain.errors import Conflict, NotFound
from handrail.domain.fleet.node import GONE
from handrail.domain.plural import plural
from handrail.domain.project import PROJECT_PREFIX, Project, scoped
from handrail.domain.suggestion import did_you_mean
from handrail.engine.proving.projection_repair import WholeStore
from handrail.settings import Settings

PAGE: Final = 500
PAGES_MAX: Final = 20


async def join_project(settings: Settings, project_id: str) -> Project:
    """Serve a project of the shared store in the folder of these settings; NotFound if it has no such project."""
    if not is_shared(settings):
        raise Conflict(
            "the journal of this home is a file, which no other machine shares",
            hint="set HANDRAIL_STORE to the database of the project first (docs/guides/postgres.md)",
        )
    registry = projects_of(settings)
    async with open_reader(settings) as look:
        known = await known_projects(look.store)
        here = registry.at(settings.project)
        runs = sum(one.runs for one in await look.store.run_counts() if one.project == here.id)
    if project_id not in known:
        raise NotFound(
            f"the store knows no project {project_id[:100]!r}",
            hint=did_you_mean(project_id, sorted(known)) or "start something in it where it is first, then join it",
        )
    # Its runs would belong to a project without a folder.
    if runs and here.id != project_id:
        raise Conflict(
            f"{here.folder} is a project of its own, {here.id}, with {plural(runs, 'run')}",
            hint="join in another folder; this one keeps its runs",
        )
    return registry.join(project_id, settings.project, replaces=True)


async def known_projects(store: WholeStore) -> set[str]:
    """The projects that a store knows: those with runs or plans, and those that a node serves."""
    found = {one.project for one in await store.run_counts()}
    found |= {project for node in await store.nodes().all() for project in node.card.projects}
    found |= await _projects_with_plans(store)
    return {one for one in found if one.startswith(PROJECT_PREFIX)}


async def _projects_with_plans(store: WholeStore) -> set[str]:
    found: set[str] = set()
    after = ""
    for _ in range(PAGES_MAX):
        page = await store.plans(after=after, limit=PAGE)
        found |= {one.project for one in page}
        if len(page) < PAGE:
            break
        after = scoped(page[-1].project, page[-1].id)
    return found


async def served_projects(store: WholeStore) -> set[str]:
    """The projects that a node serves which is up."""
    up = [one for one in await store.nodes().all() if one.state not in GONE]
    return {project for node in up for project in node.card.projects}
