"""Starts a server as a client would, lists its tools in both versions of the protocol, and stops it.

Speaks raw JSON-RPC lines, so that it sees what any client sees."""

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

from handrail.interfaces.clients.launch import Launch

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
PATIENCE_S: Final = 30.0
GOODBYE_S: Final = 5.0
LINE_BYTES_MAX: Final = 16_000_000
WORDS_MAX: Final = 30
CHARACTERS_PER_TOKEN: Final = 4
ABOUT_US: Final = {"name": "handrail-doctor", "version": "1"}
UNSTARTED: Final = "can't be started"
MODERN_META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": ABOUT_US,
}


class ProbeFailed(Exception):
    """The server did not answer as it should; the message says what it did instead."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a server answered."""

    started_ms: int
    """From the start of the process to the list of tools."""
    tools: int
    tokens: int
    """What the list of tools costs an agent, at four characters a token."""
    server: str
    version: str
    protocol: str


@dataclass(slots=True)
class _Talk:
    """A conversation with a running server."""

    process: asyncio.subprocess.Process
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    said: deque[str]
    """The last lines of its stderr."""
    number: int = 0

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a request."""
        self.number += 1
        await self.tell(method, params, id=self.number)
        while True:
            message = await self._line()
            if message.get("id") == self.number and ("result" in message or "error" in message):
                break
        if "error" in message:
            error = message["error"]
            words = error.get("message") if isinstance(error, dict) else error
            raise ProbeFailed(f"answered {method} with an error: {words}")
        return message["result"]

    async def tell(self, method: str, params: Mapping[str, Any], **more: Any) -> None:
        """Send a message without waiting for an answer."""
        line = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more})
        with contextlib.suppress(ConnectionError):  # it is gone: reading will report it
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


async def probe_modern(launch: Launch, environment: Mapping[str, str]) -> Answered:
    """What the server answers to clients of the current protocol."""
    async with _started(launch, environment) as (talk, began):
        found = await talk.ask("server/discover", {"_meta": MODERN_META})
        listed = await talk.ask("tools/list", {"_meta": MODERN_META})
        about = found.get("serverInfo") or (found.get("_meta") or {}).get("io.modelcontextprotocol/serverInfo") or {}
        return _answered(began, listed, about, MODERN)


async def probe_legacy(launch: Launch, environment: Mapping[str, str]) -> Answered:
    """What the server answers to clients that start with a handshake."""
    async with _started(launch, environment) as (talk, began):
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": ABOUT_US}
        found = await talk.ask("initialize", hello)
        await talk.tell("notifications/initialized", {})
        listed = await talk.ask("tools/list", {})
        return _answered(began, listed, found.get("serverInfo") or {}, str(found.get("protocolVersion", LEGACY)))


def _answered(began: float, listed: Mapping[str, Any], about: Mapping[str, Any], protocol: str) -> Answered:
    tools = listed.get("tools", [])
    size = len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")))
    return Answered(
        started_ms=round(1_000 * (time.perf_counter() - began)),
        tools=len(tools),
        tokens=size // CHARACTERS_PER_TOKEN,
        server=str(about.get("name", "")),
        version=str(about.get("version", "")),
        protocol=protocol,
    )


@asynccontextmanager
async def _started(launch: Launch, environment: Mapping[str, str]) -> AsyncIterator[tuple[_Talk, float]]:
    """A running server, and when it was started; every failure becomes ProbeFailed."""
    began = time.perf_counter()
    talk = await _start(launch, environment)
    listening = asyncio.create_task(_listen(talk))
    reason = ""
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield talk, began
    except TimeoutError:
        reason = f"did not answer within {PATIENCE_S:.0f} s"
    except ProbeFailed as error:
        reason = str(error)
    finally:
        await _end(talk)
        await _heard_out(listening)
    if reason:
        raise ProbeFailed(_with_words(reason, talk.said))


async def _heard_out(listening: asyncio.Task[None]) -> None:
    """Read the last of stderr, which is often the reason; children that it left behind are not waited for."""
    await asyncio.wait([listening], timeout=GOODBYE_S)
    listening.cancel()


async def _start(launch: Launch, environment: Mapping[str, str]) -> _Talk:
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
        raise ProbeFailed(f"{UNSTARTED}: {error.strerror}: {error.filename}") from error
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise ProbeFailed(f"{UNSTARTED}: no pipes")
    return _Talk(process, stdin, stdout, stderr, deque(maxlen=WORDS_MAX))


async def _listen(talk: _Talk) -> None:
    """Keep the last lines of stderr, so that the server never blocks on it."""
    with contextlib.suppress(ValueError):  # an endless line: not worth keeping
        while line := await talk.stderr.readline():
            talk.said.append(line.decode("utf-8", errors="replace").rstrip())


async def _end(talk: _Talk) -> None:
    """Close its stdin as clients do; kill a server that does not end."""
    talk.stdin.close()
    for last_word in (talk.process.terminate, talk.process.kill, talk.process.kill):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_gone(talk), GOODBYE_S)
            break
        with contextlib.suppress(ProcessLookupError):
            last_word()


async def _gone(talk: _Talk) -> None:
    """Wait for its end; its stdout is read meanwhile, or it would block."""
    while await talk.stdout.read(65_536):
        pass
    await talk.process.wait()


def _with_words(reason: str, said: deque[str]) -> str:
    last = [line for line in said if line.strip()][-3:]
    return f"{reason}; stderr: {' | '.join(last)}" if last else reason
