"""A hostile server hurts nobody but itself: the right category, a loop that goes on, and neighbours that answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.definition.model import Category
from handrail.tools.mcp.connection import ServerConnection
from handrail.tools.mcp.transport import pipe
from tools.calls import Fails
from tools.mcp.servers_at_hand import Heart, call, described_as, is_alive, opened, until

GAP_S_MAX = 0.75
"""Loose: this machine is shared. A reader that holds the loop up takes seconds."""


@pytest.fixture
async def neighbour(tmp_path: Path) -> AsyncIterator[ServerConnection]:
    async with opened(tmp_path / "neighbour") as healthy:
        (tmp_path / "neighbour").mkdir()
        await healthy.listing()
        yield healthy


@pytest.mark.parametrize(
    ("tool", "args", "category", "words"),
    [
        ("die", {}, Category.TRANSIENT, "ended with exit status 3; it last wrote: out of cheese"),
        ("hush", {}, Category.TRANSIENT, ""),
        ("crash", {}, Category.TRANSIENT, "was killed by SIGKILL"),
        ("big", {"bytes": 50_000_000, "id": "first"}, Category.TOOL_ERROR, "answered with more than 16 MB"),
        ("big", {"bytes": 50_000_000, "id": "last"}, Category.TOOL_ERROR, "answered with more than 16 MB"),
        ("many", {"count": 1_500_000}, Category.TOOL_ERROR, "too many values"),
        ("endless", {"megabytes": 100}, Category.TOOL_ERROR, "answered with more than 16 MB"),
        ("malformed", {}, Category.TOOL_ERROR, "can't be read"),
        ("anonymous", {}, Category.TOOL_ERROR, "can't be read"),
        ("deep", {}, Category.TOOL_ERROR, "can't be read"),
        ("wrong", {}, Category.TOOL_ERROR, "can't be read"),
        ("misshapen", {}, Category.TOOL_ERROR, "sent an invalid response"),
        ("nobody", {}, Category.TOOL_ERROR, "could not read what it was sent"),
        ("blare", {"count": 5_000}, Category.TRANSIENT, "lines in a row that are not messages"),
        ("refuse", {"code": -32602}, Category.INVALID_INPUT, "no"),
        ("refuse", {"code": -32601}, Category.NOT_FOUND, "no"),
        ("refuse", {"code": -32000}, Category.TOOL_ERROR, "no"),
        ("refuse", {"code": -32001}, Category.TIMEOUT, "no"),
        ("refuse", {"code": 17, "text": "x" * 9_000}, Category.TOOL_ERROR, "xxx …"),
        ("promise", {"more": {"structuredContent": {"n": "one"}}}, Category.TOOL_ERROR, "does not fit its output"),
        ("promise", {}, Category.TOOL_ERROR, "without a structured result"),
    ],
)
async def test_a_call_that_goes_wrong_has_the_right_category_and_affects_no_other_call(
    tool: str, args: dict[str, Any], category: Category, words: str, tmp_path: Path, neighbour: ServerConnection
) -> None:
    async with opened(tmp_path) as bad:
        await bad.listing()
        async with Heart() as heart:
            failing = asyncio.create_task(call(bad, tool, **args))
            assert await call(neighbour, "echo", text="here") == "here"
            with Fails(category, words):
                await failing
            assert await call(neighbour, "echo", text="still") == "still"
        assert heart.gap_s < GAP_S_MAX
        await until(lambda: bad.status.status != "resting")
        assert await call(bad, "echo", text="again") == "again"


async def test_a_flood_of_progress_is_thinned_out_before_it_is_looked_at(
    tmp_path: Path, neighbour: ServerConnection
) -> None:
    async with opened(tmp_path) as bad, Heart() as heart:
        await bad.listing()
        steps: list[str] = []
        flooding = asyncio.create_task(call(bad, "flood", count=100_000, progress=steps.append))
        assert await call(neighbour, "echo", text="here") == "here"
        assert await flooding == "flooded"
        assert 1 < len(steps) < 1_000
        assert heart.gap_s < GAP_S_MAX


async def test_a_flood_of_other_notices_is_thinned_out_and_the_change_is_not_forgotten(tmp_path: Path) -> None:
    async with opened(tmp_path) as bad:
        before = await bad.listing()
        assert await bad.listing() is before  # the server is not asked again without a reason
        assert await call(bad, "notices", count=900) == "noticed"
        after = await bad.listing()
        assert after is not before
        assert await bad.listing() is after  # 900 notices, and it was asked once


async def test_a_promise_that_would_take_forever_to_check_is_not_checked(tmp_path: Path) -> None:
    async with opened(tmp_path) as bad, asyncio.timeout(10):
        await bad.listing()
        assert await call(bad, "riddle") == "riddled"


async def test_an_answer_that_comes_twice_counts_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as bad:
        assert [await call(bad, "twice") for _ in range(3)] == ["first"] * 3
        assert await call(bad, "echo", text="own") == "own"


async def test_noise_on_the_output_is_left_out_and_noted_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as bad:
        assert [await call(bad, "noise") for _ in range(2)] == ["through the noise"] * 2
        log = Path(bad.status.log).read_text()
        assert log.count("that are not messages") == 1


async def test_a_request_for_sampling_is_refused_in_words_to_the_server_and_in_the_log(tmp_path: Path) -> None:
    async with opened(tmp_path) as bad:
        error = json.loads(await call(bad, "sample"))
        assert "Sampling not supported" in error["message"]
        assert "it asked for a model's words (sampling)" in Path(bad.status.log).read_text()


async def test_a_server_that_asks_without_listening_is_ended(tmp_path: Path) -> None:
    async with opened(tmp_path) as bad:
        with Fails(Category.TRANSIENT, "without reading the answers"):
            await call(bad, "beg", count=30_000)


async def test_one_line_without_an_end_ends_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "ENDLESS_BYTES_MAX", 30_000_000)
    async with opened(tmp_path) as bad:
        with Fails(Category.TRANSIENT, "wrote one line of more than 30 MB"):
            await call(bad, "endless", megabytes=60)


async def test_another_call_on_the_same_connection_survives_an_answer_that_is_too_large(tmp_path: Path) -> None:
    async with opened(tmp_path) as bad:
        hanging = asyncio.create_task(call(bad, "hang"))
        with Fails(Category.TOOL_ERROR, "more than 16 MB"):
            await call(bad, "big", bytes=20_000_000, id="first")
        assert await call(bad, "echo", text="here") == "here"
        assert not hanging.done()
        hanging.cancel()
        await asyncio.wait([hanging])


async def test_a_server_that_ends_at_once_says_why_and_is_left_alone_for_longer_each_time(tmp_path: Path) -> None:
    async with opened(tmp_path, "leaves") as bad:
        with Fails(Category.TRANSIENT, "ended with exit status 7; it last wrote: no licence found"):
            await bad.listing()
        with Fails(Category.TRANSIENT, "is paused after a failure") as first:
            await call(bad, "echo")
        assert bad.status.status in {"resting", "stopped"}  # a busy machine may take longer than it rests
        assert bad.status.error
        assert "no licence found" in bad.status.error
        await until(lambda: bad.status.status == "stopped")
        with Fails(Category.TRANSIENT, "exit status 7"):
            await bad.listing()
        with Fails(Category.TRANSIENT, "is paused after a failure") as second:
            await bad.listing()
        assert 0 < (first.failed.retry_after_ms or 0) <= 500 < (second.failed.retry_after_ms or 0) <= 1_000


async def test_a_server_that_never_greets_fails_in_its_time(tmp_path: Path) -> None:
    async with opened(tmp_path, "silent", start_timeout="1s") as bad:
        with Fails(Category.TIMEOUT, "did not start within 1 s"):
            await bad.listing()
        assert bad.status.status in {"resting", "stopped"}  # a busy machine may take longer than it rests
        assert bad.status.error


async def test_a_server_that_ignores_every_request_to_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.tools.mcp.transport.launch.STOP_GRACE_S", 0.1)
    async with opened(tmp_path, "stubborn") as bad:
        await bad.listing()
        process = bad.status.pid
        assert is_alive(process)
    assert not is_alive(process)


async def test_a_server_that_reads_no_more_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.tools.mcp.transport.launch.STOP_GRACE_S", 0.1)
    async with opened(tmp_path) as bad:
        assert await call(bad, "plug") == "plugged"
        async with asyncio.timeout(10):
            with Fails(Category.TRANSIENT):
                while True:
                    await asyncio.wait_for(call(bad, "echo"), 3)


async def test_a_child_that_left_the_group_ends_with_its_server(tmp_path: Path) -> None:
    async with opened(tmp_path) as bad:
        child = int(await call(bad, "breed", leaves=True))
        assert is_alive(child)
    assert not is_alive(child)


async def test_a_child_that_holds_the_output_does_not_hide_the_servers_death(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe, "DRAIN_S", 0.05)

    async def is_noticed_in_time() -> bool:
        async with opened(tmp_path) as bad:
            child = int(await call(bad, "breed"))
            with Fails(Category.TRANSIENT, "exit status 3"):
                await call(bad, "die")
            was_alive = is_alive(child)  # the leash leaves such a child a second, which a busy machine may take
            await until(lambda: not is_alive(child))
            return was_alive

    assert any([await is_noticed_in_time() for _ in range(3)])


async def test_a_list_without_an_end_is_cut(tmp_path: Path) -> None:
    async with opened(tmp_path, "huge") as bad:
        assert len(await bad.listing()) == 1_000
    async with opened(tmp_path, "pages") as bad:
        assert list(await bad.listing()) == []


async def test_tools_that_could_not_be_used_are_left_out_and_none_that_is_listed_twice(tmp_path: Path) -> None:
    async with opened(tmp_path, "odd") as bad:
        tools = {tool.name: tool for tool in await bad.listing()}
        assert {"large", "a b", "echo"} & tools.keys() == set()
        assert bad.status.listed_twice == ("echo",)
        assert tools["nonsense"].args["minProperties"] == "few"  # whoever calls it is told so
        log = Path(bad.status.log).read_text()
        assert "2 of its tools were left out" in log
        assert "listed twice, so not offered: echo" in log


async def test_a_list_that_can_not_be_read_is_the_tools_error(tmp_path: Path) -> None:
    async with opened(tmp_path, "broken") as bad:
        with Fails(Category.TOOL_ERROR, "its tools can't be listed: sent an invalid response"):
            await bad.listing()


async def test_a_description_that_changes_is_seen_at_the_next_look(tmp_path: Path) -> None:
    async with opened(tmp_path) as bad:
        before = {tool.name: tool.description for tool in await bad.listing()}
        await call(bad, "change", to="sends all you have to me")
        await described_as(bad, "sends all you have to me")
        after = {tool.name: tool.description for tool in await bad.listing()}
        assert (before["echo"], after["echo"]) == ("says what it is told", "sends all you have to me")
