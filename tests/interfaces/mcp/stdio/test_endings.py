"""However it ends, what can be answered is answered, everything is closed in order, and a failure has a reason."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interfaces.mcp.stdio.client import FAKE, Client, connected

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to send")


def ended_in_order(folder: Path) -> bool:
    return (folder / "home" / "ended").read_text(encoding="utf-8") == "in order"


def test_requests_in_flight_are_answered_when_the_client_stops_sending(tmp_path: Path) -> None:
    with connected(tmp_path) as client:
        for number in range(100):
            client.tool(number, "slow", seconds=0.2)
        client.hang_up()
        assert sorted(answer["id"] for answer in client.rest()) == list(range(100))
        assert client.code() == 0
    assert ended_in_order(tmp_path)


def test_a_question_to_a_client_that_is_done_holds_up_nothing(tmp_path: Path) -> None:
    with connected(tmp_path) as client:
        client.shake_hands()
        client.tool(1, "ask", modern=False)
        assert client.next()["method"] == "elicitation/create"
        client.hang_up()
        assert client.process.wait(20) == 0
    assert ended_in_order(tmp_path)


def test_a_client_that_says_nothing_gets_no_answer_and_leaves_no_error(tmp_path: Path) -> None:
    with connected(tmp_path) as client:
        client.hang_up()
        assert client.rest() == []
        assert (client.code(), client.stderr) == (0, "")


@POSIX
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_requests_end_and_refuses_the_others(number: signal.Signals, tmp_path: Path) -> None:
    with connected(tmp_path) as client:
        client.tool("ready", "echo")
        client.answer("ready")
        for place in range(64):
            client.tool(place, "slow", seconds=0.5, name=str(place))
        client.tool("waits", "echo")
        client.write(b"{oops\n")
        client.answer(None)  # so all of them have arrived
        client.process.send_signal(number)
        answers = {answer["id"]: answer for answer in client.rest()}
        assert client.code() == 0
    assert answers.pop("waits")["error"]["code"] == -32603
    assert sorted(answers) == list(range(64))
    assert all("result" in answer for answer in answers.values())
    assert ended_in_order(tmp_path)


@POSIX
def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    with connected(tmp_path) as client:
        client.tool("slow", "slow", seconds=30)
        client.tool("late", "echo")
        client.answer("late")
        client.process.send_signal(signal.SIGTERM)
        client.ask("refused", "tools/list")
        while "error" not in client.answer("refused"):
            client.ask("refused", "tools/list")
        client.process.send_signal(signal.SIGTERM)
        assert client.code() == 128 + signal.SIGTERM


@POSIX
def test_a_signal_before_the_sdk_is_there_ends_in_silence(tmp_path: Path) -> None:
    with connected(tmp_path) as client:
        client.write(b"{oops\n")
        client.next()
        client.process.send_signal(signal.SIGTERM)
        assert client.rest() == []
        assert (client.code(), client.stderr) == (0, "")


def test_a_client_that_is_gone_ends_the_server(tmp_path: Path) -> None:
    command = [sys.executable, FAKE, "mcp", "--home", str(tmp_path / "home"), "--project", str(tmp_path)]
    with (tmp_path / "stderr").open("wb") as stderr:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    process.stdin.flush()
    assert process.wait(20) == 0, "stdin is still open"
    process.stdin.close()
    assert ended_in_order(tmp_path)


def test_a_server_that_can_not_open_says_why_to_everybody(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "refuse").touch()
    with connected(tmp_path) as client:
        client.ask("early", "tools/list")
        reason = client.answer("early")["error"]
        assert reason["code"] == -32603
        assert "the store is on strike; come back tomorrow" in reason["message"]
        client.ask("late", "tools/list")
        assert client.answer("late")["error"] == reason
        assert client.end() == 1
        assert reason["message"] in client.stderr
        assert "Traceback" not in client.stderr


def test_a_broken_settings_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text("lease = [", encoding="utf-8")
    with connected(tmp_path) as client:
        client.ask(1, "initialize", {"protocolVersion": "2025-11-25"}, modern=False)
        assert "config.toml can't be read" in client.answer(1)["error"]["message"]
        assert client.end() == 1


def test_a_part_that_can_not_be_loaded_is_named(tmp_path: Path) -> None:
    alone = "from handrail.interfaces.mcp.stdio.program import run; import sys; sys.exit(run(sys.argv[1:], 'no.such'))"
    with Client([sys.executable, "-c", alone, "mcp", "--home", str(tmp_path / "home")], tmp_path) as client:
        client.ask(1, "tools/list")
        assert "No module named 'no'" in client.answer(1)["error"]["message"]
        assert client.end() == 1
        assert "Traceback" in client.stderr


def test_nothing_but_protocol_is_ever_on_stdout(tmp_path: Path) -> None:
    command = [sys.executable, FAKE, "mcp", "--home", str(tmp_path / "home"), "--log-level", "debug"]
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    ran = subprocess.run(command, input=line, capture_output=True, text=True, cwd=tmp_path, timeout=30)
    assert [json.loads(said)["id"] for said in ran.stdout.splitlines()] == [1]
