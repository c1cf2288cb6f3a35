"""MCP as a part of the site: checks the token, reads the message, and passes it to the SDK.

Host, origin and sizes are checked in web/site.py before anything gets here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from handrail.domain.errors import Limited
from handrail.interfaces.mcp.http.body import read_message, replay_body
from handrail.interfaces.mcp.http.sessions import Sessions
from handrail.interfaces.web.guard import Guard
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.request_body import read_body
from handrail.interfaces.web.responses import JsonResponse, Receive, Scope, Send, error_response, send_response
from handrail.interfaces.web.site import Ready, WebSite
from handrail.interfaces.web.slow_refusals import SlowRefusals

MCP_PATH: Final = "/mcp"


def app_of(server: Server[Any], *, ready: Ready, guard: Guard, limits: HttpLimits | None = None) -> WebSite:
    """A site that serves only this MCP server."""
    limits = limits or HttpLimits()
    return WebSite([McpPart(server, guard=guard, limits=limits)], ready=ready, guard=guard, limits=limits)


class McpPart:
    """The part of a site that speaks MCP."""

    def __init__(self, server: Server[Any], *, guard: Guard, limits: HttpLimits) -> None:
        self.guard, self.limits = guard, limits
        self._sdk = _sdk_of(server, limits)
        self.sessions = Sessions(self._sdk, MCP_PATH, limits)
        self.refusals = SlowRefusals(limits)

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """One address, for every method: the SDK says which it knows."""
        return [Route(MCP_PATH, _Endpoint(self))]

    @property
    def streams(self) -> frozenset[str]:
        """A GET waits for notifications."""
        return frozenset({MCP_PATH})

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """The SDK's own."""
        async with self._sdk.router.lifespan_context(self._sdk):
            yield

    def clients(self) -> list[tuple[str, float]]:
        """The names of the clients that are connected, and how many seconds ago each was last heard."""
        return self.sessions.clients()

    async def close(self) -> None:
        """Log what was refused last."""
        self.refusals.close()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if refused := self.guard.check_token(scope["headers"]):
            await send_response(await self.refusals.after_a_while(refused, scope), send)
            return
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


class _Endpoint:
    """The part as an ASGI application: Starlette would call a method with a request instead."""

    def __init__(self, part: McpPart) -> None:
        self._part = part

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._part.answer(scope, receive, send)


def _sdk_of(server: Server[Any], limits: HttpLimits) -> Starlette:
    return server.streamable_http_app(
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
