"""`handrail worker`: executes the runs of one or several projects until it is stopped, and logs what it does on stderr.

Each project has a worker of its own here, with its own tools, library and settings, over one open store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, NamedTuple

import click
from msgspec.structs import replace

from handrail.assembly.backups.schedule import keeping_schedule
from handrail.assembly.notify.keeping import keeping_notices
from handrail.assembly.opening import Assembly, ProjectAssemblies, open_assemblies, projects_of, real_folder
from handrail.assembly.retention.schedule import keeping_retention
from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import HandrailError, Limited, NotFound, Unavailable
from handrail.domain.project import Project
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_WORKING, RunStatus
from handrail.domain.secrets.key_files import TokenName
from handrail.engine.measuring.measures import NO_MEASURES
from handrail.interfaces.cli.program import reports_errors, settings_of
from handrail.interfaces.cli.run.execution import Stopped, first_of, stoppable
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.metrics.process_figures import ProcessFigures
from handrail.interfaces.pictures.caption import plain
from handrail.settings import Settings, settings_of_other

SERVED_MAX: Final = 100
PORT_MAX: Final = 65_535
POLL_S: Final = 0.2
LOOK_S: Final = 1.0
"""How often to look for projects that were registered meanwhile."""
IDLE_POLLS: Final = 3
"""How many polls in a row must find no work: a run that was just released is picked up between two polls."""


class _NodeOptions(NamedTuple):
    """What this command says of its node; it is one for all projects."""

    labels: str | None
    slots: int | None

    def applied(self, settings: Settings) -> Settings:
        """The settings with it."""
        given = {name: value for name, value in self._asdict().items() if value is not None}
        return replace(settings, choices=replace(settings.choices, **given))


def _duration(_: click.Context, __: click.Parameter, text: str) -> int:
    try:
        return duration_ms(text)
    except HandrailError as error:
        raise click.BadParameter(f"{error}; {error.hint}") from error


def _address(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _colon, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise click.BadParameter(f"{text!r} is not a port, nor an address with a port: write 9464 or 0.0.0.0:9464")
    return host.strip("[]") or "127.0.0.1", int(port)


@click.command()
@click.option("--until-idle", is_flag=True, help="Stop when no work is left.")
@click.option("--also", multiple=True, metavar="FOLDER", help="Serve the project in this folder, too; may be repeated.")
@click.option("--all-projects", is_flag=True, help="Serve all registered projects, also those registered later.")
@click.option("--labels", metavar="LIST", help="What this machine has, for `runs_on`: gpu,linux (HANDRAIL_LABELS).")
@click.option("--slots", type=click.IntRange(0, 10_000), help="How many runs to work on at once (HANDRAIL_SLOTS).")
@click.option(
    "--grace",
    metavar="TIME",
    default="30s",
    show_default=True,
    callback=_duration,
    help="How long running calls may go on after SIGTERM or Ctrl-C; the second one ends the worker at once.",
)
@click.option(
    "--metrics",
    metavar="[ADDRESS:]PORT",
    callback=_address,
    help="Serve /metrics and the health checks there; 0: any free port. Default address: 127.0.0.1.",
)
@click.option(
    "--allow-host", "allowed", metavar="NAME", multiple=True, help="With --metrics: accept this host name, too."
)
@click.pass_context
@reports_errors
async def command(
    ctx: click.Context,
    until_idle: bool,
    also: tuple[str, ...],
    all_projects: bool,
    labels: str | None,
    slots: int | None,
    grace: int,
    metrics: tuple[str, int] | None,
    allowed: tuple[str, ...],
) -> None:
    """Execute the runs of this project that no other process executes, until stopped.

    With --also or --all-projects, those of further projects, each in its own folder with its own tools and settings.
    When it is stopped it takes nothing more, and hands each run over as soon as its running calls have ended."""
    node = _NodeOptions(labels, slots)
    own = node.applied(settings_of(ctx))
    named = _named(own, also, node)
    process = ProcessFigures() if metrics is not None else None
    async with (
        keeping_schedule(own),
        keeping_retention(own),
        keeping_notices(own),
        open_assemblies(own, actor="worker", measures=process or NO_MEASURES) as opener,
        AsyncExitStack() as more,
    ):
        served = _ServedProjects(own, opener, node, shows_folder=all_projects or len(named) > 1)
        for settings in named:
            await served.add(settings)
        if all_projects:
            await served.add_registered()
        if metrics is not None and process is not None:
            # Late: it imports the web server and Prometheus' library, 0.2 s that a plain worker does without.
            from handrail.interfaces.cli.words.worker_metrics import serving_metrics

            url = await more.enter_async_context(serving_metrics(own, (*metrics, allowed), opener, process))
            _log(f"metrics at {url}/metrics, for who has the token in {own.home / TokenName.METRICS}")
        with stoppable() as stop:
            task = asyncio.ensure_future(served.follow(until_idle=until_idle, grows=all_projects and not until_idle))
            try:
                await first_of(task, stop)
            except Stopped:
                _log("stopping: running calls may end, runs are handed over; a second signal ends this at once")
                # Not at once: a call that is cut off leaves a step of which it is unknown whether it happened.
                await served.drain(grace / 1_000)
            finally:
                task.cancel()
                await asyncio.wait({task})
    _log("worker stopped")


def _named(own: Settings, also: Sequence[str], node: _NodeOptions) -> list[Settings]:
    """The settings of this project and of those that were named, each once."""
    named = {real_folder(own.project): own}
    for folder in also:
        if not Path(folder).is_dir():
            raise NotFound(f"there is no folder {folder!r}", hint="name the folder of a project")
        named.setdefault(real_folder(Path(folder)), node.applied(settings_of_other(own, folder, os.environ)))
    if len(named) > SERVED_MAX:
        raise Limited(f"{len(named)} projects; one worker serves at most {SERVED_MAX}", hint="start several workers")
    return list(named.values())


class _ServedProjects:
    """The projects that this worker serves; more can be added while it works."""

    def __init__(self, own: Settings, opener: ProjectAssemblies, node: _NodeOptions, *, shows_folder: bool) -> None:
        self.own, self.opener, self.node, self.shows_folder = own, opener, node, shows_folder
        self.registry = projects_of(own)
        self.logs: list[_WorkerLog] = []
        self.seen: set[str] = set()
        """The projects that were served or left out."""

    async def add(self, settings: Settings) -> None:
        """Serve one more project."""
        parts = await self.opener.open(settings)
        project = parts.writer.reader.project
        self.seen.add(project.id)
        self.logs.append(_WorkerLog(parts))
        where = f" in {plain(project.folder)}" if self.shows_folder else ""
        _log(f"worker {parts.worker.settings.owner} started{where}; Ctrl-C stops it")

    async def add_registered(self) -> None:
        """Serve every registered project that was not seen yet."""
        for project in self.registry.all():
            if project.id in self.seen:
                continue
            self.seen.add(project.id)
            try:
                await self.add(self._settings_of(project))
            except HandrailError as error:  # what is wrong with one project must not stop the others
                _log(f"{project.id} is left out: {plain(str(error))}")

    def _settings_of(self, project: Project) -> Settings:
        if not Path(project.folder).is_dir():
            raise NotFound(f"{project.folder} is gone (`handrail project move`, or `forget`)")
        if len(self.logs) >= SERVED_MAX:
            raise Limited(f"one worker serves at most {SERVED_MAX} projects; start several workers")
        return self.node.applied(settings_of_other(self.own, project.folder, os.environ))

    async def drain(self, grace_s: float) -> None:
        """Take nothing more, and hand over what is under way."""
        if self.opener.node is not None:
            await self.opener.node.drain()
        await asyncio.gather(*(one.worker.drain(grace_s) for one in self.logs))

    async def follow(self, *, until_idle: bool, grows: bool) -> None:
        """Print what all workers do; with `grows`, also look for projects that are registered later."""
        followed = 0
        async with asyncio.TaskGroup() as group:
            while True:
                for one in self.logs[followed:]:
                    group.create_task(one.follow(until_idle=until_idle))
                followed = len(self.logs)
                if not grows:
                    return
                await asyncio.sleep(LOOK_S)
                try:
                    await self.add_registered()
                except Unavailable as error:
                    _log(f"new projects can't be looked for now: {plain(str(error))}")


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
        if run.id in self.worker.conductors:  # it may be released again before the next poll
            self._pick_up(run.id, run.workflow)
        if run.id in self.seen and run.status not in RUN_WORKING and self.ended.get(run.id) is not run.status:
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
            try:
                await self._print_changes()
                idle = idle + 1 if until_idle and await self._is_idle() else 0
            except Unavailable as error:
                # The worker itself goes on by itself when the store answers again: what only prints must not end it.
                idle = 0
                _log(f"nothing can be shown now: {plain(str(error))}")

    async def _print_changes(self) -> None:
        now = dict(self.worker.conductors)
        for run_id, conductor in now.items():
            self._pick_up(run_id, conductor.run.workflow)
        resting = [run_id for run_id, conductor in now.items() if conductor.is_settled]
        gone = self.seen - now.keys()
        for run_id in (*resting, *gone):
            await self._print_waiting(run_id)
        self.seen -= gone

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
