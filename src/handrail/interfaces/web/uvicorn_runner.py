"""Runs the ASGI application in uvicorn, in the current event loop and with our limits, until it is stopped.

Signals are handled by the caller; requests are handled in site.py."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Final

import uvicorn

from handrail.interfaces.web.connection import connection_class
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.listen_address import BACKLOG
from handrail.interfaces.web.open_requests import END_S
from handrail.interfaces.web.site import WebSite

OUR_LOG: Final = "handrail"


async def run(
    app: WebSite, listener: socket.socket, *, stop: asyncio.Future[None], on_started: Callable[[], None] = lambda: None
) -> None:
    """Serve until `stop` is done or this task is cancelled; then end open requests within a time limit."""
    with _redirected_logs("uvicorn", "mcp"):
        server = _UvicornServer(_config(app, app.limits), on_started)
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            await asyncio.wait({serving, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.should_exit = True
            await asyncio.gather(app.close(), serving)


def _config(app: WebSite, limits: HttpLimits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=connection_class(limits),
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=limits.keep_alive_s,
        # The application ends its open requests itself; this is for any that hang nevertheless.
        timeout_graceful_shutdown=round(limits.shutdown_s + END_S + 1),
        h11_max_incomplete_event_size=limits.header_bytes,
    )


class _UvicornServer(uvicorn.Server):
    """uvicorn's server, without its signal handlers and with a callback when it has started."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()


@contextlib.contextmanager
def _redirected_logs(*names: str) -> Iterator[None]:
    """Send the errors of these libraries to our own log; drop their other messages."""
    ours = logging.getLogger(OUR_LOG).handlers[:]
    theirs = [logging.getLogger(name) for name in names]
    before = [(one, one.level, one.propagate, one.handlers[:]) for one in theirs]
    for one in theirs:
        one.setLevel(logging.ERROR)
        if ours:
            one.handlers, one.propagate = ours[:], False
    try:
        yield
    finally:
        for one, level, propagate, handlers in before:
            one.setLevel(level)
            one.handlers, one.propagate = handlers, propagate
