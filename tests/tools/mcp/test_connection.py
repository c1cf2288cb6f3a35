"""One connection for all: started when needed, both eras, questions to persons, cancelling, and servers on the web."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.definition.model import Category
from handrail.domain.run.tool_question import PersonReply, ToolQuestion
from handrail.engine.tool import ToolAsks, ToolFailed
from handrail.tools.mcp import connection as supervision
from handrail.tools.mcp import session as sessions
from handrail.tools.mcp.transport.era_memory import EraCache
from tools.calls import Fails
from tools.mcp.servers_at_hand import call, connected, declared, described_as, is_alive, nobody, opened, until

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def test_a_server_is_started_once_by_all_who_need_it_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        assert server.status.status == "stopped"
        answers = await asyncio.gather(*(call(server, "echo", text=str(number)) for number in range(20)))
        assert answers == [str(number) for number in range(20)]
        status = server.status
        assert (status.status, status.starts, status.server) == ("running", 1, "hostile 1")
        assert is_alive(status.pid)
        assert status.tools == len(await server.listing()) > 20
        assert status.version == "2025-11-25"
    assert server.status.status == "stopped"
    assert not is_alive(status.pid)
    with Fails(Category.TRANSIENT, "closing"):
        await call(server, "echo")


async def test_annotations_are_taken_over_and_what_is_unsaid_is_as_the_protocol_says(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        tools = {tool.name: tool for tool in await server.listing()}
        silent, spoken = tools["echo"], tools["promise"]
        assert (silent.read_only, silent.idempotent, silent.destructive) == (False, False, True)
        assert (spoken.read_only, spoken.idempotent, spoken.destructive) == (True, True, False)
        assert spoken.output_schema["required"] == ["n"]
        result = await server.call(
            "promise", {"more": {"structuredContent": {"n": 1}}}, key="k", progress=print, ask=nobody
        )
        assert result.structured_content == {"n": 1}


async def test_the_key_travels_and_references_are_filled_in_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    server = declared("$X", env={"TOKEN": "$X", "PATH": os.environ["PATH"]}, cwd="sub")
    os.environ["HANDRAIL_TEST_SECRET"] = "ours"
    found = connected(tmp_path, server, fill=lambda text: text.replace("$X", "filled"))
    try:
        assert json.loads(await call(found, "key"))["handrail/idempotency_key"] == "key-1"
        told = json.loads(await call(found, "environment"))
    finally:
        await found.close()
        del os.environ["HANDRAIL_TEST_SECRET"]
    assert (told["env"]["TOKEN"], told["argv"], told["cwd"]) == ("filled", ["filled"], str(tmp_path / "sub"))
    assert "HANDRAIL_TEST_SECRET" not in told["env"]


async def test_a_secret_that_is_missing_is_reported_as_it_is(tmp_path: Path) -> None:
    def fill(_text: str) -> str:
        raise ToolFailed(Category.NOT_FOUND, "the secret GIT is not set")

    found = connected(tmp_path, declared(), fill=fill)
    with Fails(Category.NOT_FOUND, "the secret GIT is not set"):
        await found.listing()
    assert found.status.error == "the secret GIT is not set"
    await found.close()


@pytest.mark.parametrize(
    ("more", "category", "words"),
    [
        ({"command": "no-such-command-here"}, Category.NOT_FOUND, "`no-such-command-here` was not found"),
        ({"cwd": "nowhere"}, Category.NOT_FOUND, "does not exist; fix `cwd`"),
        ({"args": ("x" * 3_000_000,)}, Category.TRANSIENT, "can't be started"),
    ],
)
async def test_what_can_not_be_started_says_so(
    more: dict[str, Any], category: Category, words: str, tmp_path: Path
) -> None:
    async with opened(tmp_path, **more) as server:
        with Fails(category, words):
            await server.listing()
        with Fails(category, "is paused after a failure"):
            await server.listing()


async def test_a_server_that_died_is_started_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        await server.listing()
        first = server.status.pid
        with Fails(Category.TRANSIENT, "exit status 3"):
            await call(server, "die")
        with Fails(Category.TRANSIENT, "is paused after a failure"):
            await call(server, "echo")
        await until(lambda: server.status.status == "resting")
        assert "out of cheese" in server.status.error
        await until(lambda: server.status.status == "stopped")
        assert await call(server, "echo", text="back") == "back"
        assert server.status.starts == 2
        assert server.status.pid != first


def test_a_server_that_was_well_for_a_while_is_not_held_to_its_past(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    rest = supervision._Rest()
    rests = []
    for _ in range(9):
        rest.begin()
        rests.append(rest.left_ms)
    assert rests == [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]
    rest.mark_started()
    now[0] += 10
    rest.begin()
    assert rest.left_ms == 30_000
    rest.mark_started()
    now[0] += 61
    rest.begin()
    assert rest.left_ms == 500


async def test_a_call_in_flight_when_we_close_fails_and_nothing_is_left(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        hanging = asyncio.create_task(call(server, "hang"))
        await until(lambda: server.status.status == "running")
        process = server.status.pid
        await server.close()
        with Fails(Category.TRANSIENT):
            await hanging
        assert not is_alive(process)


async def test_closing_while_it_starts_ends_the_start(tmp_path: Path) -> None:
    async with opened(tmp_path, "silent") as server:
        waiting = asyncio.create_task(server.listing())
        await until(lambda: server.status.status == "starting")
        await asyncio.sleep(0.05)
        await server.close()
        with Fails(Category.TRANSIENT, "closed while it started"):
            await waiting
        assert server.status.status == "stopped"


async def test_who_stops_waiting_for_a_start_does_not_end_it_for_others(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        first, second = (asyncio.create_task(server.listing()) for _ in range(2))
        await until(lambda: server.status.status == "starting")
        first.cancel()
        assert await second
        with pytest.raises(asyncio.CancelledError):
            await first
        assert server.status.starts == 1


async def test_progress_is_reported_in_words(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        steps: list[str] = []
        assert await call(server, "step", progress=steps.append) == "stepped"
        assert steps == ["3/10 copying[31m"]


@pytest.mark.parametrize("modes", [(), ("modern",)])
async def test_cancelling_a_call_reaches_the_server(modes: tuple[str, ...], tmp_path: Path) -> None:
    async with opened(tmp_path, *modes) as server:
        await server.listing()
        hanging = asyncio.create_task(call(server, "hang"))
        assert await call(server, "echo", text="in order") == "in order"
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert len(json.loads(await call(server, "cancelled"))) == 1


# Questions to persons


@pytest.mark.parametrize("modes", [(), ("modern",)])
async def test_a_question_leaves_the_call_until_a_person_has_answered(modes: tuple[str, ...], tmp_path: Path) -> None:
    async with opened(tmp_path, *modes) as server:
        with pytest.raises(ToolAsks) as asked:
            await call(server, "elicit")
        assert (asked.value.question.text, asked.value.question.schema) == ("Who are you?", NAME)
        yes = await call(server, "elicit", ask=lambda _: PersonReply(agreed=True, content={"name": "Ada"}))
        assert json.loads(yes) == {"action": "accept", "content": {"name": "Ada"}}
        no = await call(server, "elicit", ask=lambda _: PersonReply(agreed=False))
        assert json.loads(no) == {"action": "decline"}
        assert server.status.starts == 1
        if not modes:
            assert len(json.loads(await call(server, "cancelled"))) == 1  # the call that was given up


@pytest.mark.parametrize("modes", [(), ("modern",)])
async def test_a_page_to_visit_is_a_question_without_a_form(modes: tuple[str, ...], tmp_path: Path) -> None:
    async with opened(tmp_path, *modes) as server:
        with pytest.raises(ToolAsks) as asked:
            await call(server, "elicit", url="https://example.org/sign-in")
        assert asked.value.question == ToolQuestion(text="Sign in\nhttps://example.org/sign-in")
        yes = await call(server, "elicit", url="https://example.org/", ask=lambda _: PersonReply(agreed=True))
        assert json.loads(yes) == {"action": "accept"}
        with Fails(Category.TOOL_ERROR, "not a web page"):
            await call(server, "elicit", url="file:///etc/passwd")


async def test_a_call_that_needs_a_visit_first_is_made_again_after_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        assert await call(server, "visit", ask=lambda _: PersonReply(agreed=True)) == "visited"
        with pytest.raises(ToolAsks):
            await call(server, "visit")
        assert await call(server, "visit") == "visited"
        with Fails(Category.TOOL_ERROR, "sign in first"):
            await call(server, "visit", ask=lambda _: PersonReply(agreed=False))


async def test_a_server_may_not_question_a_person_forever(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        with Fails(Category.TOOL_ERROR, "more than 20 questions"):
            await call(server, "interrogate", ask=lambda _: PersonReply(agreed=True, content={"name": "Ada"}))
    async with opened(tmp_path, "modern") as server:
        with Fails(Category.TOOL_ERROR, "does not give to servers"):
            await call(server, "elicit", method="sampling/createMessage")
        with Fails(Category.TOOL_ERROR, "without a result"):
            await call(server, "elicit", method="none")


async def test_a_question_finds_its_own_call_among_several(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        await server.listing()
        other = asyncio.create_task(call(server, "hang"))
        asking = asyncio.create_task(call(server, "elicit", message="mine?"))
        await asyncio.sleep(0.2)
        assert not asking.done()  # it can't be told yet whose question it is
        other.cancel()
        with pytest.raises(ToolAsks) as asked:
            await asking
        assert asked.value.question.text == "mine?"
        assert await asyncio.gather(*(call(server, "echo", text="one at a time") for _ in range(5)))


async def test_of_two_calls_that_ask_at_once_none_gets_the_others_answer_and_both_can_be_made_again(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as server:
        await server.listing()
        both = [asyncio.create_task(call(server, "elicit", message=str(number))) for number in range(2)]
        async with asyncio.timeout(5):
            answers = await asyncio.gather(*both, return_exceptions=True)
        assert [type(answer) for answer in answers] == [ToolFailed, ToolFailed]
        assert {answer.category for answer in answers if isinstance(answer, ToolFailed)} == {Category.TRANSIENT}
        again = [asyncio.create_task(call(server, "elicit", message=str(number))) for number in range(2)]
        async with asyncio.timeout(5):
            asked = await asyncio.gather(*again, return_exceptions=True)
        assert [one.question.text for one in asked if isinstance(one, ToolAsks)] == ["0", "1"]


async def test_a_question_whose_call_can_not_be_found_is_not_answered_and_disturbs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "OWNER_S", 0.2)
    async with opened(tmp_path) as server:
        await server.listing()
        other = asyncio.create_task(call(server, "hang"))
        async with asyncio.timeout(5):
            told = await call(
                server, "elicit", message="mine?", ask=lambda _: PersonReply(agreed=True, content={"name": "A"})
            )
        assert "no call is running" in told
        assert not other.done()
        other.cancel()


async def test_a_call_that_its_server_died_of_says_when_to_come_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        with pytest.raises(ToolFailed) as died:
            await call(server, "die")
        assert died.value.category is Category.TRANSIENT
        assert died.value.retry_after_ms


# Eras


async def test_a_server_of_the_newer_protocol_tells_of_changes_when_it_was_asked_to(tmp_path: Path) -> None:
    async with opened(tmp_path, "modern", "listens") as server:
        await server.listing()
        assert server.status.version == "2026-07-28"
        await call(server, "change", to="else")
        await described_as(server, "else")


async def test_a_server_without_tools_is_not_asked_for_them(tmp_path: Path) -> None:
    async with opened(tmp_path, "toolless") as server:
        assert list(await server.listing()) == []


async def test_a_server_that_was_silent_to_the_probe_is_not_probed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.5)
    async with opened(tmp_path, "mute") as server:
        await server.listing()
        assert server.status.started_ms >= 500
    assert EraCache(tmp_path / "cache" / "eras.json").is_legacy(declared("mute"))
    async with opened(tmp_path, "mute") as server:
        await server.listing()
        assert server.status.started_ms < 500


async def test_a_server_that_breaks_at_the_probe_is_greeted_the_older_way(tmp_path: Path) -> None:
    async with opened(tmp_path, "fragile") as server:
        assert await call(server, "echo", text="fine") == "fine"
        assert server.status.starts == 1


async def test_a_server_that_refuses_every_greeting_is_the_tools_error(tmp_path: Path) -> None:
    async with opened(tmp_path, "strict") as server:
        with Fails(Category.TOOL_ERROR, "the handshake failed: that was long ago"):
            await server.listing()


async def test_a_remembered_era_that_is_wrong_is_forgotten(tmp_path: Path) -> None:
    book = EraCache(tmp_path / "cache" / "eras.json")
    other = declared("modern", "strict")
    book.note(other, legacy=True)
    found = connected(tmp_path, other)
    try:
        assert await call(found, "echo", text="fine") == "fine"
    finally:
        await found.close()
    assert not book.is_legacy(other)


def test_the_book_of_eras_may_be_lost_or_broken_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "eras.json"
    book = EraCache(path)
    book.note(declared(), legacy=False)
    assert not path.exists()
    book.note(declared(), legacy=True)
    assert book.is_legacy(declared())
    assert not book.is_legacy(declared("else"))
    path.write_text("{not json")
    assert not book.is_legacy(declared())
    (tmp_path / "file").write_text("")
    EraCache(tmp_path / "file" / "eras.json").note(declared(), legacy=True)  # can't be kept, and nobody minds


# At its edges


def test_the_sdk_is_not_imported_before_a_server_is_needed() -> None:
    import subprocess

    program = (
        "import sys, handrail.tools.mcp.connection; print({'mcp', 'httpx2', 'pydantic', 'anyio'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


async def test_closing_takes_no_time_for_a_server_that_ends_when_asked(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        await server.listing()
        began = time.monotonic()
    assert time.monotonic() - began < 1.5
