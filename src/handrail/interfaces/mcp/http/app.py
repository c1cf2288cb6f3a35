"""The HTTP application: the guard first, then the few paths, then the SDK for `/mcp`.

How it listens is serving's business (running.py), how long a client may take the connection's (connection.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings

from handrail.domain.errors import HandrailError, Invalid, Limited, NotFound, Unavailable
from handrail.interfaces.mcp.http.answers import (
    CLOSE,
    Answer,
    Application,
    Receive,
    Scope,
    Send,
    answer_of,
    give,
    refusal,
    safely,
)
from handrail.interfaces.mcp.http.body import malformed, once_more, read_body
from handrail.interfaces.mcp.http.exchanges import Exchanges
from handrail.interfaces.mcp.http.guard import Guard
from handrail.interfaces.mcp.http.limits import Limits

__all__ = ["App", "Guard", "Limits", "app_of"]

MCP_PATH: Final = "/mcp"
Ready = Callable[[], Awaitable[None]]


def app_of(server: Server[Any], *, ready: Ready, guard: Guard, limits: Limits | None = None) -> App:
    """The application that offers this MCP server to those whom the guard lets in."""
    limits = limits or Limits()
    sdk = server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        json_response=False,  # progress, and the end of a call whose client has gone, need a stream
        stateless_http=False,
        max_request_body_size=limits.body_bytes,
        session_idle_timeout=limits.session_idle_s,
        max_sessions=limits.sessions,
        # Our guard has looked already: on every path, and at whole names.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return App(sdk, ready=ready, guard=guard, limits=limits)


class App:
    """An ASGI application."""

    def __init__(self, sdk: Application, *, ready: Ready, guard: Guard, limits: Limits) -> None:
        self.sdk, self.ready, self.guard, self.limits = sdk, ready, guard, limits
        self.exchanges = Exchanges()
        self.pages: dict[str, Callable[[], Awaitable[Answer]]] = {
            "/": self._say_what_this_is,
            "/livez": self._say_alive,
            "/readyz": self._say_ready,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or live through the server's life."""
        if scope["type"] == "lifespan":
            await self.sdk(scope, receive, send)
        else:
            await self.exchanges.carry(self._answer, scope, receive, safely(send))

    async def close(self) -> None:
        """End what is under way; the process is asked to end."""
        await self.exchanges.close(within_s=self.limits.shutdown_s)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if refused := self._refused(scope):
            await give(refused, send)
        elif scope["path"] == MCP_PATH:
            await self._mcp(scope, receive, send)
        else:
            await give(await self.pages[scope["path"]](), send)

    def _refused(self, scope: Scope) -> Answer | None:
        if refused := self.guard.wrong_place(scope["headers"]):
            return refused
        if sum(len(name) + len(value) for name, value in scope["headers"]) > self.limits.header_bytes:
            return refusal(431, Limited(f"the head of a request may have {self.limits.header_bytes:,} bytes"), CLOSE)
        if scope["path"] == MCP_PATH:
            return self.guard.no_token(scope["headers"])
        if scope["path"] not in self.pages:  # open to all: clients look for login pages here, and must see that none is
            return refusal(404, NotFound("there is nothing here", hint=f"MCP is at {MCP_PATH}"))
        if scope["method"] not in {"GET", "HEAD"}:
            return refusal(405, Invalid("this can only be read", hint="use GET"), (b"allow", b"GET, HEAD"))
        return None

    async def _mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await read_body(scope, receive, bytes_max=self.limits.body_bytes)
        except Limited as error:
            await give(refusal(413, error), send)
            return
        if body is None:
            return
        if scope["method"] == "POST" and (refused := malformed(body)):
            await give(refused, send)
        else:
            await self.sdk(scope, once_more(body, receive), send)

    async def _say_what_this_is(self) -> Answer:
        return answer_of(200, {"name": "handrail", "mcp": MCP_PATH, "health": ["/livez", "/readyz"]})

    async def _say_alive(self) -> Answer:
        return answer_of(200, {"status": "ok"})

    async def _say_ready(self) -> Answer:
        try:
            async with asyncio.timeout(self.limits.ready_s):
                await self.ready()
        except TimeoutError:
            return refusal(503, Unavailable(f"the store has not answered for {self.limits.ready_s:g} s"))
        except HandrailError as error:
            return refusal(503, error)
        return answer_of(200, {"status": "ok"})
