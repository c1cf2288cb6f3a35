"""Whatever a client sends is answered, the server keeps running, and the next good request is answered."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from interfaces.mcp.stdio.client import META, Client, connected
from interfaces.mcp.stdio.test_envelope import REFUSED

MEGABYTE = b"x" * 1_000_000


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with connected(tmp_path_factory.mktemp("hostile")) as client:
        client.ask("first", "tools/list")
        client.answer("first")
        yield client
        assert client.end() == 0, client.stderr


def is_alive(client: Client) -> bool:
    client.tool("alive?", "echo", text="yes")
    return bool(client.answer("alive?")["result"]["content"][0]["text"] == "yes")


def test_every_malformed_line_is_answered_once_and_in_order(client: Client) -> None:
    client.write(b"".join(line + b"\n" for line, *_ in REFUSED))
    answers = [client.next() for _ in REFUSED]
    assert [(a["error"]["code"], a["id"]) for a in answers] == [
        (code, request_id) for _, code, request_id, _ in REFUSED
    ]
    assert all(word in a["error"]["message"] for a, (*_, word) in zip(answers, REFUSED, strict=True))
    assert is_alive(client)


def test_malformed_lines_are_answered_before_the_sdk_is_there(tmp_path: Path) -> None:
    with connected(tmp_path) as client:
        client.tool("call", "echo", text="hi")
        client.write(b"{oops\n")
        assert client.next()["error"]["code"] == -32700
        assert client.answer("call")["result"]


def test_empty_lines_and_notifications_are_not_answered(client: Client) -> None:
    client.write(b"\n\r\n   \n")
    client.tell("notifications/no-such-thing")
    client.tell("notifications/cancelled", requestId="unknown")
    client.tell("notifications/cancelled", requestId=[1])
    client.send({"jsonrpc": "2.0", "method": "x", "params": [1]})
    client.send({"jsonrpc": "2.0", "id": 99, "result": {}})
    client.send({"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "m"}})
    client.ask("next", "tools/list")
    assert client.next()["id"] == "next"


def test_lines_that_end_as_on_windows_and_a_last_line_without_an_end_are_read(tmp_path: Path) -> None:
    with connected(tmp_path) as client:
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}).encode()
        client.write(line + b"\r\n" + line.replace(b'"id": 1', b'"id": 2'))
        client.hang_up()
        assert {answer["id"] for answer in client.rest()} == {1, 2}


def test_a_line_that_is_too_long_is_answered_and_skipped(client: Client) -> None:
    client.write(b'{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"a":"' + MEGABYTE * 10 + b'"}}\n')
    answer = client.next()
    assert (answer["error"]["code"], answer["id"]) == (-32600, "long")
    assert is_alive(client)


def test_three_long_lines_that_are_no_json_are_three_parse_errors(client: Client) -> None:
    client.write(b"".join((MEGABYTE * 10, b"\n", b"{" + MEGABYTE * 10, b"\n", b'{"jsonrpc":"' + MEGABYTE * 10, b"\n")))
    answers = [client.next() for _ in range(3)]
    assert [(answer["error"]["code"], answer["id"]) for answer in answers] == [(-32700, None)] * 3
    assert is_alive(client)


@pytest.mark.parametrize("length", [501, 10_000, 100_000])
def test_a_request_with_a_very_long_id_is_answered_under_that_id(client: Client, length: int) -> None:
    client.ask("k" * length, "tools/list")
    assert client.answer("k" * length)["error"]["code"] == -32600
    assert is_alive(client)


def test_a_line_just_below_the_limit_reaches_the_tool(client: Client) -> None:
    client.tool("big", "echo", text="x" * 4_100_000)
    assert len(client.answer("big")["result"]["content"][0]["text"]) == 4_100_000


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_stays_flat_under_long_and_deep_lines(client: Client) -> None:
    def flood(times: int) -> float:
        for _ in range(times):
            client.write(MEGABYTE * 10 + b"\n" + b"[" * 100_000 + b"\n")
            assert [client.next()["error"]["code"] for _ in range(2)] == [-32700, -32600]
        return client.memory_mb

    before = flood(5)
    assert flood(20) < before + 8, "20 lines of 10 MB leave nothing behind"


def test_3000_requests_at_once_are_each_answered_once(client: Client) -> None:
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": "resources/list", "params": {"_meta": META}})
        for number in range(3_000)
    ]
    client.write("\n".join(lines).encode() + b"\n")
    assert Counter(client.next()["id"] for _ in range(3_000)) == Counter(range(3_000))
    assert is_alive(client)


def test_an_id_in_flight_can_not_be_used_again(client: Client) -> None:
    client.tool(7, "slow", seconds=30)
    client.tool("7", "echo")
    assert client.answer("7")["error"]["code"] == -32600
    client.tell("notifications/cancelled", requestId=7)
    assert is_alive(client)


def test_a_cancelled_request_stops_and_is_never_answered(client: Client) -> None:
    client.tool("cancelled", "slow", seconds=30, name="sleeper")
    client.tool("who", "running")
    assert client.answer("who")["result"]["content"][0]["text"] == "sleeper"
    client.tell("notifications/cancelled", requestId="cancelled")
    client.tool("who", "running")
    assert client.next()["result"]["content"][0]["text"] == ""


def test_a_request_that_waits_can_be_cancelled_and_the_others_go_on(client: Client) -> None:
    for number in range(64):
        client.tool(f"slow{number}", "slow", seconds=30)
    for name in ("withdrawn", "patient"):
        client.tool(name, "echo", text=name)
    client.tell("notifications/cancelled", requestId="withdrawn")
    client.write(b"{oops\n")
    assert client.next()["error"]["code"] == -32700, "an error needs no slot"
    for number in range(64):
        client.tell("notifications/cancelled", requestId=f"slow{number}")
    assert client.next()["id"] == "patient"
    client.tool("withdrawn", "echo", text="its id is free again")
    assert client.next()["id"] == "withdrawn"


def test_prints_of_tools_and_their_children_do_not_reach_the_client(client: Client) -> None:
    client.tool("noise", "noise", text="done")
    assert client.next()["result"]["content"][0]["text"] == "done"
    assert "nor may this" in client.stderr


def test_a_tool_that_breaks_or_says_what_json_can_not_carry_is_answered(client: Client) -> None:
    client.tool("crash", "crash")
    assert client.next()["error"]["code"] == -32603
    client.tool("half", "half")
    assert client.next()["error"]["code"] == -32603
    assert is_alive(client)


def test_progress_and_questions_pass_in_both_directions(tmp_path: Path) -> None:
    with connected(tmp_path) as client:
        client.shake_hands()
        call = {"name": "progress", "arguments": {}, "_meta": {"progressToken": "t"}}
        client.ask("p", "tools/call", call, modern=False)
        assert [client.next().get("method") for _ in range(4)] == ["notifications/progress"] * 3 + [None]
        client.tool("asks", "ask", modern=False)
        question = client.next()
        assert question["method"] == "elicitation/create"
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
        assert client.answer("asks")["result"]["content"][0]["text"] == "decline"


def test_a_client_that_does_not_read_is_still_heard(tmp_path: Path) -> None:
    with connected(tmp_path, listening=False) as client:
        for number in range(300):  # 15 MB of answers, which fit neither into the pipe nor into what is kept
            client.tool(number, "echo", text="x" * 1_000, times=50)
        for _ in range(10):
            client.tell("notifications/cancelled", requestId="unknown", reason="y" * 50_000)
        client.listen()
        assert Counter(client.next()["id"] for _ in range(300)) == Counter(range(300))
