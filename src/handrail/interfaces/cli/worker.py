"""`handrail worker`: executes the runs of one or several projects until it is stopped, and logs what it does on stderr.

Each project has a worker of its own here, with its own tools, library and settings, over one open store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from handrail.assembly.opening import Assembly, open_assemblies, projects_of, real_folder
from handrail.domain.errors import HandrailError, Limited, NotFound
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_WORKING, RunStatus
from handrail.interfaces.cli.program import reports_errors, settings_of
from handrail.interfaces.cli.run.execution import Stopped, first_of, stoppable
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.pictures.caption import plain
from handrail.settings import Settings, read_settings

SERVED_MAX: Final = 100
POLL_S: Final = 0.2
IDLE_POLLS: Final = 3
"""How many polls in a row must find no work: a run that was just released is picked up between two polls."""


@click.command()
@click.option("--until-idle", is_flag=True, help="Stop when no work is left.")
@click.option("--also", multiple=True, metavar="FOLDER", help="Serve the project in this folder, too; may be repeated.")
@click.option("--all-projects", is_flag=True, help="Serve all projects that are registered now.")
@click.pass_context
@reports_errors
async def command(ctx: click.Context, until_idle: bool, also: tuple[str, ...], all_projects: bool) -> None:
    """Execute the runs of this project that no other process executes, until stopped.

    With --also or --all-projects, those of further projects, each in its own folder with its own tools and settings."""
    served = _served(settings_of(ctx), also, all_projects=all_projects)
    async with open_assemblies(served, actor="worker") as assemblies:
        for parts in assemblies:
            where = f" in {plain(str(parts.writer.reader.project.folder))}" if len(assemblies) > 1 else ""
            _log(f"worker {parts.worker.settings.owner} started{where}; Ctrl-C stops it")
        logs = [_WorkerLog(parts) for parts in assemblies]
        with stoppable() as stop:
            task = asyncio.ensure_future(_follow_all(logs, until_idle=until_idle))
            try:
                await first_of(task, stop)
            except Stopped:
                _log("stopping: waiting for running calls")
            finally:
                task.cancel()
                await asyncio.wait({task})
    _log("worker stopped")


def _served(own: Settings, also: Sequence[str], *, all_projects: bool) -> list[Settings]:
    """The settings of every project to serve, each once."""
    served = {real_folder(own.project): own}
    for folder in also:
        if not Path(folder).is_dir():
            raise NotFound(f"there is no folder {folder!r}", hint="name the folder of a project")
        served.setdefault(real_folder(Path(folder)), _settings_in(own, folder))
    for project in projects_of(own).all() if all_projects else ():
        if project.folder in served:
            continue
        if not Path(project.folder).is_dir():
            _log(f"{project.id} is left out: {plain(project.folder)} is gone (`handrail project move`, or `forget`)")
            continue
        try:
            served[project.folder] = _settings_in(own, project.folder)
        except HandrailError as error:  # one project's broken settings must not stop the others
            _log(f"{project.id} is left out: {plain(str(error))}")
    if len(served) > SERVED_MAX:
        raise Limited(f"{len(served)} projects; one worker serves at most {SERVED_MAX}", hint="start several workers")
    return list(served.values())


def _settings_in(own: Settings, folder: str) -> Settings:
    """The settings of another project of the same home."""
    return read_settings({"home": str(own.home), "project": folder}, os.environ)


async def _follow_all(logs: Sequence[_WorkerLog], *, until_idle: bool) -> None:
    async with asyncio.TaskGroup() as group:
        for one in logs:
            group.create_task(one.follow(until_idle=until_idle))


def _log(text: str) -> None:
    say(text, err=True)


class _WorkerLog:
    """Prints what a worker does. Polls, because picking up and waiting are no events of a run."""

    def __init__(self, parts: Assembly) -> None:
        self.worker = parts.worker
        self.store = parts.writer.reader.store
        self.run_reader = parts.run_reader
        self.seen: set[str] = set()
        self.ended: dict[str, RunStatus] = {}
        self.waits: dict[str, int] = {}
        """Which runs were reported as waiting, as of which event."""
        parts.writer.dispatch.watchers.append(self._notice)

    def _notice(self, run: Run, *_: object) -> None:
        is_own = run.id in self.worker.conductors or run.id in self.seen
        if is_own and run.status not in RUN_WORKING and self.ended.get(run.id) is not run.status:
            self._pick_up(run.id, run.workflow)
            self.ended[run.id] = run.status
            _log(f"{run.id} {run.status.value}")
        elif run.status in RUN_WORKING:
            self.ended.pop(run.id, None)

    def _pick_up(self, run_id: str, workflow: str) -> None:
        if run_id not in self.seen:
            self.seen.add(run_id)
            _log(f"{run_id} picked up: {workflow}")

    async def follow(self, *, until_idle: bool) -> None:
        """Poll; with `until_idle`, until no work is left."""
        idle = 0
        while not until_idle or idle < IDLE_POLLS:
            await asyncio.sleep(POLL_S)
            now = dict(self.worker.conductors)
            for run_id, conductor in now.items():
                self._pick_up(run_id, conductor.run.workflow)
            resting = [run_id for run_id, conductor in now.items() if conductor.is_settled]
            gone = self.seen - now.keys()
            self.seen -= gone
            for run_id in (*resting, *gone):
                await self._print_waiting(run_id)
            idle = idle + 1 if until_idle and await self._is_idle() else 0

    async def _print_waiting(self, run_id: str) -> None:
        n = (await self.run_reader.run(run_id)).n
        if self.waits.get(run_id) == n:
            return
        self.waits[run_id] = n
        status = await self.run_reader.status(run_id)
        if status.status is RunStatus.WAITING:
            waits = ", ".join(f"{one.kind.value} {one.step}" for one in status.waiting_for)
            _log(f"{run_id} waiting for {waits}")

    async def _is_idle(self) -> bool:
        """Whether no run of the project has work that a worker could do."""
        if any(not conductor.is_settled for conductor in list(self.worker.conductors.values())):
            return False
        after = ""
        while lease_holders := await self.store.lease_holders(after=after, project=self.worker.dispatch.project):
            after = lease_holders[-1].run
            for lease_holder in lease_holders:
                if not await self.run_reader.is_settled(lease_holder.run):
                    return False
        return True
