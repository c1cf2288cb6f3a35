"""The connection to one MCP server: started when first needed, shared by all runs, and started again if it died.

    stopped -> starting -> running -> (died) resting -> stopped -> ...

Each start is a session (session.py) with a task that keeps it open. While a server rests after a failure, calls fail at
once with the time to retry. The SDK is only imported at the first start: it takes longer than all other imports."""

from __future__ import annotations

import asyncio
import importlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.model import Category
from handrail.domain.run.tool_question import PersonReply, ToolQuestion
from handrail.engine.tool import NO_TRACE, ToolFailed
from handrail.tools.mcp.declaration import Declared
from handrail.tools.mcp.transport.era_memory import EraCache
from handrail.tools.mcp.transport.server_log import ServerLog
from handrail.tools.mcp.values.listing import ListedTool
from handrail.tools.mcp.working_folder import ServerPlaces

if TYPE_CHECKING:
    import mcp_types

    from handrail.tools.mcp.session import Session, Transport

__all__ = ["ListedTool", "ServerConnection", "ServerStatus"]

REST_S_FIRST: Final = 0.5
REST_S_MAX: Final = 30.0
HEALTHY_S: Final = 60.0
"""A server that ran for so long counts as healthy: earlier failures are forgotten."""
CLOSE_S: Final = 15.0
MS: Final = 1_000
TRY_NEXT_GREETING: Final = frozenset({Category.TRANSIENT, Category.TOOL_ERROR})
"""Failures of a handshake after which the other mode is tried."""
PASSING: Final = frozenset({Category.TRANSIENT, Category.TIMEOUT, Category.RATE_LIMITED})
"""Failures that may go away by themselves; any other category is kept while a server rests."""
SDK_SIDE: Final = "handrail.tools.mcp.session"


class ServerStatus(Struct, frozen=True, kw_only=True):
    """The status of a server."""

    status: Literal["stopped", "starting", "running", "resting"]
    pid: int = 0
    version: str = ""
    """The negotiated protocol version."""
    server: str = ""
    """The server's own name and version."""
    tools: int = 0
    listed_twice: tuple[str, ...] = ()
    """Names that it lists more than once: those tools are not offered."""
    starts: int = 0
    started_ms: int = 0
    """How long the last start took."""
    error: str = ""
    """The last error, if the server is not running now."""
    log: str = ""


def _as_it_is(text: str) -> str:
    return text


