"""The live feed: every event once, in order, whatever happens to the connection."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from handrail.assembly.opening import Assembly, open_assembly
from handrail.domain.errors import Limited
from handrail.domain.journal.mark import START, Mark
from handrail.domain.run.command import RecordDecision, StartRun
from handrail.interfaces.http.feed import event_feed
from handrail.interfaces.http.feed.event_feed import BATCH, EventFeed
from handrail.interfaces.http.feed.event_stream import Wanted, event_stream
from handrail.settings import read_settings
from interfaces.http.live_console import PATIENCE_S, LiveConsole, serving

EVENT = re.compile(rb"(?:id: (\d+)\n)?(?:event: (\w+)\n)?data: (.*)")


class Received:
    """What a reader of a stream has received: events by their place, and the named messages."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.ids: list[int] = []
        self.named: list[tuple[str, Any]] = []

    def take(self, text: bytes) -> None:
        for message in text.split(b"\n\n"):
            if found := EVENT.fullmatch(message):
                data = json.loads(found[3])
                if found[2]:
                    self.named.append((found[2].decode(), data))
                else:
                    self.ids.append(int(found[1]))
                    self.events.append(data)


# --- over a real connection -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveConsole]:
    with serving(tmp_path_factory.mktemp("feed")) as live:
        yield live


def read_until(console: LiveConsole, until: int, query: str = "", **headers: str) -> Received:
    """Read a stream until it has sent the event at a place."""
    received, rest = Received(), b""
    with console.script(**headers) as client, client.stream("GET", f"/api/v1/events{query}") as stream:
        assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        for piece in stream.iter_bytes():
            whole, _, rest = (rest + piece).rpartition(b"\n\n")
            received.take(whole)
            if received.ids and received.ids[-1] >= until:
                break
    return received


def end_of(console: LiveConsole) -> int:
    with console.script() as client:
        events: int = client.get("/api/v1/about").json()["events"]
    return events


def test_the_feed_is_the_journal_by_the_numbers_of_the_store(console: LiveConsole) -> None:
    console.started()
    end = end_of(console)
    received = read_until(console, end, "?from=0")
    assert received.ids == list(range(1, end + 1))
    with console.script() as client:
        lines = [json.loads(line) for line in client.get("/api/v1/journal/export").text.splitlines()][:end]
    assert [one["hash"] for one in received.events] == [line["hash"] for line in lines]
    assert received.named[0] == ("beat", {"at": end})


