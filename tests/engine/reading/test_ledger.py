"""The ledger: events as readers see them."""

from __future__ import annotations

import pytest

from domain.facts import CHAIN
from handrail.domain.errors import NotFound
from handrail.domain.journal.chain import GENESIS, Head
from handrail.domain.journal.event import DecisionRecorded, Event
from handrail.domain.journal.store_event import PlanSaved
from handrail.domain.run.command import RecordDecision
from handrail.engine.dispatch import Dispatch
from handrail.engine.reading.ledger import Ledger, event_view, summary
from handrail.storage.memory import MemoryStore
from support import record_writer


async def test_events_are_shown_by_stream_or_as_the_latest_of_all() -> None:
    store = MemoryStore()
    dispatch = Dispatch(store, record_writer())
    run = await dispatch.start(CHAIN, {}, actor="person:ada")
    other = await dispatch.start(CHAIN, {}, actor="person:ada")
    await dispatch.grant(run.id, RecordDecision(decision="go", reason="why not", step="tag"), actor="agent:claude")
    ledger = Ledger(store, store)
    assert [record.n for record in await ledger.of_stream(run.id)] == [1, 2]
    assert await ledger.of_stream(run.id, after=2) == []
    assert [record.stream for record in await ledger.latest(limit=2)] == [other.id, run.id]
    with pytest.raises(NotFound):
        await ledger.of_stream("run_nowhere")


async def test_an_export_leads_from_each_event_to_the_one_before_it() -> None:
    store = MemoryStore()
    dispatch = Dispatch(store, record_writer())
    run = await dispatch.start(CHAIN, {}, actor="person:ada")
    await dispatch.grant(run.id, RecordDecision(decision="go", reason="r"), actor="agent:claude")
    views = [view async for view in Ledger(store, store).export(run.id)]
    assert views[0]["prev"] == GENESIS.hex()
    assert views[1]["prev"] == views[0]["hash"]


def test_a_view_leaves_out_what_is_not_there_and_a_summary_what_nobody_reads() -> None:
    events: list[Event] = [
        DecisionRecorded(decision="go", reason="why\n  not", alternatives=()),
        PlanSaved(version=1, definition="sha256:" + "a" * 64, name="x" * 100, steps=2),
    ]
    decision, plan = record_writer().write(Head("run_a"), events, actor="a")[0]
    assert "step" not in event_view(decision)
    assert summary(decision) == "decision=go reason=why not"
    assert summary(plan) == f"version=1 definition=sha256:aaaaaaaa… name={'x' * 59}… steps=2"
