"""A run that a worker has claimed and can't go on with is released: a worker that can takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from engine.stage import Stage, plan, puppet, taking
from handrail.domain.errors import HandrailError, IntegrityBroken, SealedForOthers, Unavailable
from handrail.domain.fleet.label import in_words
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus
from handrail.engine.running.lease import LeaseHolder
from virtual_time import in_virtual_time

WORK = plan({"id": "a", "tool": "x.slow"}, {"id": "b", "tool": "x.do"})
KEY = "1f03f465ca5e6f8d"


class Secrets:
    """Secrets of runs that can't be opened here."""

    def __init__(self, error: HandrailError) -> None:
        self.error = error
        self.asked = 0

    async def keep(self, run: str, values: Sequence[str]) -> None: ...

    async def of(self, run: str) -> Sequence[str]:
        self.asked += 1
        raise self.error

    async def forget(self, run: str) -> None: ...


def taken_by_one_that_cannot(
    error: HandrailError, labels: frozenset[str] = frozenset()
) -> tuple[LeaseHolder, int, Run]:
    """A run whose worker is gone, and whose next one can't go on with it: how it is then, how often that was tried
    within a minute, and the run after a third worker was there."""
    stage = Stage(puppet("x.slow", taking(10), idempotent=True))

    async def scene() -> tuple[LeaseHolder, int, Run]:
        await stage.open()
        run = await stage.start(WORK)
        await asyncio.sleep(1)
        await stage.die()
        unable = await stage.open("w-unable")
        unable.dispatch.run_secrets = secrets = Secrets(error)
        await asyncio.sleep(60)
        holder = await stage.store.lease_holder(run.id)
        assert holder is not None
        tried = secrets.asked
        await stage.open("w-able", labels=labels)
        await asyncio.sleep(30)
        return holder, tried, await stage.worker.dispatch.current(run.id)

    return in_virtual_time(scene)


def test_a_node_that_lacks_the_key_of_its_secrets_leaves_a_run_to_one_that_has_it() -> None:
    error = SealedForOthers("sealed before this node was admitted", keys=[KEY])
    holder, tried, run = taken_by_one_that_cannot(error, labels=frozenset({f"opens:{KEY}"}))
    assert (holder.owner, holder.needs) == ("", f"opens:{KEY}")
    assert tried == 1
    assert run.status is RunStatus.COMPLETED


def test_a_node_that_cannot_read_a_run_releases_it_and_looks_again_only_now_and_then() -> None:
    holder, tried, run = taken_by_one_that_cannot(IntegrityBroken("event 3 is of a newer version"))
    assert holder.owner == ""
    assert 3 <= tried <= 5
    assert run.status is RunStatus.COMPLETED


def test_a_store_that_is_away_for_a_moment_costs_a_run_no_time() -> None:
    stage = Stage(puppet("x.slow", taking(10), idempotent=True))

    async def scene() -> Run:
        await stage.open()
        run = await stage.start(WORK)
        await asyncio.sleep(1)
        await stage.die()
        worker = await stage.open("w-two")
        worker.dispatch.run_secrets = Secrets(Unavailable("the store does not answer"))
        await asyncio.sleep(5)
        worker.dispatch.run_secrets = None
        await asyncio.sleep(1)
        assert run.id in worker.conductors
        return await worker.settled(run.id)

    assert in_virtual_time(scene).status is RunStatus.COMPLETED


@pytest.mark.parametrize("needs", ["opens:a|opens:b", "opens:a"])
def test_what_is_missing_is_said_once(needs: str) -> None:

    assert in_words(needs) == "the key of its secret inputs"
