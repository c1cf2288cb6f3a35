"""The one entrance for change: synced before answered, nothing lost when many write at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from domain.facts import CHAIN, plan
from handrail.domain.errors import Conflict, IntegrityBroken, JournalConflict, NotFound, Unavailable
from handrail.domain.journal.chain import GENESIS, Head, Record, first_break
from handrail.domain.journal.event import Mode
from handrail.domain.journal.projection import Change
from handrail.domain.run.command import (
    CancelRun,
    CompleteStep,
    PauseRun,
    RecordDecision,
    SetVars,
    StartAttempt,
    StartRun,
)
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.engine import dispatch as dispatching
from handrail.engine import pinned_definitions
from handrail.engine.dispatch import Dispatch
from handrail.engine.running.lease import Lease
from handrail.storage.memory import MemoryStore
from support import record_writer

ADA = "person:ada"
WIDE = plan(*({"id": f"s{n}", "tool": "x.y", "effect": "none", "after": []} for n in range(50)))


class Flaky(MemoryStore):
    """A store whose next appends fail, or wait until they are let through."""

    failures = 0
    gate: asyncio.Event | None = None

    async def append(self, records: Sequence[Record], change: Change, *, lease: Lease | None = None) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise Unavailable("no space left")
        await super().append(records, change, lease=lease)


def make(store: MemoryStore, seed: int = 0) -> Dispatch:
    return Dispatch(store, record_writer(seed))


async def start(dispatch: Dispatch) -> Run:
    return await dispatch.start(CHAIN, {}, actor=ADA, ask=StartRun(goal="ship it"))


async def test_a_started_run_is_in_the_journal_with_its_definition_and_a_receipt() -> None:
    store = MemoryStore()
    run = await start(make(store))
    assert (run.status, run.goal, run.n) == (RunStatus.RUNNING, "ship it", 1)
    records = await store.read(run.id)
    assert [record.kind for record in records] == ["run_started"]
    assert run.receipt == f"1:{records[0].hash.hex()[:16]}"
    assert await store.definition(run.definition)
    assert first_break(Head(run.id, 0, GENESIS), records)[1] is None


async def test_another_process_knows_the_run_from_the_journal_alone() -> None:
    store = MemoryStore()
    run = await start(make(store))
    other = make(store, seed=1)
    after = await other.grant(run.id, StartAttempt(step="tag"), actor="worker:2")
    assert after.step("tag").status is StepStatus.RUNNING
    assert await other.current(run.id) == after


async def test_a_refusal_is_judged_by_what_others_have_written_meanwhile() -> None:
    store = MemoryStore()
    one, two = make(store), make(store, seed=1)
    run = await start(one)
    await two.grant(run.id, StartAttempt(step="tag"), actor="worker:2")
    await two.grant(run.id, CompleteStep(step="tag"), actor="worker:2")
    # `one` still believes that nothing has happened; the call is legal all the same.
    after = await one.grant(run.id, StartAttempt(step="build"), actor="worker:1")
    assert after.step("build").status is StepStatus.RUNNING
    assert (await one.current(run.id)).n == 4


async def test_a_refused_command_changes_nothing() -> None:
    store = MemoryStore()
    dispatch = make(store)
    run = await start(dispatch)
    with pytest.raises(Conflict, match="waits for"):
        await dispatch.grant(run.id, StartAttempt(step="publish"), actor="handrail")
    assert len(await store.read(run.id)) == 1


async def test_an_unknown_run_is_not_found() -> None:
    with pytest.raises(NotFound, match="run_nowhere"):
        await make(MemoryStore()).grant("run_nowhere", CancelRun(reason="x"), actor=ADA)


async def test_many_commands_at_once_on_one_run_are_all_granted_in_a_dense_order() -> None:
    store = MemoryStore()
    dispatch = make(store)
    run = await dispatch.start(WIDE, {}, actor=ADA)

    async def work(n: int) -> None:
        await dispatch.grant(run.id, StartAttempt(step=f"s{n}"), actor=f"worker:{n}")
        await dispatch.grant(run.id, CompleteStep(step=f"s{n}", output=n), actor=f"worker:{n}")

    await asyncio.gather(*(work(n) for n in range(50)))
    records = await store.read(run.id)
    assert [record.n for record in records] == list(range(1, 102))
    assert first_break(Head(run.id), records)[1] is None
    assert (await dispatch.current(run.id)).done == 50


async def test_two_processes_at_once_on_one_run_lose_nothing() -> None:
    store = MemoryStore()
    one, two = make(store), make(store, seed=1)
    run = await start(one)

    async def note(dispatch: Dispatch, name: str) -> None:
        for n in range(20):
            await dispatch.grant(run.id, RecordDecision(decision=f"{name}{n}", reason="r"), actor=name)

    await asyncio.gather(note(one, "a"), note(two, "b"))
    records = await store.read(run.id)
    assert len(records) == 41
    assert first_break(Head(run.id), records)[1] is None


async def test_a_failed_append_is_shown_and_leaves_no_trace_in_memory() -> None:
    store = Flaky()
    dispatch = make(store)
    run = await start(dispatch)
    store.failures = 1
    with pytest.raises(Unavailable):
        await dispatch.grant(run.id, PauseRun(reason="lunch"), actor=ADA)
    assert (await dispatch.current(run.id)).status is RunStatus.RUNNING
    assert (await dispatch.grant(run.id, PauseRun(reason="lunch"), actor=ADA)).status is RunStatus.PAUSED


async def test_what_counted_on_a_failed_append_is_decided_again() -> None:
    store = Flaky()
    dispatch = make(store)
    run = await start(dispatch)
    store.gate = asyncio.Event()
    pausing = asyncio.create_task(dispatch.grant(run.id, PauseRun(reason="lunch"), actor=ADA))
    await asyncio.sleep(0)
    # By the state in memory the run is paused and this is refused; but that pause will never be written.
    starting = asyncio.create_task(dispatch.grant(run.id, StartAttempt(step="tag"), actor="handrail"))
    await asyncio.sleep(0)
    store.failures = 1
    store.gate.set()
    with pytest.raises(Unavailable):
        await pausing
    assert (await starting).step("tag").status is StepStatus.RUNNING


async def test_asking_twice_is_answered_only_once_the_first_is_synced() -> None:
    store = Flaky()
    dispatch = make(store)
    run = await start(dispatch)
    store.gate = asyncio.Event()
    first = asyncio.create_task(dispatch.grant(run.id, CancelRun(reason="x"), actor=ADA))
    await asyncio.sleep(0)
    second = asyncio.create_task(dispatch.grant(run.id, CancelRun(reason="x"), actor=ADA))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not second.done()
    store.gate.set()
    assert (await first).status is (await second).status is RunStatus.CANCELLED
    assert len(await store.read(run.id)) == 2


async def test_a_cancelled_caller_does_not_confuse_the_next_one() -> None:
    store = Flaky()
    dispatch = make(store)
    run = await start(dispatch)
    store.gate = asyncio.Event()
    gone = asyncio.create_task(dispatch.grant(run.id, PauseRun(reason="x"), actor=ADA))
    await asyncio.sleep(0)
    gone.cancel()
    store.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert (await dispatch.grant(run.id, SetVars(vars={"a": 1}), actor=ADA)).vars == {"a": 1}


async def test_endless_competition_ends_in_a_conflict_that_says_so() -> None:
    class Racing(MemoryStore):
        async def append(self, records: Sequence[Record], change: Change, *, lease: Lease | None = None) -> None:
            if records[0].n > 1:
                raise JournalConflict("someone was first")
            await super().append(records, change, lease=lease)

    dispatch = make(Racing())
    run = await start(dispatch)
    with pytest.raises(JournalConflict, match="too many writers"):
        await dispatch.grant(run.id, PauseRun(reason="x"), actor=ADA)


async def test_marked_inputs_never_reach_the_journal_not_even_later() -> None:
    secretive = plan({"id": "go", "prompt": "go"})
    marked = type(secretive)(id="p", steps=secretive.steps, inputs={"key": {"type": "string", "format": "password"}})
    store = MemoryStore()
    dispatch = make(store)
    run = await dispatch.start(marked, {"key": "hunter2-hunter2"}, actor=ADA, ask=StartRun(mode=Mode.RECORD))
    await dispatch.grant(run.id, RecordDecision(decision="use hunter2-hunter2 here", reason="r"), actor=ADA)
    bodies = b"".join(record.body for record in await store.read(run.id))
    assert b"hunter2" not in bodies
    assert run.inputs != {"key": "hunter2-hunter2"}


async def test_only_so_many_runs_are_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "RUNS_KEPT", 3)
    monkeypatch.setattr(pinned_definitions, "DEFINITIONS_KEPT", 1)
    store = MemoryStore()
    dispatch = make(store)
    runs = [await start(dispatch) for _ in range(5)]
    other = make(store, seed=9)
    for run in runs:
        assert (await other.grant(run.id, PauseRun(reason="x"), actor=ADA)).status is RunStatus.PAUSED
        assert (await dispatch.current(run.id)).status is RunStatus.PAUSED


async def test_a_run_whose_definition_is_gone_is_broken() -> None:
    class Forgetful(MemoryStore):
        async def definition(self, content_hash: str) -> bytes | None:
            return None

    store = Forgetful()
    run = await start(make(store))
    with pytest.raises(IntegrityBroken, match="is not in the store"):
        await make(store, seed=1).grant(run.id, PauseRun(reason="x"), actor=ADA)


async def test_the_log_tells_of_beginnings_and_ends_with_run_and_duration(caplog: pytest.LogCaptureFixture) -> None:
    dispatch = make(MemoryStore())
    with caplog.at_level("INFO", "handrail"):
        run = await start(dispatch)
        await dispatch.grant(run.id, StartAttempt(step="tag"), actor="handrail")
        await dispatch.grant(run.id, CancelRun(reason="enough"), actor=ADA)
    assert [record.getMessage() for record in caplog.records] == [f"run_started by {ADA}", f"run_cancelled by {ADA}"]
    assert {record.__dict__["run"] for record in caplog.records} == {run.id}
    assert all(record.__dict__["duration_ms"] >= 0 for record in caplog.records)
    caplog.clear()
    with caplog.at_level("DEBUG", "handrail"):
        other = await start(dispatch)
        await dispatch.grant(other.id, StartAttempt(step="tag"), actor="handrail")
    assert caplog.records[-1].__dict__["step"] == "tag"


async def test_a_run_longer_than_a_page_is_read_to_its_end() -> None:
    store = MemoryStore()
    dispatch = make(store)
    run = await start(dispatch)
    await asyncio.gather(*(dispatch.grant(run.id, SetVars(vars={f"v{n % 7}": n}), actor=ADA) for n in range(2_100)))
    again = await make(store, seed=1).current(run.id)
    assert again.n == 2_101
    assert again == await dispatch.current(run.id)


async def test_an_id_that_is_taken_is_not_used_twice() -> None:
    store = MemoryStore()
    first, second = (
        Dispatch(store, record_writer(7)),
        Dispatch(store, record_writer(7)),
    )  # the same time, the same chance
    taken = await first.start(CHAIN, {}, actor=ADA)
    other = await second.start(CHAIN, {}, actor=ADA, owner="w-one")
    assert other.id != taken.id
    assert other.id[:8] == taken.id[:8]  # begun in the same second
    assert len(await store.read(taken.id)) == 1
