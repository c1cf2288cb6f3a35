"""What the tests of traces share: an agent with a trace of its own, and servers that note what they get."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from interfaces.http.live_console import LiveConsole
from interfaces.mcp.http.live_server import ACCEPT, INITIALIZE

SERVER = Path(__file__).with_name("noting_server.py")
TRACE, AGENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = {"traceparent": f"00-{TRACE}-{AGENT}-01", "tracestate": "vendor=a1", "baggage": "team=blue"}


@dataclass
class NotingApi:
    """An HTTP API: the headers that it got, and whether its next answer waits until it is let go."""

    url: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    hangs: bool = False
    let_go: threading.Event = field(default_factory=threading.Event)

    def got(self, path: str) -> list[dict[str, str]]:
        """The headers of the requests for a path."""
        return [headers for at, headers in zip(self.paths, self.headers, strict=False) if at == path]


@contextmanager
def noting_api() -> Iterator[NotingApi]:
    """On a free port."""
    api = NotingApi()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            api.paths.append(self.path)
            api.headers.append({name.lower(): value for name, value in self.headers.items()})
            if api.hangs:
                api.let_go.wait(60)
            with suppress(OSError):  # whoever asked may be gone
                self.send_response(200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        api.url = f"http://127.0.0.1:{server.server_address[1]}/"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield api
        finally:
            api.let_go.set()
            server.shutdown()
            thread.join()


def declare(folder: Path, collector: str) -> None:
    """The home: a tool server, loopback allowed, and where spans go."""
    home = folder / "home"
    home.mkdir(parents=True)
    server = {"command": sys.executable, "args": [str(SERVER), str(folder / "branches")]}
    (home / "tools.json").write_text(json.dumps({"mcpServers": {"git": server}}), encoding="utf-8")
    endpoint = f'trace_endpoint = "{collector}"\n' if collector else ""
    (home / "config.toml").write_text(f'{endpoint}[http]\nallow = ["127.0.0.1"]\n', encoding="utf-8")


def metas(folder: Path) -> list[dict[str, Any]]:
    """What the tool server was sent beside the arguments."""
    return [json.loads(line) for line in (folder / "meta.jsonl").read_text(encoding="utf-8").splitlines()]


def logged(folder: Path) -> list[dict[str, Any]]:
    """Every line that the processes of the home logged."""
    files = sorted((folder / "home" / "logs").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


@contextmanager
def agent(console: LiveConsole, **headers: str) -> Iterator[httpx.Client]:
    """An agent that has said hello to `serve`."""
    token = (console.shell.home / "http-token").read_text(encoding="utf-8").strip()
    with console.nobody(authorization=f"Bearer {token}", **ACCEPT, **headers) as client:
        client.headers["mcp-session-id"] = client.post("/mcp", json=INITIALIZE).headers["mcp-session-id"]
        client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield client


IDS = count(2)
"""An id of a request is never used again."""


def call(client: httpx.Client, name: str, arguments: dict[str, Any], meta: dict[str, str] | None = None) -> Any:
    """The structured answer of a tool, or the error."""
    params = {"name": name, "arguments": arguments, **({"_meta": meta} if meta else {})}
    answer = client.post("/mcp", json={"jsonrpc": "2.0", "id": next(IDS), "method": "tools/call", "params": params})
    assert answer.status_code == 200, answer.text
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = [line for line in text.splitlines() if line.startswith("data: {")][-1].removeprefix("data: ")
    said = json.loads(text)
    return said["result"]["structuredContent"] if "result" in said else said["error"]