class ServerConnection:
    """One MCP server, for the callers of its tools."""

    def __init__(
        self,
        declared: Declared,
        *,
        places: ServerPlaces,
        log: Path,
        fill: Callable[[str], str],
        remembered: EraCache,
        scrub: Callable[[str], str] = _as_it_is,
    ) -> None:
        self._declared = declared
        self._places = places
        self._fill = fill
        self._eras = remembered
        self._log = ServerLog(log, scrub)
        self._session: Session | None = None
        self._ended_session: Session | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[Session] | None = None
        self._listing: tuple[ListedTool, ...] = ()
        self._listed_twice: tuple[str, ...] = ()
        self._is_stale = False
        self._relisting = asyncio.Lock()
        self._rest = _Rest()
        self._starts = self._started_ms = 0
        self._error = ""
        self._category = Category.TRANSIENT
        self._is_closed = False

    @property
    def status(self) -> ServerStatus:
        """The status of the server."""
        session = self._session if self._session and not self._session.is_over else None
        return ServerStatus(
            status=self._status(session),
            pid=session.pid if session else 0,
            version=session.version if session else "",
            server=session.server if session else "",
            tools=len(self._listing),
            listed_twice=self._listed_twice,
            starts=self._starts,
            started_ms=self._started_ms,
            error="" if session else self._error,
            log=str(self._log.path),
        )

    async def listing(self) -> Sequence[ListedTool]:
        """The tools that the server has now; it is started if necessary."""
        session = await self._running()
        async with self._relisting:
            if self._is_stale:
                await self._relist(session)
        return self._listing

    async def call(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        key: str,
        progress: Callable[[str], None],
        ask: Callable[[ToolQuestion], PersonReply],
        trace: Mapping[str, str] = NO_TRACE,
    ) -> mcp_types.CallToolResult:
        """Call a tool; ToolFailed says why it failed, ToolAsks what a person must answer first. Can be cancelled."""
        session = await self._running()
        from handrail.tools.mcp.session import ServerCall  # late: it needs the SDK, which is loaded by now

        try:
            return await session.call(ServerCall(tool, args, key, progress, ask, trace))
        except ToolFailed as failed:
            if failed.category is not Category.TRANSIENT or failed.retry_after_ms is not None or not session.is_over:
                raise
            # The server died: a retry makes no sense while it rests.
            rest_ms = self._rest.left_ms or self._rest.next_ms
            raise ToolFailed(failed.category, failed.message, retry_after_ms=rest_ms) from None

    async def close(self) -> None:
        """Stop the server and all its child processes."""
        self._is_closed = True
        if self._starting:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        await self._end()

    async def _running(self) -> Session:
        """The running session; callers that arrive while it starts share one start."""
        if self._declared.off:  # here, where every way to the server passes
            raise ToolFailed(Category.PERMISSION, self._declared.off)
        if self._is_closed:
            raise ToolFailed(Category.TRANSIENT, f"handrail is closing its connection to {self._declared.name}")
        if self._session and not self._session.is_over:
            return self._session
        if self._starting is None:
            if self._session:
                self._on_session_end(self._session)  # it has ended, but its task may still be cleaning up
            if wait_ms := self._rest.left_ms:
                message = f"the server {self._declared.name} is paused after a failure: {self._error}"
                raise ToolFailed(self._category, message, retry_after_ms=wait_ms)
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._on_started)
        try:
            # One caller that gives up must not end the start for the others.
            return await asyncio.shield(self._starting)
        except asyncio.CancelledError:
            if self._is_closed:
                raise ToolFailed(Category.TRANSIENT, f"{self._declared.name} was closed while it started") from None
            raise

    async def _start(self) -> Session:
        """Start the server and list its tools, within its start timeout."""
        if SDK_SIDE not in sys.modules:
            # In a thread: the import takes a third of a second, which would block the event loop.
            await asyncio.to_thread(importlib.import_module, SDK_SIDE)
        started_at = time.monotonic()
        seconds = duration_ms(self._declared.start_timeout) / MS
        await self._end()  # an earlier start may have left something
        try:
            async with asyncio.timeout(seconds):
                session = await self._opened()
                await self._relist(session)
        except TimeoutError:
            self._category = Category.TRANSIENT
            self._error = f"it did not start within {seconds:g} s" + (f": {self._log.tail}" if self._log.tail else "")
            await self._failed_start()
            raise ToolFailed(Category.TIMEOUT, f"{self._declared.name}: {self._error}") from None
        except ToolFailed as failed:
            self._error = failed.message
            self._category = Category.TRANSIENT if failed.category in PASSING else failed.category
            await self._failed_start()
            raise
        except asyncio.CancelledError:
            await self._end()
            raise
        self._starts += 1
        self._started_ms = round((time.monotonic() - started_at) * MS)
        self._error = ""
        # Its failures are forgotten only when it has run for a while: a server that dies at every call must rest
        # longer.
        self._rest.mark_started()
        self._eras.note(self._declared, legacy=session.is_legacy)
        self._log.note(f"started in {self._started_ms} ms; protocol {session.version}; {len(self._listing)} tools")
        return session

    async def _failed_start(self) -> None:
        self._log.note(f"can't be used: {self._error}")
        self._rest.begin()
        await self._end()

    async def _opened(self) -> Session:
        """Open a session with a handshake mode that the server understands: the remembered one, or by trying."""
        first, *others = self._greetings()
        # An old server may end at a greeting that it does not know, so the other one needs a new process.
        for other in others:
            try:
                return await self._greeted(first)
            except ToolFailed as failed:
                if failed.category not in TRY_NEXT_GREETING:
                    raise
            first = other
        return await self._greeted(first)

    def _greetings(self) -> Sequence[str]:
        if self._eras.is_legacy(self._declared):
            return ("legacy", "auto")
        # `auto` tries both on one connection; a process may not survive the first attempt, an HTTP server does.
        return ("auto", "legacy") if self._declared.command else ("auto",)

    async def _greeted(self, mode: str) -> Session:
        # Late: the SDK takes a third of a second to import, which only calls of a server should pay.
        from handrail.tools.mcp.fault import FAULTS, failure, is_closed
        from handrail.tools.mcp.session import Session

        session = self._session = Session(self._transport(), log=self._log, changed=self._on_notice)
        ready = asyncio.get_running_loop().create_future()
        keeper = self._keeper = asyncio.create_task(session.keep(mode, ready))
        keeper.add_done_callback(lambda _: self._on_session_end(session))
        try:
            await ready
        except FAULTS as error:
            await asyncio.wait([keeper])
            if session.noted:
                raise session.noted[-1] from None
            if is_closed(error):
                raise ToolFailed(Category.TRANSIENT, f"the server {self._declared.name} {session.how}") from None
            failed = failure(error)
            # A category such as invalid_input would blame the arguments of the call, but the handshake failed.
            category = failed.category if failed.category in PASSING else Category.TOOL_ERROR
            raise ToolFailed(category, f"the handshake failed: {failed.message}") from None
        return session

    def _transport(self) -> Transport:
        declared = self._declared
        if declared.url:
            from handrail.tools.mcp.transport.web import Web  # late: it needs an HTTP client

            headers = {name: self._fill(value) for name, value in declared.headers.items()}
            return Web(self._fill(declared.url), headers)
        from handrail.tools.mcp.transport.launch import ServerLaunch  # late: only needed for servers that are processes

        folder = self._places.folder(declared)
        launch = ServerLaunch(
            command=self._fill(declared.command),
            args=tuple(map(self._filled, declared.args)),
            env={name: self._filled(value) for name, value in declared.env.items()},
            cwd=str(folder / self._filled(declared.cwd)),
        )
        if sys.platform == "win32":
            from handrail.tools.mcp.transport.windows import WindowsPipe  # late: it needs the SDK

            return WindowsPipe(launch, log=self._log)
        from handrail.tools.mcp.transport.pipe import Pipe  # late: it needs the SDK

        return Pipe(launch, log=self._log, changed=self._on_notice)

    def _filled(self, text: str) -> str:
        return self._places.filled(self._fill(text))  # in this order: a folder's name may look like a reference

    async def _relist(self, session: Session) -> None:
        """Ask for the tools; a change that is reported in the meantime marks the list as stale again."""
        from handrail.tools.mcp.fault import FAULTS, failure, is_closed  # late: it needs the SDK

        self._is_stale = False
        try:
            async with asyncio.timeout(duration_ms(self._declared.start_timeout) / MS):
                self._listing = await session.tools()
                self._listed_twice = session.listed_twice
        except FAULTS as error:
            self._is_stale = True
            if is_closed(error):
                raise ToolFailed(Category.TRANSIENT, f"the server {self._declared.name} {session.how}") from None
            failed = failure(error)
            raise ToolFailed(failed.category, f"its tools can't be listed: {failed.message}") from None

    async def _end(self) -> None:
        """End the current session, within a time limit."""
        session, keeper = self._session, self._keeper
        if session is None or keeper is None:
            return
        session.stop()
        await asyncio.wait([keeper], timeout=CLOSE_S)
        if not keeper.done():
            keeper.cancel()
            await asyncio.wait([keeper], timeout=CLOSE_S)
        self._session = self._keeper = None

    def _on_started(self, task: asyncio.Task[Session]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it if all callers are gone

    def _on_session_end(self, session: Session) -> None:
        """Handle the end of a session: if it was not closed on purpose, the server rests before it is restarted."""
        if session is not self._session or self._is_closed or self._starting:
            return
        self._error = f"it {session.how}"
        self._category = Category.TRANSIENT
        if session is not self._ended_session:
            self._ended_session = session
            self._log.note("it has ended")
            if self._declared.command:  # an HTTP session is cheap to start again
                self._rest.begin()

    def _on_notice(self) -> None:
        self._is_stale = True

    def _status(self, session: Session | None) -> Literal["stopped", "starting", "running", "resting"]:
        if self._starting:
            return "starting"
        if session:
            return "running"
        is_clearing_up = self._session is not None and self._session is not self._ended_session
        return "resting" if self._rest.left_ms or is_clearing_up else "stopped"


class _Rest:
    """How long a server rests after a failure: longer each time, until it has run without failure for a while."""

    def __init__(self) -> None:
        self._failures = 0
        self._until = 0.0
        self._healthy_since: float | None = None

    @property
    def left_ms(self) -> int:
        return max(0, round((self._until - time.monotonic()) * MS))

    @property
    def next_ms(self) -> int:
        """How long the next rest will be."""
        return round(MS * min(REST_S_MAX, REST_S_FIRST * 2.0**self._failures))

    def mark_started(self) -> None:
        self._healthy_since = time.monotonic()

    def begin(self) -> None:
        now = time.monotonic()
        if self._healthy_since is not None and now - self._healthy_since > HEALTHY_S:
            self._failures = 0
        self._healthy_since = None
        self._until = now + min(REST_S_MAX, REST_S_FIRST * 2**self._failures)
        self._failures = min(self._failures + 1, 10)
