"""The end of `handrail demo --console`: the console on what the demo did, until Ctrl-C.

Served from the demo's temporary folder, on a free port: a server of the user's own is not touched."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator

from handrail.assembly.sole_server import sole_server
from handrail.interfaces.cli.run.execution import Stopped, stoppable
from handrail.interfaces.cli.serve import TOOLSETS, Serving
from handrail.interfaces.cli.words.browser import show_in_browser
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.web.http_server import Endpoint, ServeOptions, serve
from handrail.settings import Settings


async def show_console(settings: Settings, run: str) -> None:
    """Serve the console until stopped, open on the page of this run."""
    with sole_server(settings) as announce, stoppable() as stop, _stopped_with_the_terminal(stop):
        serving = Serving(settings, TOOLSETS, announce)

        def show(endpoint: Endpoint) -> None:
            serving.be_found(endpoint)
            if serving.console is not None:
                show_in_browser(f"{serving.console.link()}&to=/runs/{run}")
            say("  The link works once, within two minutes. Ctrl-C ends the demo and deletes all of it.")

        await serve(ServeOptions(home=settings.home, port=0), serving.parts, stop=stop, on_ready=show)


@contextlib.contextmanager
def _stopped_with_the_terminal(stop: asyncio.Future[None]) -> Iterator[None]:
    """Stop when the terminal is closed, too: that would end the process at once, and leave its folder behind."""
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        yield
        return
    loop = asyncio.get_running_loop()

    def end() -> None:
        if not stop.done():
            stop.set_exception(Stopped(hangup))

    loop.add_signal_handler(hangup, end)
    try:
        yield
    finally:
        loop.remove_signal_handler(hangup)
