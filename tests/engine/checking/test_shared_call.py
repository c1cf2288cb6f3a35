"""A shared call: one for all who ask at the same time, and never one that has already started."""

from __future__ import annotations

import asyncio

import pytest

from handrail.engine.checking.shared_call import SharedCall


class Reader:
    """Reads a value that changes, slowly: it reads at its start, and answers when it is let go."""

    def __init__(self) -> None:
        self.value, self.calls = "old", 0
        self.go = asyncio.Event()

    async def __call__(self) -> str:
        self.calls += 1
        read = self.value
        await self.go.wait()
        return read


async def test_all_who_ask_at_the_same_time_share_one_call() -> None:
    reader = Reader()
    shared = SharedCall(reader)
    reader.go.set()
    assert list(await asyncio.gather(shared(), shared(), shared())) == ["old", "old", "old"]
    assert reader.calls == 1


async def test_who_asks_after_a_change_never_gets_what_was_read_before() -> None:
    reader = Reader()
    shared = SharedCall(reader)
    first = asyncio.ensure_future(shared())
    while not reader.calls:
        await asyncio.sleep(0)
    reader.value = "new"
    second = asyncio.ensure_future(shared())
    await asyncio.sleep(0)
    reader.go.set()
    assert [await first, await second] == ["old", "new"]


async def test_a_caller_that_gives_up_takes_nothing_from_the_others() -> None:
    reader = Reader()
    shared = SharedCall(reader)
    first, second = asyncio.ensure_future(shared()), asyncio.ensure_future(shared())
    await asyncio.sleep(0)
    first.cancel()
    reader.go.set()
    assert await second == "old"
    with pytest.raises(asyncio.CancelledError):
        await first
