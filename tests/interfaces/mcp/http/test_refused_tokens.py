"""Wrong tokens over HTTP: their answers get slower, the log has one line a minute, and nobody else waits."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest

from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.refused_tokens import ADDRESSES_MAX, FORGET_S, FREE, WAITING_MAX, RefusedTokens
from interfaces.mcp.http.live_server import INITIALIZE, LiveServer, opened, until

GUESS = "guess-" * 8


async def refused(live: LiveServer, count: int) -> list[int]:
    async with httpx.AsyncClient(trust_env=False, headers={"authorization": f"Bearer {GUESS}"}) as client:
        return [(await client.post(f"{live.url}/mcp", json=INITIALIZE)).status_code for _ in range(count)]


async def test_many_wrong_tokens_are_two_lines_with_their_number_and_never_their_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened(HttpLimits(refused_s=0.0)) as live:
        assert await refused(live, 12) == [401] * 12
        lines = [record.message for record in caplog.records if "without the right token" in record.message]
        assert lines == ["1 request without the right token refused, from 127.0.0.1"]
        live.mcp.refusals.minute_passed()
        assert caplog.text.count("11 requests without the right token refused, from 127.0.0.1") == 1
        live.mcp.refusals.minute_passed()  # a minute without any has no line
        assert caplog.text.count("without the right token") == 2
        assert "guess" not in caplog.text


async def test_the_next_line_comes_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    async with opened(HttpLimits(refused_s=0.0, refused_log_s=0.01)) as live:
        await refused(live, 12)
        await until(lambda: caplog.text.count("refused, from") >= 2)


async def test_what_was_not_logged_yet_is_logged_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    async with opened(HttpLimits(refused_s=0.0)) as live:
        await refused(live, 4)
    assert "3 requests without the right token refused" in caplog.text


async def test_after_a_few_wrong_tokens_their_answers_wait_and_right_ones_do_not() -> None:
    async with opened(HttpLimits(refused_s=0.4)) as live, live.client() as client:
        await refused(live, FREE)
        started = time.monotonic()
        slow = asyncio.ensure_future(refused(live, 3))
        await until(lambda: live.mcp.refusals.tokens.waiting == 1)
        assert (await client.post("/mcp", json=INITIALIZE)).status_code == 200
        assert not slow.done()
        assert await slow == [401] * 3
        assert time.monotonic() - started >= 0.1 + 0.2 + 0.4
        assert live.mcp.refusals.tokens.waiting == 0


async def test_when_too_many_answers_wait_the_next_is_refused_at_once() -> None:
    async with opened() as live:
        await refused(live, FREE)
        live.mcp.refusals.tokens.waiting = WAITING_MAX
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"{live.url}/mcp")
        assert (answer.status_code, answer.json()["name"]) == (429, "limited")
        assert int(answer.headers["retry-after"]) > 0


def test_an_address_that_was_quiet_for_a_minute_starts_again() -> None:
    table = RefusedTokens(2.0)
    assert [table.note("a", 0.0) for _ in range(FREE + 3)] == [0.0] * FREE + [0.1, 0.2, 0.4]
    assert table.note("b", 0.0) == 0.0
    assert table.note("a", FORGET_S) == 0.8
    assert [table.note("a", FORGET_S) for _ in range(100)][-1] == 2.0
    assert table.note("a", 2 * FORGET_S + 1) == 0.0


def test_the_table_of_addresses_is_bounded_and_the_report_names_the_worst() -> None:
    table = RefusedTokens(2.0)
    for number in range(3 * ADDRESSES_MAX):
        table.note(f"10.0.{number // 256}.{number % 256}", 0.0)
    assert len(table._addresses) == ADDRESSES_MAX
    assert len(table._unlogged) == ADDRESSES_MAX
    table.report()
    table.note("10.0.0.1", 0.0)
    for _ in range(2):
        table.note("10.0.0.2", 0.0)
    expected = "3 requests without the right token refused, from 2 addresses, most from 10.0.0.2"
    assert (table.report(), table.report()) == (expected, "")
