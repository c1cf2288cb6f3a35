"""Opens the API and the console over a program: the parts that `handrail serve` adds to its site.

Nothing is decided here; which parts there are is known here and in the command line."""

from __future__ import annotations

import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from handrail.engine.clock import system_clock
from handrail.interfaces.http.api.call import ConnectedClients, ServerFacts
from handrail.interfaces.http.api.handlers import HANDLERS
from handrail.interfaces.http.contract.routes import ROUTES
from handrail.interfaces.http.edge.api_part import ApiPart
from handrail.interfaces.http.edge.callers import Callers
from handrail.interfaces.http.edge.console_part import ENTER, ConsolePart
from handrail.interfaces.http.edge.sign_in import SignIn
from handrail.interfaces.http.edge.static_files import read_static_files
from handrail.interfaces.http.feed.event_feed import EventFeed, OpenProgram
from handrail.interfaces.web.http_server import Endpoint
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.token_file import CONSOLE_FILE, open_token
from handrail.settings import Settings, local_person


@dataclass(frozen=True)
class OpenedConsole:
    """The API and the console."""

    api: ApiPart
    console: ConsolePart

    def link(self) -> str:
        """A link that opens the console, once."""
        return f"{self.api.server.url}{ENTER}?ticket={self.api.callers.sign_in.new_ticket()}"


def open_console(
    settings: Settings, endpoint: Endpoint, limits: HttpLimits, program: OpenProgram, connected: ConnectedClients
) -> OpenedConsole:
    """The API and the console at an endpoint."""
    key, _ = open_token(settings.home, CONSOLE_FILE)
    callers = Callers(
        person=local_person(),
        sign_in=SignIn(settings.home, now_s=time.time),
        key=key,
        origins=endpoint.guard.origins,
        port=urlsplit(endpoint.url).port or 80,
    )
    server = ServerFacts(url=endpoint.url, started=system_clock(), feed=EventFeed(program), connected=connected)
    api = ApiPart(ROUTES, HANDLERS, callers=callers, server=server, open_program=program, limits=limits)
    return OpenedConsole(api, ConsolePart(api, read_static_files()))
