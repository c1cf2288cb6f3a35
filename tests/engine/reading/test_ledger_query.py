"""Questions to the ledger: what is asked for is found, page by page in both directions, while others write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from domain.facts import CHAIN
from handrail.domain.errors import NotFound
from handrail.domain.run.command import CancelRun, PauseRun, RecordAction, RecordDecision
from handrail.engine.dispatch import Dispatch
from handrail.engine.reading import ledger
from handrail.engine.reading.ledger import Hit, Ledger, Query
from handrail.storage.memory import MemoryStore
from handrail.storage.sqlite.store import SqliteStore
from support import record_writer


@dataclass
class Shelf:
    """A store with some runs, and its ledger."""

    store: Any
    dispatch: Dispatch
    ledger: Ledger

    async def begin(self, notes: int = 0) -> str:
        """A run with so many decisions."""
        run = await self.dispatch.start(CHAIN, {}, actor="person:ada")
        for number in range(notes):
            await self.note(run.id, f"note {number}")
        return run.id

    async def note(self, run: str, decision: str, *, actor: str = "agent:claude", step: str | None = None) -> None:
        await self.dispatch.grant(run, RecordDecision(decision=decision, reason="r", step=step), actor=actor)

    async def found(self, **asked: Any) -> list[tuple[str, int]]:
        """The events of one answer, by stream and number."""
        return places((await self.ledger.query(Query(**asked))).hits)


def places(hits: tuple[Hit, ...]) -> list[tuple[str, int]]:
    return [(hit.record.stream, hit.record.n) for hit in hits]


def joined(pages: list[list[tuple[str, int]]]) -> list[tuple[str, int]]:
    return list(chain.from_iterable(pages))


@pytest.fixture(params=["memory", "sqlite"])
async def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shelf]:
    store: Any = MemoryStore() if request.param == "memory" else await SqliteStore.open(tmp_path / "journal.db")
    yield Shelf(store, Dispatch(store, record_writer()), Ledger(store, store))
    await store.close()


# --- filters -----------------------------------------------------------------------------------------------


async def test_a_run_is_shown_in_order_and_the_whole_store_newest_first(shelf: Shelf) -> None:
    one = await shelf.begin(2)
    two = await shelf.begin(1)
    assert await shelf.found(stream=one) == [(one, 1), (one, 2), (one, 3)]
    assert await shelf.found() == [(two, 2), (two, 1), (one, 3), (one, 2), (one, 1)]


async def test_a_stream_that_is_not_there_is_not_found(shelf: Shelf) -> None:
    with pytest.raises(NotFound, match="run_nowhere"):
        await shelf.found(stream="run_nowhere")
    assert await shelf.found() == []


async def test_every_filter_leaves_out_what_it_does_not_mean(shelf: Shelf) -> None:
    run = await shelf.begin()  # 1
    await shelf.note(run, "ship it", step="tag")  # 2
    await shelf.note(run, "wait", actor="person:ada", step="build")  # 3
    await shelf.dispatch.grant(run, RecordAction(description="told all", step="tag"), actor="agent:claude")  # 4
    await shelf.dispatch.grant(run, PauseRun(reason="lunch"), actor="person:ada")  # 5

    async def numbers(**asked: Any) -> list[int]:
        return [n for _, n in await shelf.found(stream=run, **asked)]

    assert await numbers(kinds=frozenset({"decision_recorded"})) == [2, 3]
    assert await numbers(kinds=frozenset({"run_paused", "action_recorded"})) == [4, 5]
    assert await numbers(kinds=frozenset({"nonsense"})) == []
    assert await numbers(step="tag") == [2, 4]
    assert await numbers(actor="person:ada") == [1, 3, 5]
    assert await numbers(step="tag", actor="agent:claude", kinds=frozenset({"action_recorded"})) == [4]
    assert await numbers(text="SHIP") == [2]
    instants = [record.at for record in await shelf.store.read(run)]
    assert await numbers(since=instants[2]) == [3, 4, 5]
    assert await numbers(until=instants[2]) == [1, 2, 3]
    assert await numbers(since=instants[1], until=instants[1]) == [2]


@pytest.mark.parametrize("text", ['say "hi"', "two\nlines", "c:\\temp", "ÜBER", "tab\there", "日本"])
async def test_a_text_is_found_as_it_was_said_whatever_signs_it_holds(shelf: Shelf, text: str) -> None:
    run = await shelf.begin()
    await shelf.note(run, "something else")
    await shelf.note(run, f"he said: {text}!")
    assert await shelf.found(text=text.lower()) == [(run, 3)]
    assert await shelf.found(text=text) == [(run, 3)]


async def test_a_text_that_can_not_be_said_is_in_no_event(shelf: Shelf) -> None:
    await shelf.begin(1)
    assert await shelf.found(text="\ud800") == []


# --- page by page ------------------------------------------------------------------------------------------


async def walked(shelf: Shelf, asked: Query, *, bound: int = 500) -> list[list[tuple[str, int]]]:
    """All pages from here to the end."""
    pages = []
    for _ in range(bound):
        found = await shelf.ledger.query(asked)
        pages.append(places(found.hits))
        if found.after is None:
            return pages
        asked = replace(asked, after=found.after)
    raise AssertionError("there is no end to it")


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7, 100])
@pytest.mark.parametrize("batch", [1, 2, 3, 1_000])
async def test_pages_hold_everything_once_in_both_directions(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, limit: int, batch: int
) -> None:
    monkeypatch.setattr(ledger, "BATCH", batch)
    one, two = await shelf.begin(3), await shelf.begin(2)
    in_run = await walked(shelf, Query(stream=one, limit=limit))
    in_store = await walked(shelf, Query(limit=limit))
    assert joined(in_run) == [(one, n) for n in (1, 2, 3, 4)]
    assert joined(in_store) == [*((two, n) for n in (3, 2, 1)), *((one, n) for n in (4, 3, 2, 1))]
    assert all(len(page) <= limit for page in (*in_run, *in_store))


async def test_pages_of_few_among_many_lose_and_repeat_none(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "BATCH", 4)
    run = await shelf.begin()
    for number in range(30):
        await shelf.note(run, f"note {number}", step="tag" if number % 7 == 0 else None)
    wanted = [(run, number + 2) for number in range(0, 30, 7)]
    assert joined(await walked(shelf, Query(stream=run, step="tag", limit=2))) == wanted
    assert joined(await walked(shelf, Query(step="tag", limit=2))) == wanted[::-1]


async def test_an_answer_looks_at_a_bounded_part_and_the_next_one_goes_on(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "BATCH", 2)
    monkeypatch.setattr(ledger, "READ_MAX", 6)
    run = await shelf.begin(20)
    await shelf.note(run, "the last", step="tag")
    for asked in (Query(stream=run, step="tag"), Query(step="tag"), Query(step="nothing")):
        pages = await walked(shelf, asked)
        assert len(pages) >= 3
        assert joined(pages) == ([(run, 22)] if asked.step == "tag" else [])


async def test_in_a_run_that_grows_later_pages_hold_what_was_written_meanwhile(shelf: Shelf) -> None:
    run = await shelf.begin(4)
    first = await shelf.ledger.query(Query(stream=run, limit=3))
    await shelf.note(run, "more")
    rest = await walked(shelf, Query(stream=run, limit=3, after=first.after))
    assert [*places(first.hits), *joined(rest)] == [(run, n) for n in range(1, 7)]


async def test_in_a_store_that_grows_going_back_repeats_nothing_and_loses_nothing(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "BATCH", 3)
    run = await shelf.begin(40)
    stop = asyncio.Event()

    async def write() -> None:
        for number in range(200):
            if stop.is_set():
                return
            await shelf.note(run, f"meanwhile {number}")

    writing = asyncio.ensure_future(write())
    pages = await walked(shelf, Query(limit=4))
    stop.set()
    await writing
    seen = [n for _, n in joined(pages)]
    assert seen == list(range(seen[0], 0, -1))
    assert seen[0] >= 41


async def test_an_answer_can_begin_again_with_any_of_its_events(shelf: Shelf) -> None:
    run = await shelf.begin(5)
    for asked in (Query(stream=run), Query()):
        hits = (await shelf.ledger.query(asked)).hits
        for place, hit in enumerate(hits):
            again = await shelf.ledger.query(replace(asked, after=hit.place))
            assert places(again.hits) == places(hits[place:])


async def test_a_place_beyond_the_end_is_the_end(shelf: Shelf) -> None:
    run = await shelf.begin(1)
    assert await shelf.found(after=10**9) == [(run, 2), (run, 1)]
    assert await shelf.found(after=0) == []
    assert await shelf.found(stream=run, after=2) == []


# --- decisions ---------------------------------------------------------------------------------------------


async def test_the_latest_decisions_are_shown_in_a_line_each(shelf: Shelf) -> None:
    run = await shelf.begin(4)
    await shelf.dispatch.grant(run, CancelRun(reason="enough"), actor="person:ada")
    await shelf.note(run, "two\nlines " + "x" * 300)
    lines = await shelf.ledger.decisions(run, limit=2)
    assert lines[0] == "note 3: r"
    assert lines[1].startswith("two lines xxx")
    assert len(lines[1]) == 200
