"""The API in the process of the test, called by any actor: a real server only knows the person of its machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from handrail.assembly.opening import Assembly, open_assembly
from handrail.domain.errors import NotFound
from handrail.interfaces.http.api.call import ServerFacts
from handrail.interfaces.http.api.handlers import HANDLERS
from handrail.interfaces.http.contract.routes import ROUTES
from handrail.interfaces.http.edge.api_part import ApiPart
from handrail.interfaces.http.edge.callers import Callers
from handrail.interfaces.http.edge.open_projects import OpenProjects
from handrail.interfaces.http.edge.sign_in import SignIn
from handrail.interfaces.http.feed.event_feed import EventFeed
from handrail.interfaces.web.guard import guard_of
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.site import WebSite
from handrail.settings import Settings, read_settings


@asynccontextmanager
async def as_actor(
    folder: Path, actor: str, *, project: Path | None = None, home: Path | None = None
) -> AsyncIterator[tuple[httpx.AsyncClient, Assembly]]:
    """The API in this process, called by an actor who is not the person of this machine."""
    settings = read_settings({"home": str(home or folder / "home"), "project": str(project or folder)}, {})
    async with open_assembly(settings) as parts:

        async def program() -> Assembly:
            return parts

        guard = guard_of(["127.0.0.1"], 80, token=None)
        callers = Callers(
            person=actor,
            sign_in=SignIn(folder, now_s=lambda: 0.0),
            key="k" * 43,
            origins=guard.origins,
            port=80,
        )
        feed = EventFeed(program)

        async def open_other(_: Settings) -> Assembly:
            raise NotFound("nobody opens another project here")

        projects = OpenProjects(program, open_other, lambda _: settings, on_open=feed.follow)
        server = ServerFacts(url="http://127.0.0.1", started=0, feed=feed, connected=list, projects=projects)
        limits = HttpLimits()
        part = ApiPart(ROUTES, HANDLERS, callers=callers, server=server, limits=limits)

        async def ready() -> None:
            """Always."""

        site = WebSite([part], ready=ready, guard=guard, limits=limits)
        headers = {"authorization": "Bearer " + "k" * 43}
        transport = httpx.ASGITransport(app=site)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
            yield client, parts
