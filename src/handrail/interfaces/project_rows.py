"""The projects of this home with how many runs each has, as every interface lists them."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from handrail.assembly.opening import StoreReader, projects_of
from handrail.domain.project import Project
from handrail.domain.run.status import RUN_ENDED


class ProjectRow(Struct, frozen=True, kw_only=True):
    """A project in a list; one that was forgotten, or none, is there if it has runs."""

    id: str
    name: str
    folder: str = ""
    is_here: bool = False
    exists: bool = False
    open: int = 0
    runs: int = 0


async def project_rows(look: StoreReader) -> list[ProjectRow]:
    """All projects, the registered ones first."""
    runs: dict[str, tuple[int, int]] = {}
    for count in await look.store.run_counts():
        is_open = count.status not in RUN_ENDED
        opened, all_ = runs.get(count.project, (0, 0))
        runs[count.project] = (opened + count.runs * is_open, all_ + count.runs)
    known = projects_of(look.settings).all()
    registered = [_row(project, look.project, *runs.pop(project.id, (0, 0))) for project in known]
    strays = [
        ProjectRow(id=project, name="(forgotten)" if project else "(none)", open=opened, runs=all_)
        for project, (opened, all_) in sorted(runs.items())
    ]
    return registered + strays


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
