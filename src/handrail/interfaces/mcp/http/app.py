"""The ASGI application: checks host, origin and token, answers a few pages, and passes `/mcp` to the SDK.

The socket is served in uvicorn_runner.py; time limits for clients are in connection.py."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings

from handrail.domain.errors import HandrailError, Invalid, Limited, NotFound, Unavailable
from handrail.interfaces.mcp.http.body import read_body, read_message, replay_body
from handrail.interfaces.mcp.http.guard import Guard
from handrail.interfaces.mcp.http.limits import HttpLimits
from handrail.interfaces.mcp.http.open_requests import OpenRequests
from handrail.interfaces.mcp.http.refused_tokens import RefusedTokens
from handrail.interfaces.mcp.http.responses import (
    CLOSE,
    Application,
    JsonResponse,
    Receive,
    Scope,
    Send,
    error_response,
    json_response,
    send_response,
    with_safe_headers,
)
from handrail.interfaces.mcp.http.sessions import Sessions

__all__ = ["App", "Guard", "HttpLimits", "app_of"]

MCP_PATH: Final = "/mcp"
TOO_MANY_TOKENS: Final = error_response(
    429,
    Limited("too many requests without the right token", hint="send the token that `handrail serve` stores"),
    (b"retry-after", b"10"),
    CLOSE,
)
Ready = Callable[[], Awaitable[None]]

log = logging.getLogger(__name__)


def app_of(server: Server[Any], *, ready: Ready, guard: Guard, limits: HttpLimits | None = None) -> App:
    """The application that serves this MCP server to clients that pass the guard."""
    limits = limits or HttpLimits()
    sdk = server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        json_response=False,  # progress needs a stream, and so does noticing that the client of a call is gone
        stateless_http=False,
        max_request_body_size=limits.body_bytes,
        session_idle_timeout=limits.session_idle_s,
        # Sessions are counted in sessions.py; this is only a second line, and above it.
        max_sessions=limits.sessions + limits.connections,
        # Our guard has already checked this, on every path and by exact names.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return App(sdk, ready=ready, guard=guard, limits=limits)


class App:
    """An ASGI application."""

    def __init__(self, sdk: Application, *, ready: Ready, guard: Guard, limits: HttpLimits) -> None:
        self.sdk, self.ready, self.guard, self.limits = sdk, ready, guard, limits
        self.sessions = Sessions(sdk, MCP_PATH, limits)
        self.open_requests = OpenRequests()
        self.refused_tokens = RefusedTokens(limits.refused_s)
        self.next_report: asyncio.TimerHandle | None = None
        self.pages: dict[str, Callable[[], Awaitable[JsonResponse]]] = {
            "/": self._index,
            "/livez": self._livez,
            "/readyz": self._readyz,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the server's startup and shutdown."""
        if scope["type"] == "lifespan":
            await self.sdk(scope, receive, send)
        else:
            await self.open_requests.run(self._answer, scope, receive, with_safe_headers(send))

    async def close(self) -> None:
        """End the open requests, because the process is shutting down."""
        await self.open_requests.close(within_s=self.limits.shutdown_s)
        if self.next_report is not None:
            self.next_report.cancel()
        if said := self.refused_tokens.report():
            log.warning(said)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if refused := self._refused(scope):
            await send_response(refused, send)
        elif scope["path"] == MCP_PATH and (refused := self.guard.check_token(scope["headers"])):
            await send_response(await self._slowed_down(refused, scope), send)
        elif scope["path"] == MCP_PATH:
            await self._mcp(scope, receive, send)
        else:
            await send_response(await self.pages[scope["path"]](), send)

    def _refused(self, scope: Scope) -> JsonResponse | None:
        if refused := self.guard.check_host_and_origin(scope["headers"]):
            return refused
        if sum(len(name) + len(value) for name, value in scope["headers"]) > self.limits.header_bytes:
            limited = Limited(f"the request headers may have at most {self.limits.header_bytes:,} bytes")
            return error_response(431, limited, CLOSE)
        if scope["path"] == MCP_PATH:
            return None
        if scope["path"] not in self.pages:  # 404 without a token: clients look for OAuth metadata, and there is none
            return error_response(404, NotFound("there is nothing at this path", hint=f"MCP is at {MCP_PATH}"))
        if scope["method"] not in {"GET", "HEAD"}:
            return error_response(405, Invalid("this page is read-only", hint="use GET"), (b"allow", b"GET, HEAD"))
        return None

    async def _slowed_down(self, refused: JsonResponse, scope: Scope) -> JsonResponse:
        """The answer to a wrong token, after a while if there were many from this address."""
        address = str((scope.get("client") or ("an unknown address",))[0])
        delay_s = self.refused_tokens.note(address, asyncio.get_running_loop().time())
        if self.next_report is None:
            self._report_refused()  # the first one at once, the others once a minute
        if delay_s and self.refused_tokens.is_crowded:
            return TOO_MANY_TOKENS
        self.refused_tokens.waiting += 1
        try:
            await asyncio.sleep(delay_s)
        finally:
            self.refused_tokens.waiting -= 1
        return refused

    def _report_refused(self) -> None:
        said = self.refused_tokens.report()
        if said:
            log.warning(said)
        later = asyncio.get_running_loop().call_later
        self.next_report = later(self.limits.refused_log_s, self._report_refused) if said else None

    async def _mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await read_body(scope, receive, bytes_max=self.limits.body_bytes)
        except Limited as error:
            await send_response(error_response(413, error), send)
            return
        if body is None:  # the client has disconnected
            return
        message = read_message(body) if scope["method"] == "POST" else None
        if isinstance(message, JsonResponse):
            await send_response(message, send)
        else:
            await self.sessions.handle(scope, replay_body(body, receive), send, message, body)

    async def _index(self) -> JsonResponse:
        return json_response(200, {"name": "handrail", "mcp": MCP_PATH, "health": ["/livez", "/readyz"]})

    async def _livez(self) -> JsonResponse:
        return json_response(200, {"status": "ok"})

    async def _readyz(self) -> JsonResponse:
        try:
            async with asyncio.timeout(self.limits.ready_s):
                await self.ready()
        except TimeoutError:
            return error_response(503, Unavailable(f"the store has not answered within {self.limits.ready_s:g} s"))
        except HandrailError as error:
            return error_response(503, error)
        return json_response(200, {"status": "ok"})
