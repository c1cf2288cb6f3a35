"""Says so when a run has steps to execute and no process executes it, and what would."""

from __future__ import annotations

import asyncio
from typing import Final

from handrail.assembly.opening import StoreReader
from handrail.assembly.workers import has_live_worker
from handrail.domain.run.status import RUN_WORKING
from handrail.engine.reading.run_view import Status
from handrail.interfaces.cli.words.own_command import advise

PICK_UP_S: Final = 1.5
"""How long a worker of this project needs at most to notice a run, with some time to spare."""
LOOK_S: Final = 0.05


async def warn_if_not_executed(look: StoreReader, status: Status) -> None:
    """Say it if a run has steps to execute, but no process executes it."""
    if await _is_left(look, status):
        advise(
            f"no process executes it now: `handrail run resume {status.run}` does, or `handrail worker` for all runs"
        )


async def warn_if_not_picked_up(look: StoreReader, status: Status) -> None:
    """The same, of a run that was left to a worker just now: one that lives has a moment to pick it up."""
    left_s = PICK_UP_S if await asyncio.to_thread(has_live_worker, look.settings) else 0.0
    while left_s > 0 and await _is_left(look, status):
        await asyncio.sleep(LOOK_S)
        left_s -= LOOK_S
    await warn_if_not_executed(look, status)


async def _is_left(look: StoreReader, status: Status) -> bool:
    if status.project is not None or status.status not in RUN_WORKING or status.waiting_for:
        return False  # how to work on a run of another project is said with its status
    row = await look.store.run(status.run)
    lease_holder = await look.store.lease_holder(status.run)
    if lease_holder is None or lease_holder.needs:
        return False  # a process without what it needs could not go on either; what that is, its status says
    return row is not None and row.status in RUN_WORKING and not lease_holder.owner
