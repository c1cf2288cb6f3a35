"""The fixture as a server: handrail's own shell and HTTP edge around the fixture's surface. Only tests start it.

python -m outside.conformance.serve          says the port that it has chosen; ends when stdin ends"""

from __future__ import annotations

import asyncio
import secrets
import sys

from handrail.interfaces.mcp.http.app import app_of
from handrail.interfaces.mcp.shell import build
from handrail.interfaces.web.guard import guard_of
from handrail.interfaces.web.listen_address import listen_on, resolve_address
from handrail.interfaces.web.uvicorn_runner import run
from outside.conformance.beyond import go_beyond
from outside.conformance.fixture_surface import FixtureSurface


async def serve() -> None:
    """Serve on a free port until stdin ends."""
    server = build(FixtureSurface(), keys=[secrets.token_bytes(32)])
    go_beyond(server)
    listener = listen_on(resolve_address("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    app = app_of(server, ready=_ready, guard=guard_of(["127.0.0.1", "localhost"], port, token=None))
    stop = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
    await run(app, listener, stop=_when_done(stop), on_started=lambda: _say(port))


async def _ready() -> None:
    """It has nothing to wait for."""


def _when_done(reading: asyncio.Future[str]) -> asyncio.Future[None]:
    stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    reading.add_done_callback(lambda _: stop.set_result(None))
    return stop


def _say(port: int) -> None:
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve())
