"""The pipe to an MCP server: a replacement of the SDK's stdio transport, for untrusted servers.

The SDK's own reader buffers lines of any length and passes everything on. Here a line is limited, a broken message only
fails its own call, noise is dropped and a flood closes the connection. The SDK still handles ids, protocol versions and
cancelling. The process is in launch.py. Windows has no leash: there the SDK's transport is used (windows.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from handrail.foundation.line_cutter import LineCutter, Overlong
from handrail.tools.mcp.bucket import RateLimiter
from handrail.tools.mcp.transport.launch import ServerLaunch, ServerProcess
from handrail.tools.mcp.transport.lines import (
    has_too_many_parts,
    is_broken_message,
    is_progress,
    named_ids,
    plain_id,
)
from handrail.tools.mcp.transport.server_log import ServerLog

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

RESULT_BYTES_MAX: Final = 16_000_000
ENDLESS_BYTES_MAX: Final = 256_000_000
"""A line longer than this ends the connection, instead of being skipped."""
NOISE_MAX: Final = 1_000
"""Useless lines in a row."""
PROGRESS_PER_S_MAX: Final = 50
NOTICES_PER_S_MAX: Final = 50
REQUESTS_MAX: Final = 100
"""Requests of the server whose answers it has not read."""
OUTBOX_MAX: Final = 64
FLUSH_S: Final = 0.5
DRAIN_S: Final = 0.5
REFUSED: Final = {"sampling/createMessage": "a model's words (sampling)", "roots/list": "the project's folders (roots)"}
TOOLS_CHANGED: Final = "notifications/tools/list_changed"

Outgoing = MemoryObjectReceiveStream[SessionMessage]
Incoming = MemoryObjectSendStream[SessionMessage | Exception]


class Pipe:
    """One start of a server, with its input and output; `over` is set when no more output will come."""

    def __init__(self, launch: ServerLaunch, *, log: ServerLog, changed: Callable[[], None]) -> None:
        self._launch = launch
        self._log = log
        self._changed = changed
        self._server: ServerProcess | None = None
        self._reader = MessageReader(log, changed)
        self._read_all = anyio.Event()
        self._shelters: list[anyio.CancelScope] = []
        self.over = anyio.Event()
        self.reason = ""
        """Why handrail closed it, if it did."""

    @property
    def pid(self) -> int:
        """The server's process; 0 before it is known."""
        return self._server.pid if self._server else 0

    @property
    def how(self) -> str:
        """How it ended, for messages."""
        return self.reason or (self._server.how if self._server else "") or "closed its output"

    async def wait_until_ended(self, *, seconds: float) -> None:
        """Wait a moment for its exit status."""
        if self._server and not self.reason:
            with anyio.move_on_after(seconds):
                await self._server.ended.wait()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Start the server; leaving stops it with all its descendants, within a time limit."""
        self._log.begin()
        server = self._server = ServerProcess(self._launch)
        # No await from here until the task group is entered: a cancellation there would leave the process behind.
        incoming, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_server, outgoing = anyio.create_memory_object_stream[SessionMessage](OUTBOX_MAX)
        writing = anyio.CancelScope(shield=True)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._sheltered, server.watch)
                tasks.start_soon(self._sheltered, self._read_messages, server, incoming)
                tasks.start_soon(self._sheltered, self._copy_log, server)
                tasks.start_soon(self._sheltered, self._watch_end, server, incoming)
                tasks.start_soon(self._write_messages, server, outgoing, writing)
                try:
                    yield from_server, to_server
                finally:
                    with anyio.CancelScope(shield=True):
                        from_server.close()
                        to_server.close()
                        await self._stop(server, writing)
                    for shelter in self._shelters:
                        shelter.cancel()
        finally:
            server.release()
            for stream in (incoming, outgoing):
                stream.close()

    async def _sheltered(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        """Work that continues when a start is cancelled, until the process has ended: stopping it needs all of them."""
        with anyio.CancelScope(shield=True) as shelter:
            self._shelters.append(shelter)
            await work(*args)

    async def _stop(self, server: ServerProcess, writing: anyio.CancelScope) -> None:
        with anyio.move_on_after(FLUSH_S):
            await self._reader.all_sent.wait()
        writing.cancel()
        await self._reader.all_sent.wait()
        await server.stop(is_polite=not self.reason)
        self._log.end()

    async def _read_messages(self, server: ServerProcess, incoming: Incoming) -> None:
        lines = LineCutter(RESULT_BYTES_MAX)
        is_listened_to = True
        while chunk := await server.read_output():
            if not is_listened_to:
                continue  # keep reading: a server that still writes would otherwise block and never end
            for message in self._reader.messages_in(lines.feed(chunk)):
                try:
                    await incoming.send(SessionMessage(message))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    is_listened_to = False
                    break
            if trouble := self._reader.trouble(lines.size):
                self._end(incoming, trouble)
                is_listened_to = False
            await anyio.lowlevel.checkpoint()  # lets other tasks run: a server that writes all the time must not block
        self._read_all.set()
        self._end(incoming)

    async def _watch_end(self, server: ServerProcess, incoming: Incoming) -> None:
        """End when the server ends: a child of it may still hold its output open."""
        await server.ended.wait()
        with anyio.move_on_after(DRAIN_S):
            await self._read_all.wait()
        self._end(incoming)

    async def _copy_log(self, server: ServerProcess) -> None:
        while chunk := await server.read_errors():
            self._log.take(chunk)
            await anyio.lowlevel.checkpoint()

    async def _write_messages(self, server: ServerProcess, outgoing: Outgoing, writing: anyio.CancelScope) -> None:
        try:
            with writing:
                async for item in outgoing:
                    self._reader.sent(item.message)
                    line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await server.send(line.encode() + b"\n")
        except OSError:
            self.over.set()  # it reads no more; calls that wait for a response must not wait forever
        finally:
            self._reader.all_sent.set()

    def _end(self, incoming: Incoming, reason: str = "") -> None:
        if reason and not self.reason:
            self.reason = reason
            self._log.note(reason)
        incoming.close()
        self.over.set()


class MessageReader:
    """Turns a server's lines into messages for the SDK and failures of single calls; drops noise."""

    def __init__(self, log: ServerLog, changed: Callable[[], None]) -> None:
        self._log = log
        self._changed = changed
        self._waiting: set[int | str] = set()
        self._asked: set[int | str] = set()
        self._noise = 0
        self._progress = RateLimiter(PROGRESS_PER_S_MAX)
        self._notices = RateLimiter(NOTICES_PER_S_MAX)
        self._noted: set[str] = set()
        self.all_sent = anyio.Event()

    def sent(self, message: types.JSONRPCMessage) -> None:
        """Remember which responses are expected, and which requests of the server were answered."""
        if isinstance(message, types.JSONRPCRequest):
            self._waiting.add(plain_id(message.id))
        elif isinstance(message, types.JSONRPCNotification):
            cancelled = (message.params or {}).get("requestId") if message.method == "notifications/cancelled" else None
            self._waiting.discard(plain_id(cancelled) if cancelled is not None else "")
        elif message.id is not None:
            self._asked.discard(plain_id(message.id))

    def messages_in(self, lines: Iterable[bytes | Overlong]) -> Iterable[types.JSONRPCMessage]:
        """The messages in these lines."""
        for line in lines:
            message = self._oversized(line) if isinstance(line, Overlong) else self._read(line)
            if message is not None:
                yield message

    def trouble(self, line_bytes: int) -> str:
        """Why the connection to this server must be closed; empty if it need not."""
        if self._noise > NOISE_MAX:
            return f"wrote more than {NOISE_MAX:,} lines in a row that are not messages"
        if len(self._asked) > REQUESTS_MAX:
            return f"sent more than {REQUESTS_MAX} requests without reading the answers"
        if line_bytes > ENDLESS_BYTES_MAX:
            return f"wrote one line of more than {ENDLESS_BYTES_MAX // 1_000_000} MB"
        return ""

    def _read(self, line: bytes) -> types.JSONRPCMessage | None:
        if is_progress(line) and not self._progress.take():
            return None
        if has_too_many_parts(line):
            return self._failed(line, "answered with too many values at once; request less")
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except (ValueError, RecursionError):
            return self._unreadable(line)
        if isinstance(message, types.JSONRPCError) and message.id is None:
            return self._failed(b"", "could not read what it was sent")
        return message if self._is_wanted(message, was_counted=is_progress(line)) else None

    def _is_wanted(self, message: types.JSONRPCMessage, *, was_counted: bool) -> bool:
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            wanted = message.id is not None and plain_id(message.id) in self._waiting
            self._waiting.discard(plain_id(message.id) if message.id is not None else "")
        elif isinstance(message, types.JSONRPCRequest):
            self._asked.add(plain_id(message.id))
            self._note_refused(message.method)
            wanted = True
        else:
            wanted = was_counted or self._is_notice_let_through(message.method)
        self._noise = 0 if wanted else self._noise + 1
        return wanted

    def _is_notice_let_through(self, method: str) -> bool:
        if method == "notifications/progress":
            return self._progress.take()
        if self._notices.take():
            return True
        if method == TOOLS_CHANGED:
            self._changed()  # the message is dropped with the rest of the flood, but its news is not
        return False

    def _unreadable(self, line: bytes) -> types.JSONRPCError | None:
        if is_broken_message(line):
            return self._failed(line, "answered with a message that can't be read")
        if line.strip():
            self._noise += 1
            self._note_once("it writes lines to its standard output that are not messages; they are ignored")
        return None

    def _oversized(self, line: Overlong) -> types.JSONRPCError | None:
        words = f"answered with more than {RESULT_BYTES_MAX // 1_000_000} MB; request less"
        # Reported at once if its start has the id of the call; at its end, that id is no longer waiting.
        return self._failed(line.head + line.tail, words, guess=line.is_whole)

    def _failed(self, text: bytes, words: str, *, guess: bool = True) -> types.JSONRPCError | None:
        """An error for the call that these bytes were an answer to, if it can be found."""
        self._note_once(f"it {words}")
        named = list(named_ids(text))
        request_id = next((name for name in named if name in self._waiting), None)
        if not named and guess and len(self._waiting) == 1:
            (request_id,) = self._waiting
        if request_id is None:
            self._noise += 1
            return None
        self._waiting.discard(request_id)
        error = types.ErrorData(code=types.INTERNAL_ERROR, message=words)
        return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)

    def _note_refused(self, method: str) -> None:
        if method in REFUSED:
            self._note_once(f"it asked for {REFUSED[method]}, which handrail does not give to servers")

    def _note_once(self, words: str) -> None:
        if words not in self._noted:
            self._noted.add(words)
            self._log.note(words)
