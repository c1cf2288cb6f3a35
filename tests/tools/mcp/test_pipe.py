"""Lines of a server, its log, and what is made of a server's output."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import mcp_types as types
import pytest
from mcp.client import Client

from handrail.domain.definition.model import Category
from handrail.domain.secrets.scrubbing import SecretScrubber
from handrail.foundation.line_cutter import Overlong
from handrail.tools.mcp.transport import server_log
from handrail.tools.mcp.transport.launch import ServerLaunch, _signal_name
from handrail.tools.mcp.transport.lines import is_broken_message, is_progress, named_ids, plain_id
from handrail.tools.mcp.transport.pipe import MessageReader
from handrail.tools.mcp.transport.server_log import ServerLog
from handrail.tools.mcp.transport.windows import WindowsPipe
from handrail.tools.mcp.values.schema_cost import is_affordable
from tools.calls import Fails
from tools.mcp.servers_at_hand import call, connected, declared, opened


def test_the_id_of_a_broken_message_is_looked_for_at_both_of_its_ends() -> None:
    assert list(named_ids(b'{"id": 7, "result": ' + b"x" * 5_000 + b', "id":"listen-1"}')) == [7, "listen-1"]
    assert list(named_ids(b"{}")) == []
    assert (plain_id("12"), plain_id("a"), plain_id(3)) == (12, "a", 3)


@pytest.mark.parametrize(
    ("line", "is_broken"),
    [
        (b'{"jsonrpc": "2.0", "id": 1, "result": {', True),
        (b'{"id": 1, "result": {', True),
        (b'{"level": "info", "id": 1}', False),
        (b"plain words", False),
        (b"[info] words", False),
    ],
)
def test_a_log_line_is_not_taken_for_a_broken_message(line: bytes, is_broken: bool) -> None:
    assert is_broken_message(line) == is_broken


def test_progress_is_reported_without_parsing() -> None:
    assert is_progress(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}')
    assert is_progress(b' { "method" : "notifications/progress"}')
    assert not is_progress(b'{"jsonrpc":"2.0","id":1,"result":{"method":"notifications/progress"}}')


def hearing(folder: Path, changed: Callable[[], None] = lambda: None) -> MessageReader:
    found = MessageReader(ServerLog(folder / "log"), changed)
    for number in (1, 2):
        found.sent(types.JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call"))
    return found


async def test_a_broken_message_without_a_name_fails_no_call_when_several_wait(tmp_path: Path) -> None:
    ear = hearing(tmp_path)
    assert list(ear.messages_in([b'{"jsonrpc": "2.0", {'])) == []
    ear.sent(types.JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1}))
    (failed,) = ear.messages_in([b'{"jsonrpc": "2.0", {'])
    assert isinstance(failed, types.JSONRPCError)
    assert failed.id == 2


async def test_an_answer_that_is_too_long_fails_its_own_call_once(tmp_path: Path) -> None:
    ear = hearing(tmp_path)
    head = b'{"jsonrpc":"2.0","id":1,"result":'
    parts = [Overlong(head, b"", is_whole=False), Overlong(head, b"}", is_whole=True)]
    failed = list(ear.messages_in(parts))
    assert [message.id for message in failed if isinstance(message, types.JSONRPCError)] == [1]
    late = list(ear.messages_in([b'{"jsonrpc":"2.0","id":1,"result":{}}', b'{"jsonrpc":"2.0","id":"2","result":{}}']))
    assert [message.id for message in late if isinstance(message, types.JSONRPCResponse)] == ["2"]


async def test_progress_is_thinned_out_however_it_is_written(tmp_path: Path) -> None:
    changes: list[int] = []
    ear = hearing(tmp_path, lambda: changes.append(1))
    line = b'{"params":{"progressToken":1,"progress":1},"method":"notifications/progress","jsonrpc":"2.0"}'
    assert len(list(ear.messages_in([line] * 500))) < 100
    usual = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'
    assert len(list(ear.messages_in([usual] * 500))) < 100
    notice = b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
    change = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    assert len(list(ear.messages_in([notice] * 500 + [change]))) < 100
    assert changes == [1]  # left out with the rest, and not forgotten


# The log


async def test_what_a_server_writes_to_its_standard_error_is_kept_scrubbed(tmp_path: Path) -> None:
    found = connected(tmp_path, declared(), scrub=lambda text: text.replace("hunter2", "[redacted]"))
    try:
        assert await call(found, "mutter", count=3) == "muttered"
        with Fails(Category.TRANSIENT, "muttering with [redacted]"):
            await call(found, "die")
    finally:
        await found.close()
    log = Path(found.status.log)
    assert log.read_text().count("muttering with [redacted]") >= 3
    assert "hunter2" not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_log_grows_to_a_bound_and_keeps_one_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_log, "LOG_BYTES_MAX", 2_000)
    log = ServerLog(tmp_path / "a" / "bad.log")
    for number in range(300):
        log.take(f"line {number} ".encode() + b"x" * 50 + b"\n")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["bad.log", "bad.old.log"]
    assert all(path.stat().st_size < 2_200 for path in (tmp_path / "a").iterdir())
    assert log.tail.count("\n") == 7


def test_lines_without_an_end_and_floods_of_them_are_cut(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "bad.log")
    log.take(b"z" * 70_000)
    log.take(b"left out")
    log.take(b" too\nunfinished")
    log.end()
    log.end()
    first, last = log.tail.splitlines()
    assert (set(first), last) == ({"z"}, "unfinished")
    assert "left out" not in log.path.read_text()
    log.take(b"z" * 70_000)
    log.begin()
    log.take(b"unfinished\n")
    assert log.tail.splitlines()[-1] == "unfinished"
    log.take(b"flood\n" * 5_000)
    assert (tmp_path / "bad.log").read_text().count("flood") < 3_000
    log._bucket._bucket = None  # as after a quiet second: full again
    log.take(b"calm again\n")
    assert "lines were left out" in (tmp_path / "bad.log").read_text()
    log.begin()
    assert log.tail == ""


@pytest.mark.parametrize("before", [0, 3_990, 5_000, 63_990, 67_990, 68_000, 140_000])
@pytest.mark.parametrize("first", [1, 8, 15])
def test_a_secret_that_comes_in_two_parts_is_not_in_the_log(tmp_path: Path, before: int, first: int) -> None:
    secret = "s3cret-Value-42!"
    log = ServerLog(tmp_path / "bad.log", SecretScrubber({secret: ""}).text)
    for part in ("." * before + secret[:first], secret[first:], " " * 70_000, secret + "\n", "next\n"):
        log.take(part.encode())
    written = log.path.read_text()
    for at in range(len(secret) - 5):
        assert secret[at : at + 6] not in written + log.tail
    assert log.tail.splitlines()[-1] == "next"


def test_secrets_that_shorten_a_line_do_not_bring_the_withheld_end_into_view(tmp_path: Path) -> None:
    secret = "s3cret-Value-42!" * 100
    log = ServerLog(tmp_path / "bad.log", SecretScrubber({secret: ""}).text)
    log.take(secret.encode() * 42 + secret[:1_200].encode())
    log.take(secret[1_200:].encode() + b"\n")
    assert "Value" not in log.path.read_text() + log.tail
    assert log.tail == " [cut: the line is too long]"


def test_a_log_that_can_not_be_written_does_not_stop_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ServerLog(tmp_path / "file" / "bad.log").note("no")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such mode")
def test_the_log_of_a_server_is_private_whatever_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_log, "LOG_BYTES_MAX", 500)
    log = ServerLog(tmp_path / "logs" / "servers" / "bad.log")
    before = os.umask(0)
    try:
        for _ in range(50):
            log.note("a line")
        log.path.chmod(0o644)
        log.note("tightened again")
    finally:
        os.umask(before)
    files = list(log.path.parent.iterdir())
    assert {file.name for file in files} == {"bad.log", "bad.old.log"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(log.path.parent.stat().st_mode) == 0o700


# The process


async def test_a_server_that_does_not_read_holds_up_its_callers_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as deaf:
        await deaf.listing()
        waiting = asyncio.create_task(call(deaf, "deaf", seconds=0.5))
        late = asyncio.create_task(call(deaf, "echo", text="x" * 300_000))
        await asyncio.sleep(0.1)
        assert not late.done()
        assert len(await late) == 300_000
        waiting.cancel()
        await asyncio.wait([waiting])


async def test_the_pipe_for_windows_speaks_to_a_server_as_well(tmp_path: Path) -> None:
    server = declared()
    launch = ServerLaunch(command=server.command, args=server.args, cwd=str(tmp_path))
    pipe = WindowsPipe(launch, log=ServerLog(tmp_path / "logs" / "bad.log"))
    async with Client(pipe.open(), mode="legacy") as client:
        result = await client.call_tool("echo", {"text": "hello"})
        await pipe.wait_until_ended(seconds=0)
        assert result.content == [types.TextContent(type="text", text="hello")]


def test_a_signal_without_a_name_is_reported_by_its_number() -> None:
    assert (_signal_name(9), _signal_name(99)) == ("SIGKILL", "signal 99")


def test_schemas_that_would_take_forever_are_not_applied() -> None:
    doubling = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
    assert not is_affordable({"$ref": "#/$defs/a0", "$defs": doubling}, 10)
    assert not is_affordable({"properties": {"a": {"$ref": "#"}}}, 10)
    assert not is_affordable({"$ref": "#/$defs/x", "$defs": {"x": {"items": {"$ref": "#/$defs/x"}}}}, 10)
    assert not is_affordable({"anyOf": [{"const": n} for n in range(5_000)]}, 1_000_000)
    plain = {"$ref": "#/$defs/x~1y", "$defs": {"x/y": {"type": "object", "properties": {"n": {"type": "integer"}}}}}
    assert is_affordable(plain, 1_000_000)
    deep: dict[str, object] = {}
    for _ in range(5_000):
        deep = {"not": deep}
    assert not is_affordable(deep, 10)
    assert is_affordable({"$ref": "#/$defs/gone/at/all"}, 10)
