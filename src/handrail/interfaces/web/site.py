"""The site: one ASGI application for everything on the port. Checks host, origin and sizes, then routes to its parts.

Starlette routes; the parts (MCP, the API, the console) bring their routes and don't know each other. Starlette's own
host and body checks are not used: they compare without the port, and answer in plain text.
The socket is served in uvicorn_runner.py; time limits for clients are in connection.py."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from handrail.domain.errors import HandrailError, Invalid, Limited, NotFound, Unavailable
from handrail.domain.tracing.trace_context import carried_by_headers
from handrail.engine.tracing.received import receiving
from handrail.interfaces.web.guard import Guard
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.open_requests import FAILED, OpenRequests, is_endless
from handrail.interfaces.web.responses import (
    CLOSE,
    JsonResponse,
    Message,
    Receive,
    Scope,
    Send,
    error_response,
    json_response,
    send_response,
    with_safe_headers,
)

LIVE: Final = "/livez"
READY: Final = "/readyz"
HEALTH: Final = "/healthz"

Ready = Callable[[], Awaitable[None]]
"""Returns if calls can be answered, and otherwise raises the reason."""
Answered = Callable[[str, str, int, float | None], None]
"""Takes the path, method and status of a request that ended, and its seconds unless it was an endless stream."""


class SitePart(Protocol):
    """A part of the site."""

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """What it answers; the first that matches is taken."""
        ...

    @property
    def streams(self) -> frozenset[str]:
        """The paths whose GET is an endless stream: at shutdown it ends at once."""
        ...

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Open while the server runs."""
        ...

    async def close(self) -> None:
        """The process is shutting down, and no request is open any more."""
        ...


class WebSite:
    """An ASGI application made of parts."""

    def __init__(
        self,
        parts: Sequence[SitePart],
        *,
        ready: Ready,
        guard: Guard,
        limits: HttpLimits,
        answered: Answered | None = None,
    ) -> None:
        self.parts, self.ready, self.guard, self.limits, self.answered = parts, ready, guard, limits, answered
        self.streams: frozenset[str] = frozenset().union(*(part.streams for part in parts))
        self.open_requests = OpenRequests(self.streams)
        self._starlette = Starlette(
            routes=[
                *(Route(path, self._health) for path in (LIVE, READY)),
                *(route for part in parts for route in part.routes),
                Route(HEALTH, self._health),  # a part that knows more comes first
                Route("/", self._index),
            ],
            exception_handlers={HTTPException: _no_such_route, Exception: _failed},
            lifespan=self._lifespan,
        )
        # Else `/mcp/` would answer with a redirect, which clients follow without their token.
        self._starlette.router.redirect_slashes = False  # one address for each page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the server's startup and shutdown."""
        if scope["type"] == "lifespan":
            await self._starlette(scope, receive, send)
        elif context := carried_by_headers(scope["headers"]):
            with receiving(context):
                await self._handle(scope, receive, send)
        else:
            await self._handle(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.answered is None:
            await self.open_requests.run(self._answer, scope, receive, with_safe_headers(send))
        else:
            await self._measured(self.answered, scope, receive, send)

    async def _measured(self, answered: Answered, scope: Scope, receive: Receive, send: Send) -> None:
        started_s, code = time.perf_counter(), 0

        async def noting(message: Message) -> None:
            nonlocal code
            code = message["status"] if message["type"] == "http.response.start" else code
            await send(message)

        try:
            await self.open_requests.run(self._answer, scope, receive, with_safe_headers(noting))
        finally:  # also of a client that left: 0 if nothing was answered
            took_s = None if is_endless(scope, self.streams) else time.perf_counter() - started_s
            answered(scope["path"], scope["method"], code, took_s)

    async def close(self) -> None:
        """End the open requests, because the process is shutting down."""
        await self.open_requests.close(within_s=self.limits.shutdown_s)
        for part in self.parts:
            await part.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if refused := self._refused(scope):
            await send_response(refused, send)
        else:
            await self._starlette(scope, receive, send)

    def _refused(self, scope: Scope) -> JsonResponse | None:
        if refused := self.guard.check_host_and_origin(scope["headers"]):
            return refused
        if sum(len(name) + len(value) for name, value in scope["headers"]) > self.limits.header_bytes:
            limited = Limited(f"the request headers may have at most {self.limits.header_bytes:,} bytes")
            return error_response(431, limited, CLOSE)
        return None

    @asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as opened:
            for part in self.parts:
                await opened.enter_async_context(part.lifespan())
            yield

    async def _index(self, _: Request) -> Response:
        return as_response(json_response(200, {"name": "handrail", "mcp": "/mcp", "health": [LIVE, READY, HEALTH]}))

    async def _health(self, request: Request) -> Response:
        """Whether the process lives; for the others, whether it can answer calls."""
        if request.url.path == LIVE:
            return as_response(json_response(200, {"status": "ok"}))
        try:
            async with asyncio.timeout(self.limits.ready_s):
                await self.ready()
        except TimeoutError:
            late = Unavailable(f"the store has not answered within {self.limits.ready_s:g} s")
            return as_response(error_response(503, late))
        except HandrailError as error:
            return as_response(error_response(503, error))
        return as_response(json_response(200, {"status": "ok"}))


def as_response(made: JsonResponse) -> Response:
    """A response of ours as one of Starlette's."""
    response = Response(made.body, made.status, media_type="application/json")
    for name, value in made.more_headers:
        response.headers[name.decode("latin-1")] = value.decode("latin-1")
    return response


async def _no_such_route(_: Request, error: Exception) -> Response:
    """Nothing at this path, or not by this method; 404 without a token, too: clients look for OAuth metadata."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405 and isinstance(error, HTTPException):
        allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
        refused = error_response(405, Invalid("this can't be done here", hint=f"use {allowed}"))
        return as_response(JsonResponse(405, refused.body, ((b"allow", allowed.encode()),)))
    return as_response(error_response(404, NotFound("there is nothing at this path", hint="MCP is at /mcp")))


async def _failed(_: Request, __: Exception) -> Response:
    """A bug in one handler; Starlette raises it again, and open_requests.py logs it."""
    return as_response(FAILED)
