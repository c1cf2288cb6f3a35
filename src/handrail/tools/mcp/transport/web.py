"""The HTTP transport to an MCP server: the SDK's transport with limits and better messages.

An HTTP failure belongs to one call: it is noted where that call finds it, and the SDK gets a response with an error
status, because an exception here would end the session of all calls. No proxies, nothing from the environment; the SDK
only follows redirects within the server's own origin."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import anyio
import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed
from handrail.tools.mcp.fault import by_status
from handrail.tools.mcp.transport.pipe import RESULT_BYTES_MAX
from handrail.tools.web.http_client import trusted

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

CONNECT_S: Final = 10.0
SILENCE_S: Final = 300.0
WAIT_MS_MAX: Final = 3_600_000
CONNECTIONS_MAX: Final = 100
EVENT_STREAM: Final = "text/event-stream"

NOTED: ContextVar[list[ToolFailed] | None] = ContextVar("noted", default=None)
"""Where a running call finds its HTTP failures. The SDK passes the context along with messages."""


class Web:
    """One session with a server behind a URL; `over` is set when a new session is needed."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = headers
        self.over = anyio.Event()
        self.pid = 0
        self.how = "ended the session"

    async def wait_until_ended(self, *, seconds: float) -> None:
        """Nothing to wait for: HTTP has no exit status."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Connect; leaving ends the session on the server, if it has one."""
        limits = httpx2.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX)
        wire = httpx2.AsyncHTTPTransport(verify=trusted(), trust_env=False, limits=limits)
        client = httpx2.AsyncClient(
            transport=_Bounded(wire, forgotten=self.over.set),
            headers={"user-agent": f"handrail/{version('handrail')}", "accept-encoding": "identity", **self._headers},
            timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S),
            trust_env=False,
        )
        transport = streamable_http_client(self._url, http_client=client, max_sse_event_size=RESULT_BYTES_MAX)
        async with client, transport as streams:
            yield streams


class _Bounded(httpx2.AsyncBaseTransport):
    """Sends requests; notes failures, and limits the size of responses."""

    def __init__(self, wire: httpx2.AsyncHTTPTransport, *, forgotten: Callable[[], None]) -> None:
        self._wire = wire
        self._forgotten = forgotten

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response, or one with an error status after a failure."""
        try:
            response = await self._wire.handle_async_request(request)
        except httpx2.TimeoutException:
            return _instead(Category.TIMEOUT, f"{request.url.host} did not answer in time")
        except (httpx2.TransportError, OSError) as error:
            return _instead(*_unreached(request.url.host, error))
        if response.status_code >= HTTPStatus.BAD_REQUEST and request.method == "POST":
            self._note_status(request, response)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            return _instead(Category.TOOL_ERROR, f"{request.url.host} compressed its response, although asked not to")
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_BoundedStream(response, is_endless=_is_event_stream(response)),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._wire.aclose()

    def _note_status(self, request: httpx2.Request, response: httpx2.Response) -> None:
        status = response.status_code
        if status == HTTPStatus.NOT_FOUND and MCP_SESSION_ID in request.headers:
            self._forgotten()
            message = f"{request.url.host} has forgotten the session; the next call opens a new one"
            _note(ToolFailed(Category.TRANSIENT, message))
            return
        wait_ms = _wait_ms(response.headers.get("retry-after", ""))
        message = f"{request.url.host} answered with status {status}"
        _note(ToolFailed(by_status(status), message, retry_after_ms=wait_ms))


class _BoundedStream(httpx2.AsyncByteStream):
    """The bytes of a response, up to a limit; for a stream of events, the SDK's reader limits each event."""

    def __init__(self, response: httpx2.Response, *, is_endless: bool) -> None:
        self._response = response
        self._is_endless = is_endless

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for block in self._response.aiter_raw():
                size += len(block)
                if size > RESULT_BYTES_MAX and not self._is_endless:
                    message = f"answered with more than {RESULT_BYTES_MAX // 1_000_000} MB; request less"
                    _note(ToolFailed(Category.TOOL_ERROR, message))
                    raise httpx2.StreamError(message)
                yield block
        except httpx2.TransportError as error:
            _note(ToolFailed(Category.TRANSIENT, f"the response was cut off: {error or type(error).__name__}"))
            # The only error that the SDK treats as the failure of a single response.
            raise httpx2.StreamError("the response was cut off") from None

    async def aclose(self) -> None:
        await self._response.aclose()


def _instead(category: Category, message: str) -> httpx2.Response:
    _note(ToolFailed(category, message))
    return httpx2.Response(HTTPStatus.BAD_GATEWAY)


def _note(failed: ToolFailed) -> None:
    noted = NOTED.get()
    if noted is not None:
        noted[:] = [failed]


def _unreached(host: str, error: Exception) -> tuple[Category, str]:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Category.PERMISSION, f"the certificate of {host} is not trusted: {cause.verify_message}"
        cause = cause.__cause__ or cause.__context__
    return Category.TRANSIENT, f"{host} can't be reached: {error or type(error).__name__}"


def _wait_ms(text: str) -> int | None:
    """The wait that Retry-After asks for: seconds, or a date."""
    if text.isdecimal() and len(text) < 9:
        return min(int(text) * 1_000, WAIT_MS_MAX)
    try:
        until = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max(0, int((until - datetime.now(UTC)).total_seconds() * 1_000)), WAIT_MS_MAX)


def _is_event_stream(response: httpx2.Response) -> bool:
    return str(response.headers.get("content-type", "")).lower().startswith(EVENT_STREAM)
