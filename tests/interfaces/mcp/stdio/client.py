"""A raw client for tests: lines in, lines out, of a real server process, in both eras of the protocol."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PATIENCE_S = 30.0
FAKE = str(Path(__file__).with_name("fake_program.py"))


class Client:
    """One server process, and a thread that reads its output."""

    def __init__(self, command: list[str], folder: Path, *, listening: bool = True, bare: bool = False) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HANDRAIL_")}
        if bare:  # coverage would bring modules of its own
            inherited = {name: value for name, value in inherited.items() if not name.startswith("COVERAGE_")}
        with (folder / "stderr").open("wb") as stderr:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=inherited,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self._folder = folder
        self._heard: queue.Queue[bytes] = queue.Queue()
        self._aside: list[dict[str, Any]] = []
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        if listening:
            self._hearing.start()

    def listen(self) -> None:
        """Start to read, if this was not done from the start."""
        self._hearing.start()

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: object) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def ask(
        self, request_id: object, method: str, params: dict[str, Any] | None = None, *, modern: bool = True
    ) -> None:
        """Send a request."""
        given = {**(params or {}), **({"_meta": META} if modern else {})}
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": given})

    def tool(self, request_id: object, name: str, /, *, modern: bool = True, **arguments: Any) -> None:
        """Call a tool."""
        self.ask(request_id, "tools/call", {"name": name, "arguments": arguments}, modern=modern)

    def tell(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def next(self) -> dict[str, Any]:
        """The next message of the server."""
        line = self._heard.get(timeout=PATIENCE_S)
        assert line, f"the server closed stdout: {self.stderr}"
        message: dict[str, Any] = json.loads(line)
        return message

    def answer(self, request_id: object) -> dict[str, Any]:
        """The answer to one request; others are put aside."""
        for message in self._aside:
            if message.get("id") == request_id and "method" not in message:
                self._aside.remove(message)
                return message
        while True:
            message = self.next()
            if "method" not in message and message.get("id") == request_id:
                return message
            self._aside.append(message)

    def shake_hands(self, version: str = LEGACY) -> dict[str, Any]:
        """The handshake of the older era."""
        hello = {
            "protocolVersion": version,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "r", "version": "1"},
        }
        self.ask("hello", "initialize", hello, modern=False)
        answer = self.answer("hello")
        self.tell("notifications/initialized")
        return answer

    def rest(self) -> list[dict[str, Any]]:
        """Everything that the server still sends until it closes stdout."""
        found: list[dict[str, Any]] = self._aside
        while line := self._heard.get(timeout=PATIENCE_S):
            found.append(json.loads(line))
        return found

    def hang_up(self) -> None:
        """Close stdin."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def code(self) -> int:
        """The exit code, when it comes."""
        return self.process.wait(PATIENCE_S)

    def end(self) -> int:
        """Close stdin and wait."""
        self.hang_up()
        return self.code()

    @property
    def stderr(self) -> str:
        return (self._folder / "stderr").read_text(encoding="utf-8", errors="replace")

    @property
    def memory_mb(self) -> float:
        """What the process holds in memory now."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(OSError):
            self.process.stdin.close()
        if self._hearing.ident is None:
            self._hearing.start()
        self._hearing.join(PATIENCE_S)

    def _hear(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._heard.put(line)
        self._heard.put(b"")


def connected(folder: Path, *words: str, listening: bool = True) -> Client:
    """A client of the fake server, with its home in this folder."""
    command = [sys.executable, FAKE, "mcp", "--home", str(folder / "home"), "--project", str(folder), *words]
    return Client(command, folder, listening=listening)


def until(holds: Callable[[], Any]) -> Any:
    """Wait until a condition holds; returns its value."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if value := holds():
            return value
        time.sleep(0.02)
    raise AssertionError("the condition never held")
