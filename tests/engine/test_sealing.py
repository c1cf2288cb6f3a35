"""Sealing: ends of runs and every so many events are signed, without making anyone wait."""

from __future__ import annotations

import asyncio
import logging

import pytest

from domain.facts import CHAIN
from handrail.domain.checkpoint import Checkpoint
from handrail.domain.command import CancelRun, SetVars
from handrail.domain.errors import Unavailable
from handrail.domain.run import Run
from handrail.engine import custody
from handrail.engine.dispatch import Dispatch
from handrail.engine.notary import store_created
from handrail.engine.sealing import SealingJournal
from handrail.storage.memory import MemoryStore
from support import scribe

ADA = "person:ada"


class CountingNotary:
    """Counts the seals it is asked for."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails = False
        self.sealed = asyncio.Event()

    async def seal(self, *, restart: bool = False) -> Checkpoint | None:
        self.asked += 1
        self.sealed.set()
        if self.fails:
            raise Unavailable("no room")
        return None


@pytest.fixture
async def notary() -> CountingNotary:
    return CountingNotary()


def sealing(notary: CountingNotary, every: int = 100) -> tuple[SealingJournal, Dispatch]:
    journal = SealingJournal(MemoryStore(), notary, every=every, rest_s=0.001)
    return journal, Dispatch(journal, scribe())


async def start(dispatch: Dispatch) -> Run:
    return await dispatch.start(CHAIN, {}, actor=ADA)


async def test_the_end_of_a_run_is_sealed_soon_after(notary: CountingNotary) -> None:
    journal, dispatch = sealing(notary)
    run = await start(dispatch)
    assert notary.asked == 0
    await dispatch.grant(run.id, CancelRun(reason="enough"), actor=ADA)
    await asyncio.wait_for(notary.sealed.wait(), 5)
    await journal.close()
    assert notary.asked == 1


async def test_so_many_events_are_sealed_without_an_end(notary: CountingNotary) -> None:
    journal, dispatch = sealing(notary, every=3)
    run = await start(dispatch)
    for n in range(3):
        await dispatch.grant(run.id, SetVars(vars={"n": n}), actor=ADA)
    await asyncio.wait_for(notary.sealed.wait(), 5)
    await journal.close()


async def test_many_ends_at_once_share_a_seal(notary: CountingNotary) -> None:
    journal, dispatch = sealing(notary)
    runs = [await start(dispatch) for _ in range(20)]
    await asyncio.gather(*(dispatch.grant(run.id, CancelRun(reason="x"), actor=ADA) for run in runs))
    await journal.close()
    assert 1 <= notary.asked <= 3


async def test_closing_seals_the_rest_and_nothing_twice(notary: CountingNotary) -> None:
    journal, dispatch = sealing(notary)
    await start(dispatch)
    await journal.close()
    await journal.close()
    assert notary.asked == 1


async def test_a_seal_that_fails_fails_nobody_and_is_reported(
    notary: CountingNotary, caplog: pytest.LogCaptureFixture
) -> None:
    notary.fails = True
    journal, dispatch = sealing(notary)
    await start(dispatch)
    with caplog.at_level(logging.WARNING, "handrail"):
        await journal.close()
    assert "no checkpoint could be signed: no room" in caplog.text


async def test_reads_go_straight_through(notary: CountingNotary) -> None:
    journal, dispatch = sealing(notary)
    run = await start(dispatch)
    assert len(await journal.read(run.id)) == 1
    assert await journal.definition(run.definition)


async def test_a_store_says_once_that_it_was_made() -> None:
    store = MemoryStore()
    await custody.create(store, scribe(), key="00")
    await custody.create(store, scribe(1), key="11")
    created = await store_created(store)
    assert created is not None
    assert created.key == "00"
    assert len(await store.read("store")) == 1


async def test_an_acceptance_is_written_behind_all_else() -> None:
    store = MemoryStore()
    await custody.create(store, scribe(), key="00")
    await custody.accept(store, scribe(1), reason="restored", found="shorter", actor=ADA)
    kinds = [record.kind for record in await store.read("store")]
    assert kinds == ["store_created", "journal_accepted"]