def test_a_reader_that_comes_back_misses_and_repeats_nothing(console: LiveConsole) -> None:
    console.started()
    end = end_of(console)
    for cut in (1, end // 2, end - 1):
        received = read_until(console, end, "?from=0", **{"last-event-id": str(cut)})
        assert received.ids == list(range(cut + 1, end + 1))


def test_filters_leave_out_what_is_not_wanted(console: LiveConsole) -> None:
    run, other = console.started(), console.started()
    end = end_of(console)
    received = read_until(console, end, f"?from=0&run={other}")
    assert {one["run"] for one in received.events} == {other}
    kinds = read_until(console, end - 1, f"?from=0&run={run},{other}&kind=approval_requested")
    assert [one["kind"] for one in kinds.events] == ["approval_requested"] * 2
    with console.script() as client:
        mine = client.get("/api/v1/about").json()["project"]["id"]
        own = read_until(console, end, f"?from=0&project={mine}")
        assert {one["project"] for one in own.events} == {mine}
        assert client.get("/api/v1/events?kind=no_such_kind").status_code == 400
        assert client.get("/api/v1/events", headers={"last-event-id": "x"}).status_code == 400
        assert client.get("/api/v1/events?from=-1").status_code == 400


async def test_what_another_process_does_arrives_live(console: LiveConsole) -> None:
    start = end_of(console)
    received = Received()
    headers = {"authorization": f"Bearer {console.key}"}
    async with (
        httpx.AsyncClient(base_url=console.url, headers=headers, trust_env=False, timeout=PATIENCE_S) as client,
        client.stream("GET", f"/api/v1/events?from={start}") as stream,
    ):
        pieces = stream.aiter_bytes()
        received.take(await anext(pieces))
        plan = console.shell.write("{id: quick, steps: [{id: a, tool: value.set, args: {value: 1}}]}", "quick.yaml")
        await asyncio.to_thread(console.shell.json, "run", "start", plan)
        rest = b""
        async with asyncio.timeout(PATIENCE_S):
            while not any(one["kind"] == "run_completed" for one in received.events):
                whole, _, rest = (rest + await anext(pieces)).rpartition(b"\n\n")
                received.take(whole)
    assert received.ids == list(range(start + 1, received.ids[-1] + 1))


def test_the_engine_goes_on_while_a_reader_does_not_read(console: LiveConsole) -> None:
    with socket.create_connection(("127.0.0.1", console.port), timeout=PATIENCE_S) as silent:
        head = f"GET /api/v1/events?from=0 HTTP/1.1\r\nHost: 127.0.0.1:{console.port}\r\n"
        silent.sendall((head + f"Authorization: Bearer {console.key}\r\n\r\n").encode())
        console.started()
        assert silent.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"


# --- the feed itself ---------------------------------------------------------------------------------------


@asynccontextmanager
async def assembled(folder: Path) -> AsyncIterator[Assembly]:
    settings = read_settings({"home": str(folder / "home"), "project": str(folder)}, {})
    async with open_assembly(settings, picks_up=False) as parts:
        yield parts


async def note(parts: Assembly, count: int) -> None:
    """Write that many events."""
    plan, _ = await parts.definitions.chosen(definition={"id": "noted", "steps": [{"id": "a", "approve": "Go?"}]})
    run = await parts.writer.dispatch.start(plan, {}, actor="person:ada", ask=StartRun())
    for number in range(count - 1):
        command = RecordDecision(decision=f"number {number}", reason="x" * 100)
        await parts.writer.dispatch.grant(run.id, command, actor="person:ada")


async def read_to(stream: AsyncIterator[bytes], end: int) -> Received:
    received = Received()
    async with asyncio.timeout(PATIENCE_S):
        async for piece in stream:
            received.take(piece)
            if received.ids and received.ids[-1] >= end:
                break
    return received


def stays() -> bool:
    return True


async def test_one_reader_of_the_store_serves_all_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with assembled(tmp_path) as parts:
        scans = 0
        store = parts.writer.reader.store
        scan = store.scan

        def counted(**asked: Any) -> Any:
            nonlocal scans
            scans += 1
            return scan(**asked)

        monkeypatch.setattr(store, "scan", counted)
        feed = EventFeed(lambda: as_open(parts))
        start = (await store.end()).events
        streams = [event_stream(feed, Wanted(), after=None, may_stay=stays) for _ in range(50)]
        for stream in streams:
            await anext(stream)  # now it is live
        readers = [asyncio.ensure_future(read_to(stream, start + 20)) for stream in streams]
        await note(parts, 20)
        all_received = await asyncio.gather(*readers)
        assert all(received.ids[:20] == list(range(start + 1, start + 21)) for received in all_received)
        assert scans <= 20  # not 50 times as many
        await feed.close()


async def as_open(parts: Assembly) -> Assembly:
    return parts


async def test_who_is_far_behind_catches_up_from_the_store(tmp_path: Path) -> None:
    async with assembled(tmp_path) as parts:
        await note(parts, BATCH + 200)
        end = (await parts.writer.reader.store.end()).events
        feed = EventFeed(lambda: as_open(parts))
        received = await read_to(event_stream(feed, Wanted(), after=START, may_stay=stays), end)
        assert received.ids == list(range(1, end + 1))
        await feed.close()


async def test_who_is_too_slow_is_let_go_and_can_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "KEPT_MAX", 10)
    monkeypatch.setattr(event_feed, "BATCH", 5)
    async with assembled(tmp_path) as parts:
        feed = EventFeed(lambda: as_open(parts))
        start = (await parts.writer.reader.store.end()).events
        slow = event_stream(feed, Wanted(), after=None, may_stay=stays)
        received = Received()
        received.take(await anext(slow))
        await note(parts, 2)
        while not received.ids:  # now it is live
            received.take(await anext(slow))
        await note(parts, 60)
        while feed.last.events < start + 62:  # the feed goes on, the reader does not
            await asyncio.sleep(0.01)
        async for piece in slow:
            received.take(piece)
        assert received.named[-1] == ("gone", {"reason": "too slow"})
        resumed = await read_to(
            event_stream(feed, Wanted(), after=Mark.at(received.ids[-1]), may_stay=stays), start + 62
        )
        assert (received.ids + resumed.ids)[:62] == list(range(start + 1, start + 63))
        await feed.close()


async def test_a_silent_feed_beats_and_lets_go_who_may_not_stay(tmp_path: Path) -> None:
    async with assembled(tmp_path) as parts:
        feed = EventFeed(lambda: as_open(parts))
        stay = iter((True, True, False))
        stream = event_stream(feed, Wanted(), after=None, may_stay=lambda: next(stay), beat_s=0.01)
        received = Received()
        async for piece in stream:
            received.take(piece)
        assert [name for name, _ in received.named] == ["beat"] * 3
        assert feed.readers == 0
        await feed.close()


async def test_there_are_not_more_readers_than_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "READERS_MAX", 1)
    async with assembled(tmp_path) as parts:
        feed = EventFeed(lambda: as_open(parts))
        first = event_stream(feed, Wanted(), after=None, may_stay=stays)
        await anext(first)
        with pytest.raises(Limited):
            await anext(event_stream(feed, Wanted(), after=None, may_stay=stays))
        await first.aclose()  # type: ignore[attr-defined]
        await feed.close()
