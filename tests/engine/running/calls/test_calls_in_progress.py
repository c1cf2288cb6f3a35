"""Calls in progress: each is known by name until it has ended, however it ends."""

from __future__ import annotations

import asyncio

from handrail.engine.running.calls.calls_in_progress import PROGRESS_LENGTH_MAX, CallsInProgress


async def test_a_call_is_known_until_it_has_ended() -> None:
    calls, ended, may_end = CallsInProgress(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await may_end.wait()

    calls.start("build", work(), on_end=ended.set)
    calls.note_progress("build", "x" * 1_000)
    assert (len(calls), list(calls.tasks), len(calls.progress["build"])) == (1, ["build"], PROGRESS_LENGTH_MAX)
    may_end.set()
    await ended.wait()
    assert not calls
    assert calls.progress == {}


async def test_a_call_that_is_cancelled_before_it_starts_has_ended_too() -> None:
    calls, ended = CallsInProgress(), asyncio.Event()

    async def work() -> None:
        raise AssertionError("it never starts")

    calls.start("build", work(), on_end=ended.set)
    calls.tasks["build"].cancel()
    await ended.wait()
    assert not calls
