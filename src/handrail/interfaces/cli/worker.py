"""`handrail worker`: executes the runs of the store until it is stopped, and logs what it does on stderr."""

from __future__ import annotations

import asyncio
from typing import Final

import click

from handrail.assembly import Assembly, open_assembly
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_WORKING, RunStatus
from handrail.interfaces.cli.program import reports_errors, settings_of
from handrail.interfaces.cli.run.execution import Stopped, first_of, stoppable

POLL_S: Final = 0.2
IDLE_POLLS: Final = 3
"""How many polls in a row must find no work: a run that was just released is picked up between two polls."""


@click.command()
@click.option("--until-idle", is_flag=True, help="Stop when no work is left.")
@click.pass_context
@reports_errors
async def command(ctx: click.Context, until_idle: bool) -> None:
    """Execute the store's runs that no other process executes, until stopped."""
    async with open_assembly(settings_of(ctx), actor="worker") as parts:
        _log(f"worker {parts.worker.settings.owner} started; Ctrl-C stops it")
        worker_log = _WorkerLog(parts)
        with stoppable() as stop:
            task = asyncio.ensure_future(worker_log.follow(until_idle=until_idle))
            try:
                await first_of(task, stop)
            except Stopped:
                _log("stopping: waiting for running calls")
            finally:
                task.cancel()
                await asyncio.wait({task})
    _log("worker stopped")


def _log(text: str) -> None:
    click.echo(text, err=True)


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
        """Whether no run of the store has work that a worker could do."""
        if any(not conductor.is_settled for conductor in list(self.worker.conductors.values())):
            return False
        after = ""
        while lease_holders := await self.store.lease_holders(after=after):
            after = lease_holders[-1].run
            for lease_holder in lease_holders:
                if not await self.run_reader.is_settled(lease_holder.run):
                    return False
        return True
