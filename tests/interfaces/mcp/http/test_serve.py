"""`handrail serve` as a person starts it: a real process, its output, its token, its shutdown."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from interfaces.mcp.http.live_server import ACCEPT, INITIALIZE, PATIENCE_S
from interfaces.shell import Process, Shell, until

posix = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX knows them")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@contextmanager
def serving(shell: Shell, *words: str) -> Iterator[tuple[Process, Any]]:
    """The process, and the endpoint that it prints."""
    with shell.process("serve", "--port", "0", "--json", *words) as process:
        line = process.line()
        assert line, process.end()
        yield process, json.loads(line)


def token_of(endpoint: Any) -> str:
    return Path(endpoint["token_file"]).read_text(encoding="utf-8").strip()


def client(endpoint: Any) -> httpx.Client:
    shown = {"authorization": f"Bearer {token_of(endpoint)}"} if "token_file" in endpoint else {}
    return httpx.Client(headers={**ACCEPT, **shown}, timeout=PATIENCE_S, trust_env=False)


@posix
def test_it_serves_until_it_is_stopped_and_ends_its_streams(shell: Shell) -> None:
    with serving(shell) as (process, endpoint), client(endpoint) as http:
        session = http.post(endpoint["url"], json=INITIALIZE).headers["mcp-session-id"]
        with http.stream("GET", endpoint["url"], headers={"mcp-session-id": session}) as stream:
            assert stream.status_code == 200
            process.send(signal.SIGTERM)
            assert b"data:" not in b"".join(stream.iter_bytes())
        code, out, err = process.end()
    assert (code, out) == (0, "")
    assert err == "server stopped\n"


def test_a_store_that_can_not_be_read_is_reported_while_the_process_runs(shell: Shell) -> None:
    shell.home.mkdir()
    (shell.home / "journal.db").write_bytes(b"no database " * 1_000)
    with serving(shell) as (_, endpoint), client(endpoint) as http:
        base = endpoint["url"].removesuffix("/mcp")
        refused = http.get(f"{base}/readyz")
        assert (refused.status_code, set(refused.json())) == (503, {"code", "name", "message", "hint"})
        assert http.get(f"{base}/livez").json() == {"status": "ok"}


@posix
def test_its_token_is_private_and_stays_the_same(shell: Shell) -> None:
    with serving(shell) as (_, first):
        file = Path(first["token_file"])
        assert file == shell.home / "http-token"
        assert file.stat().st_mode & 0o777 == 0o600
        token = token_of(first)
    with serving(shell) as (_, second), client(second) as http:
        assert (token_of(second), second["token_file"]) == (token, first["token_file"])
        assert http.post(second["url"], json=INITIALIZE).status_code == 200


@posix
def test_without_a_terminal_it_prints_where_the_token_is_and_never_the_token(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with shell.process("serve", "--port", str(port)) as process:
        until(lambda: is_alive(port))
        process.send(signal.SIGINT)
        code, out, err = process.end()
    file = shell.home / "http-token"
    token = file.read_text(encoding="utf-8").strip()
    assert (code, out) == (0, "")
    assert f"clients need the token in {file}" in err
    assert f'http://127.0.0.1:{port}/mcp --header "Authorization: Bearer $(cat {file})"' in err
    logs = "".join(one.read_text(encoding="utf-8") for one in (shell.home / "logs").iterdir())
    assert f"http://127.0.0.1:{port}" in logs
    assert token not in logs + err
    with serving(shell) as (_, endpoint):
        assert set(endpoint) == {"url", "token_file", "console"}


@posix
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["words", "json"])
def test_at_a_terminal_it_prints_the_token_once(shell: Shell, options: tuple[str, ...]) -> None:
    import pty  # only POSIX has it

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "handrail", "--home", str(shell.home), "serve", "--port", "0", *options]
    process = subprocess.Popen(command, cwd=shell.folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        with suppress(OSError):  # the terminal's end
            while piece := os.read(ours, 10_000):
                said += piece
                if b"http-token" in said and said.endswith(b"\n"):
                    process.send_signal(signal.SIGINT)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    token = (shell.home / "http-token").read_text(encoding="utf-8").strip()
    assert said.replace(b"\r\n", b"").count(token.encode()) == 1, said


def is_alive(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/livez", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_without_a_token_it_serves_this_machine(shell: Shell) -> None:
    with serving(shell, "--no-token") as (_, endpoint), client(endpoint) as http:
        assert set(endpoint) == {"url", "console"}
        assert http.post(endpoint["url"], json=INITIALIZE).status_code == 200
        assert http.post(endpoint["url"], json=INITIALIZE, headers={"host": "evil.example"}).status_code == 421
        assert http.get(endpoint["url"].replace("/mcp", "/readyz")).json() == {"status": "ok"}
    assert not (shell.home / "http-token").exists()


def test_beyond_this_machine_it_does_not_serve_without_a_token(shell: Shell) -> None:
    refused = shell.run("serve", "--port", "0", "--host", "0.0.0.0", "--no-token")
    assert refused.exit_code == 1
    assert "not served without a token" in refused.stderr
    assert "what to do" in refused.stderr


def test_a_port_in_use_is_unavailable(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = shell.json("serve", "--port", str(taken.getsockname()[1]), code=8)
    assert refused["error"]["name"] == "unavailable"
    assert "--port" in refused["error"]["hint"]
    assert not (shell.home / "journal.db").exists()


def test_a_host_that_is_none_is_invalid(shell: Shell) -> None:
    assert shell.json("serve", "--host", "no.such.host.invalid", code=5)["error"]["name"] == "invalid"


def test_an_unknown_toolset_is_a_usage_error_that_names_the_known(shell: Shell) -> None:
    refused = shell.run("serve", "--toolsets", "guide,walk")
    assert refused.exit_code == 2
    assert "no such toolset: walk; there are guide, run, journal" in refused.stderr


def test_only_the_toolsets_that_were_asked_for_are_offered(shell: Shell) -> None:
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    with serving(shell, "--toolsets", "journal") as (_, endpoint), client(endpoint) as http:
        session = {"mcp-session-id": http.post(endpoint["url"], json=INITIALIZE).headers["mcp-session-id"]}
        http.post(endpoint["url"], json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
        answer = http.post(endpoint["url"], json=listing, headers=session).text
    assert "record_decision" in answer
    assert "workflow_next" not in answer
