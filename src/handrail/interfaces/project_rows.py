"""The projects of this home with how many runs each has, as every interface lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.assembly.opening import StoreReader, projects_of
from handrail.domain.fleet.node import GONE
from handrail.domain.project import Project
from handrail.domain.run.status import RUN_ENDED

NODES_SHOWN: Final = 20


class ProjectRow(Struct, frozen=True, kw_only=True):
    """A project in a list; one that was forgotten, or none, is there if it has runs."""

    id: str
    name: str
    folder: str = ""
    is_here: bool = False
    exists: bool = False
    open: int = 0
    runs: int = 0
    nodes: int = 0
    """How many nodes serve it now, on this machine or on others."""
    served_by: tuple[str, ...] = ()
    """Their ids, the first of them."""


async def project_rows(look: StoreReader) -> list[ProjectRow]:
    """All projects, the registered ones first."""
    runs: dict[str, tuple[int, int]] = {}
    for count in await look.store.run_counts():
        is_open = count.status not in RUN_ENDED
        opened, all_ = runs.get(count.project, (0, 0))
        runs[count.project] = (opened + count.runs * is_open, all_ + count.runs)
    nodes = [one.card for one in await look.store.nodes().all() if one.state not in GONE]
    known = projects_of(look.settings).all()
    registered = [_row(project, look.project, *runs.pop(project.id, (0, 0))) for project in known]
    elsewhere = {project for card in nodes for project in card.projects} - {one.id for one in known}
    strays = [
        ProjectRow(id=project, name=_stray_name(project, elsewhere), open=opened, runs=all_)
        for project, (opened, all_) in sorted({**dict.fromkeys(elsewhere, (0, 0)), **runs}.items())
    ]
    return [_with_nodes(row, [card.id for card in nodes if row.id in card.projects]) for row in registered + strays]


def _stray_name(project: str, elsewhere: set[str]) -> str:
    if not project:
        return "(none)"
    return "(elsewhere)" if project in elsewhere else "(forgotten)"


def _with_nodes(row: ProjectRow, nodes: list[str]) -> ProjectRow:
    return replace(row, nodes=len(nodes), served_by=tuple(nodes[:NODES_SHOWN]))


def _row(project: Project, here: Project, opened: int, runs: int) -> ProjectRow:
    return ProjectRow(
        id=project.id,
        name=project.name,
        folder=project.folder,
        is_here=project.id == here.id,
        exists=Path(project.folder).is_dir(),
        open=opened,
        runs=runs,
    )
