"""Sealing: ends of runs and every so many events are signed, without making anyone wait."""

from __future__ import annotations

import asyncio
import logging

import pytest

from domain.facts import CHAIN
from handrail.domain.errors import Unavailable
from handrail.domain.journal.checkpoint import Checkpoint
from handrail.domain.run.command import CancelRun, SetVars
from handrail.domain.run.state import Run
from handrail.engine.dispatch import Dispatch
from handrail.engine.proving import store_facts as custody
from handrail.engine.proving.checkpointer import store_created
from handrail.engine.proving.checkpointing_journal import CheckpointingJournal
from handrail.storage.memory import MemoryStore
from support import record_writer

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
async def checkpointer() -> CountingNotary:
    return CountingNotary()


def sealing(checkpointer: CountingNotary, every: int = 100) -> tuple[CheckpointingJournal, Dispatch]:
    journal = CheckpointingJournal(MemoryStore(), checkpointer, every=every, rest_s=0.001)
    return journal, Dispatch(journal, record_writer())


async def start(dispatch: Dispatch) -> Run:
    return await dispatch.start(CHAIN, {}, actor=ADA)


async def test_the_end_of_a_run_is_sealed_soon_after(checkpointer: CountingNotary) -> None:
    journal, dispatch = sealing(checkpointer)
    run = await start(dispatch)
    assert checkpointer.asked == 0
    await dispatch.grant(run.id, CancelRun(reason="enough"), actor=ADA)
    await asyncio.wait_for(checkpointer.sealed.wait(), 5)
    await journal.close()
    assert checkpointer.asked == 1


async def test_so_many_events_are_sealed_without_an_end(checkpointer: CountingNotary) -> None:
    journal, dispatch = sealing(checkpointer, every=3)
    run = await start(dispatch)
    for n in range(3):
        await dispatch.grant(run.id, SetVars(vars={"n": n}), actor=ADA)
    await asyncio.wait_for(checkpointer.sealed.wait(), 5)
    await journal.close()


async def test_many_ends_at_once_share_a_seal(checkpointer: CountingNotary) -> None:
    journal, dispatch = sealing(checkpointer)
    runs = [await start(dispatch) for _ in range(20)]
    await asyncio.gather(*(dispatch.grant(run.id, CancelRun(reason="x"), actor=ADA) for run in runs))
    await journal.close()
    assert 1 <= checkpointer.asked <= 3


async def test_closing_seals_the_rest_and_nothing_twice(checkpointer: CountingNotary) -> None:
    journal, dispatch = sealing(checkpointer)
    await start(dispatch)
    await journal.close()
    await journal.close()
    assert checkpointer.asked == 1


async def test_a_seal_that_fails_fails_nobody_and_is_reported(
    checkpointer: CountingNotary, caplog: pytest.LogCaptureFixture
) -> None:
    checkpointer.fails = True
    journal, dispatch = sealing(checkpointer)
    await start(dispatch)
    with caplog.at_level(logging.WARNING, "handrail"):
        await journal.close()
    assert "no checkpoint could be signed: no room" in caplog.text


async def test_reads_go_straight_through(checkpointer: CountingNotary) -> None:
    journal, dispatch = sealing(checkpointer)
    run = await start(dispatch)
    assert len(await journal.read(run.id)) == 1
    assert await journal.definition(run.definition)


async def test_a_store_says_once_that_it_was_made() -> None:
    store = MemoryStore()
    await custody.create(store, record_writer(), key="00")
    await custody.create(store, record_writer(1), key="11")
    created = await store_created(store)
    assert created is not None
    assert created.key == "00"
    assert len(await store.read("store")) == 1


async def test_an_acceptance_is_written_behind_all_else() -> None:
    store = MemoryStore()
    await custody.create(store, record_writer(), key="00")
    await custody.accept(store, record_writer(1), reason="restored", found="shorter", actor=ADA)
    kinds = [record.kind for record in await store.read("store")]
    assert kinds == ["store_created", "journal_accepted"]
