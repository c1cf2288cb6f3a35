"""`handrail serve` as a person starts it: a real process, its output, its token, its shutdown."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
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


def client(endpoint: Any) -> httpx.Client:
    shown = {"authorization": f"Bearer {endpoint['token']}"} if "token" in endpoint else {}
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
        assert file.read_text(encoding="utf-8").strip() == first["token"]
    with serving(shell) as (_, second):
        assert (second["token"], second["token_file"]) == (first["token"], first["token_file"])


@posix
def test_it_prints_how_to_connect_and_its_token_once(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with shell.process("serve", "--port", str(port)) as process:
        until(lambda: is_alive(port))
        process.send(signal.SIGINT)
        code, out, err = process.end()
    token = (shell.home / "http-token").read_text(encoding="utf-8").strip()
    assert (code, out) == (0, "")
    assert f'http://127.0.0.1:{port}/mcp --header "Authorization: Bearer {token}"' in err
    assert err.count(token) == 1
    logs = "".join(file.read_text(encoding="utf-8") for file in (shell.home / "logs").iterdir())
    assert f"http://127.0.0.1:{port}/mcp" in logs
    assert token not in logs


def is_alive(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/livez", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_without_a_token_it_serves_this_machine(shell: Shell) -> None:
    with serving(shell, "--no-token") as (_, endpoint), client(endpoint) as http:
        assert set(endpoint) == {"url"}
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
