"""Opens the API and the console over a program: the parts that `handrail serve` adds to its site.

Nothing is decided here; which parts there are is known here and in the command line."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from handrail.domain.secrets.key_files import TokenName
from handrail.engine.clock import system_clock
from handrail.interfaces.http.api.call import ConnectedClients, ServerFacts
from handrail.interfaces.http.api.handlers import HANDLERS
from handrail.interfaces.http.contract.routes import ROUTES
from handrail.interfaces.http.edge.api_part import ApiPart
from handrail.interfaces.http.edge.callers import Callers
from handrail.interfaces.http.edge.console_part import ConsolePart
from handrail.interfaces.http.edge.open_projects import OpenOther, OpenProjects
from handrail.interfaces.http.edge.sign_in import SignIn
from handrail.interfaces.http.edge.static_files import read_static_files
from handrail.interfaces.http.feed.event_feed import EventFeed, OpenProgram
from handrail.interfaces.web.http_server import Endpoint
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.token_file import open_token
from handrail.settings import Settings, local_person, settings_of_other


@dataclass(frozen=True)
class OpenedConsole:
    """The API and the console."""

    api: ApiPart
    console: ConsolePart

    def link(self) -> str:
        """A link that opens the console, once."""
        return self.api.link()


@dataclass(frozen=True, slots=True)
class Programs:
    """How the project of the server is opened, and further ones."""

    open_program: OpenProgram
    open_other: OpenOther


def open_console(
    settings: Settings, endpoint: Endpoint, limits: HttpLimits, programs: Programs, connected: ConnectedClients
) -> OpenedConsole:
    """The API and the console at an endpoint."""

    def settings_in(folder: str) -> Settings:
        return settings_of_other(settings, folder, os.environ)

    feed = EventFeed(programs.open_program)
    projects = OpenProjects(programs.open_program, programs.open_other, settings_in, on_open=feed.follow)
    key, _ = open_token(settings.home, TokenName.CONSOLE)
    callers = Callers(
        person=local_person(),
        sign_in=SignIn(settings.home, now_s=time.time),
        key=key,
        origins=endpoint.guard.origins,
        port=urlsplit(endpoint.url).port or 80,
    )
    server = ServerFacts(url=endpoint.url, started=system_clock(), feed=feed, connected=connected, projects=projects)
    api = ApiPart(ROUTES, HANDLERS, callers=callers, server=server, limits=limits)
    return OpenedConsole(api, ConsolePart(api, read_static_files()))
