"""Running the HTTP application: uvicorn in our own loop, with our limits, until it is asked to end.

Signals are the caller's business; what is answered is the application's."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Final

import uvicorn

from handrail.interfaces.mcp.http.app import App
from handrail.interfaces.mcp.http.connection import connection_class
from handrail.interfaces.mcp.http.exchanges import END_S
from handrail.interfaces.mcp.http.limits import Limits
from handrail.interfaces.mcp.http.place import BACKLOG

OUR_LOG: Final = "handrail"


async def run(
    app: App, listener: socket.socket, *, stop: asyncio.Future[None], started: Callable[[], None] = lambda: None
) -> None:
    """Serve until `stop` is done, or this task is cancelled; then end what is open, within a bound."""
    with _logs_with_ours("uvicorn", "mcp"):
        server = _Server(_config(app, app.limits), started)
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            await asyncio.wait({serving, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.should_exit = True
            await asyncio.gather(app.close(), serving)


def _config(app: App, limits: Limits) -> uvicorn.Config:
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
        # The application ends its exchanges itself; this is for what hangs all the same.
        timeout_graceful_shutdown=round(limits.shutdown_s + END_S + 1),
        h11_max_incomplete_event_size=limits.header_bytes,
    )


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves signals alone and says when it has started."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._say_started = started

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._say_started()


@contextlib.contextmanager
def _logs_with_ours(*names: str) -> Iterator[None]:
    """Let the errors of libraries go where ours go; what they tell beside is of no use here."""
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
