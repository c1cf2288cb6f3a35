"""Starts a server as a client would, lists its tools in both versions of the protocol, and stops it.

Uses raw JSON-RPC lines and no MCP library, so that it sees what any client sees."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from handrail.interfaces.clients.launch import LaunchCommand

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
ANSWER_TIMEOUT_S: Final = 30.0
STOP_S: Final = 5.0
LINE_BYTES_MAX: Final = 16_000_000
STDERR_LINES_MAX: Final = 30
CHARACTERS_PER_TOKEN: Final = 4
CLIENT_INFO: Final = {"name": "handrail-doctor", "version": "1"}
CANT_START: Final = "can't be started"
MODERN_META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
}


class ProbeFailed(Exception):
    """The server did not answer as it should; the message says what it did instead."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a server answered."""

    started_ms: int
    """From the start of the process to the list of tools."""
    tools: int
    tokens: int
    """The size of the list of tools in an agent's context, at four characters per token."""
    server: str
    version: str
    protocol: str


@dataclass(slots=True)
class _Conversation:
    """A conversation with a running server."""

    process: asyncio.subprocess.Process
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    stderr_lines: deque[str]
    """The last lines of its stderr."""
    number: int = 0

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a request."""
        self.number += 1
        await self.send(method, params, id=self.number)
        while True:
            message = await self._line()
            if message.get("id") == self.number and ("result" in message or "error" in message):
                break
        if "error" in message:
            error = message["error"]
            words = error.get("message") if isinstance(error, dict) else error
            raise ProbeFailed(f"answered {method} with an error: {words}")
        return message["result"]

    async def send(self, method: str, params: Mapping[str, Any], **more: Any) -> None:
        """Send a message without waiting for an answer."""
        line = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more})
        with contextlib.suppress(ConnectionError):  # it has ended: the next read reports that
            self.stdin.write(line.encode() + b"\n")
            await self.stdin.drain()

    async def _line(self) -> dict[str, Any]:
        line = await self.stdout.readline()
        if not line:
            code = await self.process.wait()
            raise ProbeFailed(f"ended with exit code {code} before it answered")
        try:
            message = json.loads(line)
        except ValueError as error:
            raise ProbeFailed(f"printed something that is not a message: {line[:80]!r}") from error
        return message if isinstance(message, dict) else {}


async def probe_modern(launch: LaunchCommand, environment: Mapping[str, str]) -> ProbeResult:
    """What the server answers to clients of the current protocol."""
    async with _started(launch, environment) as (talk, started):
        found = await talk.ask("server/discover", {"_meta": MODERN_META})
        listed = await talk.ask("tools/list", {"_meta": MODERN_META})
        about = found.get("serverInfo") or (found.get("_meta") or {}).get("io.modelcontextprotocol/serverInfo") or {}
        return _answered(started, listed, about, MODERN)


async def probe_legacy(launch: LaunchCommand, environment: Mapping[str, str]) -> ProbeResult:
    """What the server answers to clients that start with a handshake."""
    async with _started(launch, environment) as (talk, started):
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT_INFO}
        found = await talk.ask("initialize", hello)
        await talk.send("notifications/initialized", {})
        listed = await talk.ask("tools/list", {})
        return _answered(started, listed, found.get("serverInfo") or {}, str(found.get("protocolVersion", LEGACY)))


def _answered(started: float, listed: Mapping[str, Any], about: Mapping[str, Any], protocol: str) -> ProbeResult:
    tools = listed.get("tools", [])
    size = len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")))
    return ProbeResult(
        started_ms=round(1_000 * (time.perf_counter() - started)),
        tools=len(tools),
        tokens=size // CHARACTERS_PER_TOKEN,
        server=str(about.get("name", "")),
        version=str(about.get("version", "")),
        protocol=protocol,
    )


@asynccontextmanager
async def _started(launch: LaunchCommand, environment: Mapping[str, str]) -> AsyncIterator[tuple[_Conversation, float]]:
    """A running server, and when it was started; every failure becomes ProbeFailed."""
    started = time.perf_counter()
    talk = await _start(launch, environment)
    reading = asyncio.create_task(_read_stderr(talk))
    reason = ""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            yield talk, started
    except TimeoutError:
        reason = f"did not answer within {ANSWER_TIMEOUT_S:.0f} s"
    except ProbeFailed as error:
        reason = str(error)
    finally:
        await _end(talk)
        await _finish_stderr(reading)
    if reason:
        raise ProbeFailed(_with_stderr(reason, talk.stderr_lines))


async def _finish_stderr(reading: asyncio.Task[None]) -> None:
    """Read the end of stderr, which often has the reason; with a limit, since child processes may keep it open."""
    await asyncio.wait([reading], timeout=STOP_S)
    reading.cancel()


async def _start(launch: LaunchCommand, environment: Mapping[str, str]) -> _Conversation:
    try:
        process = await asyncio.create_subprocess_exec(
            launch.command,
            *launch.args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**environment, **launch.env},
            cwd=launch.cwd or os.curdir,
            limit=LINE_BYTES_MAX,
        )
    except OSError as error:
        raise ProbeFailed(f"{CANT_START}: {error.strerror}: {error.filename}") from error
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise ProbeFailed(f"{CANT_START}: no pipes")
    return _Conversation(process, stdin, stdout, stderr, deque(maxlen=STDERR_LINES_MAX))


async def _read_stderr(talk: _Conversation) -> None:
    """Keep the last lines of stderr; without reading it, the server would block on a full pipe."""
    with contextlib.suppress(ValueError):  # a line longer than the limit is not kept
        while line := await talk.stderr.readline():
            talk.stderr_lines.append(line.decode("utf-8", errors="replace").rstrip())


async def _end(talk: _Conversation) -> None:
    """Close its stdin as clients do; kill a server that does not end."""
    talk.stdin.close()
    for stop in (talk.process.terminate, talk.process.kill, talk.process.kill):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_has_ended(talk), STOP_S)
            break
        with contextlib.suppress(ProcessLookupError):
            stop()


async def _has_ended(talk: _Conversation) -> None:
    """Wait until it ends; its stdout is read meanwhile, or it could block on a full pipe."""
    while await talk.stdout.read(65_536):
        pass
    await talk.process.wait()


def _with_stderr(reason: str, stderr_lines: deque[str]) -> str:
    last = [line for line in stderr_lines if line.strip()][-3:]
    return f"{reason}; stderr: {' | '.join(last)}" if last else reason
