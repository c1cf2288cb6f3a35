"""Starting under a key: asked for twice, a run is begun once; a key never stands for two things."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.guided_runs import Slow
from engine.stage import ADA, Stage, plan
from handrail.domain.definition.model import Definition
from handrail.domain.errors import Conflict, Unavailable
from handrail.domain.journal.chain import Head
from handrail.domain.journal.event import Event, Mode, RunStarted
from handrail.domain.run.command import StartRun
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus
from handrail.engine import dispatch
from handrail.engine.clock import ID_ALPHABET, ID_LENGTH, key_digest, keyed_id
from handrail.engine.dispatch import Dispatch
from handrail.engine.proving.erasure import erase_payload
from handrail.engine.running.worker import Worker
from handrail.storage.memory import MemoryStore
from handrail.storage.sqlite.store import SqliteStore
from support import record_writer, seeded_entropy, ticking_clock
from virtual_time import in_virtual_time

ONE = plan({"id": "write", "prompt": "write"})


async def start(worker: Worker, key: str, asked: str = "sha256:a", definition: Definition = ONE, **more: Any) -> Run:
    inputs: Mapping[str, Any] = more.pop("inputs", {})
    return await worker.start(definition, inputs, actor=ADA, ask=StartRun(key=key, asked=asked, **more))


async def runs_in(store: Any) -> int:
    return len(await store.runs(limit=100))


def test_the_same_key_with_the_same_body_is_the_same_run() -> None:
    async def scene() -> tuple[Run, Run, Run, int]:
        stage = Stage()
        worker = await stage.open()
        first = await start(worker, "deploy-42")
        again, other = await start(worker, "deploy-42"), await start(worker, "deploy-43")
        return first, again, other, await runs_in(stage.store)

    first, again, other, count = in_virtual_time(scene)
    assert first.id == again.id != other.id
    assert again.n == first.n
    assert count == 2


def test_without_a_key_every_start_is_a_new_run() -> None:
    async def scene() -> int:
        stage = Stage()
        worker = await stage.open()
        await start(worker, "", asked="")
        await start(worker, "", asked="")
        return await runs_in(stage.store)

    assert in_virtual_time(scene) == 2


def test_the_same_key_with_another_body_is_a_conflict_that_names_the_run() -> None:
    async def scene() -> None:
        stage = Stage()
        worker = await stage.open()
        run = await start(worker, "deploy-42")
        with pytest.raises(Conflict, match=f"'deploy-42' has started {run.id} with a different request") as refused:
            await start(worker, "deploy-42", asked="sha256:b")
        assert "new key" in refused.value.hint
        assert await runs_in(stage.store) == 1

    in_virtual_time(scene)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("store", [MemoryStore, Slow])
def test_two_at_once_under_one_key_begin_one_run(mode: Mode, store: Callable[[], Any]) -> None:
    async def scene() -> tuple[set[str], int]:
        stage = Stage(store=store())
        worker = await stage.open()
        runs = await asyncio.gather(*(start(worker, "k", mode=mode) for _ in range(5)))
        return {run.id for run in runs}, await runs_in(stage.store)

    ids, count = in_virtual_time(scene)
    assert len(ids) == count == 1


@pytest.mark.parametrize("store", [MemoryStore, Slow])
def test_of_two_at_once_with_different_bodies_one_starts_and_the_other_is_a_conflict(store: Callable[[], Any]) -> None:
    async def scene() -> tuple[list[str], int]:
        stage = Stage(store=store())
        worker = await stage.open()
        answers = await asyncio.gather(
            start(worker, "k", asked="sha256:a"), start(worker, "k", asked="sha256:b"), return_exceptions=True
        )
        return sorted(type(answer).__name__ for answer in answers), await runs_in(stage.store)

    assert in_virtual_time(scene) == (["Conflict", "Run"], 1)


async def test_two_processes_that_start_under_one_key_at_once_begin_one_run(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with await SqliteStore.open(path) as one, await SqliteStore.open(path) as two:
        stages = [Stage(store=store) for store in (one, two)]
        workers = [await stage.open(f"w-{number}") for number, stage in enumerate(stages)]
        runs = await asyncio.gather(*(start(worker, f"k{n}") for n in range(5) for worker in workers))
        for worker in workers:
            await worker.close()
        assert len({run.id for run in runs}) == 5
        assert await runs_in(one) == 5


def test_a_key_is_known_after_a_restart_and_when_the_run_has_ended() -> None:
    async def scene() -> tuple[Run, Run]:
        stage = Stage()
        worker = await stage.open()
        tool = plan({"id": "a", "tool": "x.do"})
        first = await start(worker, "k", definition=tool)
        await worker.settled(first.id)
        await stage.die()
        again = await start(await stage.open("w-two"), "k", definition=tool)
        with pytest.raises(Conflict):
            await start(stage.worker, "k", asked="sha256:b", definition=tool)
        return first, again

    first, again = in_virtual_time(scene)
    assert first.id == again.id
    assert again.status is RunStatus.COMPLETED


@pytest.mark.parametrize(
    "key", ["ghp_abcdefghijklmnopqrstuvwxyz0123456789", "password=hunter2hunter2", "ключ \ud800", "x" * 10_000]
)
def test_a_key_that_looks_like_a_secret_or_like_nothing_counts_as_any_other(key: str) -> None:
    async def scene() -> tuple[str, str, int, list[Event]]:
        stage = Stage()
        worker = await stage.open()
        first, again = await start(worker, key), await start(worker, key)
        return first.id, again.id, await runs_in(stage.store), await stage.events(first.id)

    first, again, count, events = in_virtual_time(scene)
    assert first == again
    assert count == 1
    assert isinstance(events[0], RunStarted)
    assert (events[0].key, events[0].asked) == (key_digest(key), "sha256:a")


def test_a_key_that_is_also_a_secret_input_is_known_again() -> None:
    definition = plan({"id": "write", "prompt": "x"}, inputs={"pin": {"type": "string", "secret": True}})

    async def scene() -> set[str]:
        stage = Stage()
        worker = await stage.open()
        both = [await start(worker, "hunter2hunter2", definition=definition, inputs={"pin": "hunter2hunter2"})]
        await stage.die()
        worker = await stage.open("w-two")
        both.append(await start(worker, "hunter2hunter2", definition=definition, inputs={"pin": "hunter2hunter2"}))
        return {run.id for run in both}

    assert len(in_virtual_time(scene)) == 1


async def test_a_key_is_known_though_the_words_of_the_start_were_erased() -> None:
    store = MemoryStore()
    one = Dispatch(store, record_writer())
    ask = StartRun(key="k", asked="sha256:a", goal="fire Bob")
    run = await one.start(ONE, {}, actor=ADA, ask=ask)
    entropy = seeded_entropy(1)
    await erase_payload(store, store, run.id, 1, reason="a name", actor=ADA, clock=ticking_clock(), entropy=entropy)
    anew = Dispatch(store, record_writer(2))
    known = await anew.started_under_key(ask)
    assert known is not None
    assert (known.id, known.goal) == (run.id, "[erased]")
    with pytest.raises(Conflict, match="already"):
        await anew.start(ONE, {}, actor=ADA, ask=ask)


def test_the_id_of_a_key_looks_like_any_other_and_is_distinguished_by_its_number() -> None:
    assert keyed_id("run_", "k") == keyed_id("run_", "k")
    assert len({keyed_id("run_", "k", number) for number in range(10)} | {keyed_id("run_", "l")}) == 11
    assert len(keyed_id("run_", "k")) == len("run_") + ID_LENGTH
    assert set(keyed_id("run_", "k").removeprefix("run_")) <= set(ID_ALPHABET)


async def test_two_keys_that_stand_for_one_id_still_begin_two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "keyed_id", lambda prefix, _, number=0: f"{prefix}same{number}")
    books = Dispatch(MemoryStore(), record_writer())
    asks = [StartRun(key=key, asked="sha256:a") for key in ("k", "l")]
    runs = [await books.start(ONE, {}, actor=ADA, ask=ask) for ask in asks]
    assert [run.id for run in runs] == ["run_same0", "run_same1"]
    assert [(await books.started_under_key(ask)) for ask in asks] == runs
    monkeypatch.setattr(dispatch, "CONFLICTS_MAX", 2)
    with pytest.raises(Conflict, match="no free id"):
        await books.started_under_key(StartRun(key="m", asked="sha256:a"))


async def test_a_start_that_could_not_be_written_leaves_the_key_free(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise Unavailable("the disk is full")

    store = MemoryStore()
    books = Dispatch(store, record_writer())
    ask = StartRun(key="k", asked="sha256:a")
    with monkeypatch.context() as full:
        full.setattr(store, "append", refuse)
        with pytest.raises(Unavailable, match="disk is full"):
            await books.start(ONE, {}, actor=ADA, ask=ask)
    assert await books.started_under_key(ask) is None
    assert (await books.start(ONE, {}, actor=ADA, ask=ask)).n == 1


def test_what_a_run_was_started_with_is_in_its_first_event() -> None:
    started = RunStarted(definition="sha256:0", workflow="a-plan", key=key_digest("k"), asked="sha256:a")
    (record,), (entry,) = record_writer().write(Head("run_a"), [started], actor=ADA)
    assert entry.event == started
    assert key_digest("k").encode() in record.body
