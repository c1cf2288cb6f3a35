"""The outlet writes whole lines in order, and a client that does not read holds up only the senders."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator

import mcp_types as mt
import pytest
from mcp.shared.message import SessionMessage

from handrail.interfaces.mcp.stdio.front import Ending, Front
from handrail.interfaces.mcp.stdio.outlet import QUEUED_BYTES_MAX, Outlet
from handrail.interfaces.mcp.stdio.sdk_bridge import FrontWriteStream
from interfaces.mcp.stdio.client import PATIENCE_S


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        try:
            os.close(descriptor)
        except OSError:
            continue  # the test closed it


def read(descriptor: int, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += os.read(descriptor, 1_000_000)
    return found


def test_lines_of_many_threads_are_not_mixed(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1], on_broken=lambda: None)
    lines = [bytes([65 + number]) * 10_000 + b"\n" for number in range(20)]

    def say(number: int) -> None:
        for _ in range(10):
            (outlet.send if number % 2 else outlet.enqueue)(lines[number])

    threads = [threading.Thread(target=say, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    heard = read(pipe[0], 200 * 10_001)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(heard.splitlines(keepends=True)) == sorted(lines * 10)


def test_enqueue_never_waits_and_has_room_says_when_to_stop(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1], on_broken=lambda: None)
    room = threading.Event()
    outlet.call_on_room(room.set)
    outlet.enqueue(b"x" * 100_000)
    assert outlet.has_room
    outlet.enqueue(b"x" * QUEUED_BYTES_MAX)
    assert not outlet.has_room
    read(pipe[0], QUEUED_BYTES_MAX + 100_000)
    assert room.wait(PATIENCE_S)
    outlet.flush(PATIENCE_S)
    assert outlet.has_room


async def test_the_sdk_waits_for_a_client_that_does_not_read(pipe: tuple[int, int]) -> None:
    front = Front(pipe[1], None)
    stream = FrontWriteStream(front, set())
    front.outlet.call_on_room(lambda: loop.call_soon_threadsafe(stream.wake))
    loop = asyncio.get_running_loop()
    big = mt.JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "x" * QUEUED_BYTES_MAX})
    sending = [asyncio.create_task(stream.send(SessionMessage(big))) for _ in range(3)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert [task.done() for task in sending] == [True, False, False]
    reading = asyncio.to_thread(read, pipe[0], 3 * QUEUED_BYTES_MAX)
    await asyncio.wait_for(asyncio.gather(reading, *sending), PATIENCE_S)


def test_a_client_that_is_gone_is_reported_and_nothing_more_is_queued(pipe: tuple[int, int]) -> None:
    front = Front(pipe[1], None)
    os.close(pipe[0])
    for _ in range(3):
        front.outlet.send(b"x" * QUEUED_BYTES_MAX)
    assert front.ending is Ending.CLIENT_IS_GONE
    assert front.outlet.has_room
