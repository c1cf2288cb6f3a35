"""The console as a part of the site: its files, its pages with their `.json` twins, and the way in and out.

Files need no session: they hold nothing but the program. All that they show comes from the API; with a session, a page
has its first answers in it (page_state.py)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.routing import Route as Starred

from handrail.domain.errors import Forbidden, HandrailError, Invalid, NotFound
from handrail.interfaces.http.contract.given import server as given
from handrail.interfaces.http.contract.problem import problem_of
from handrail.interfaces.http.contract.route import API, MediaType, Route
from handrail.interfaces.http.contract.routes import PAGES_ONLY
from handrail.interfaces.http.edge.api_part import ENTER, ApiPart, problem_response
from handrail.interfaces.http.edge.asking import ticket_body
from handrail.interfaces.http.edge.callers import COMMAND, NotSignedIn
from handrail.interfaces.http.edge.page_state import page_answers, with_state
from handrail.interfaces.http.edge.sign_in import SESSION_S, TICKET_S
from handrail.interfaces.http.edge.static_files import StaticFile, StaticFiles
from handrail.interfaces.web.request_body import read_body
from handrail.interfaces.web.responses import REVALIDATED

HOME_TWIN: Final = "/index.json"
HTML: Final = "text/html"
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
TICKET_LENGTH_MAX: Final = 200
TICKET_BODY_BYTES: Final = 20_000
PAGE: Final = re.compile(r"/(?!/)[A-Za-z0-9/_@.!~-]{0,300}")
"""A page that a link may open."""
OF_A_RUN: Final = re.compile(r"/(?:runs|approvals|proof)/.")
"""A page whose project is that of its run."""


class ConsolePart:
    """The part of a site that is the console."""

    def __init__(self, api: ApiPart, files: StaticFiles) -> None:
        self._api, self._files = api, files

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """The way in and out, files, twins before pages, then everything else."""
        pages = [route for route in self._api.table if route.page]
        return [
            Starred(ENTER, self._enter),
            Starred(f"{API}/ticket", self._ticket, methods=["POST"]),
            Starred(f"{API}/logout", self._logout, methods=["POST"]),
            *(Starred(path, partial(self._file, file)) for path, file in self._files.files.items()),
            *(Starred(_twin(route), self._api.endpoint(route)) for route in pages),
            *(Starred(route.page, partial(self._page, route)) for route in pages),
            *(Starred(page, partial(self._page, None)) for page in PAGES_ONLY),
            # Last, because it matches everything.
            Starred("/{rest:path}", self._nothing, methods=METHODS),
        ]

    @property
    def streams(self) -> frozenset[str]:
        """None."""
        return frozenset()

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Everything was read before."""
        yield

    async def close(self) -> None:
        """Nothing is open."""

    async def _enter(self, request: Request) -> Response:
        """Turn a ticket into a session: the cookie for the browser, and the page key behind the #, which no server
        ever sees."""
        callers = self._api.callers
        if request.method == "HEAD":  # previews of links ask so: that must not use up the ticket
            return self._html(self._files.index)
        ticket = request.query_params.get("ticket", "")[:TICKET_LENGTH_MAX]
        new = callers.sign_in.redeem(ticket, otherwise=await self._own_project())
        if new is None:
            return self._html(self._files.index, status=401)
        wanted = request.query_params.get("to", "/")
        page = wanted if PAGE.fullmatch(wanted) else "/"  # never to another site
        # The page keeps it, and takes it out of the address again where there is only one.
        project = f"?project={new.project}" if new.project and not OF_A_RUN.match(page) else ""
        response = RedirectResponse(f"{page}{project}#key={new.key}", 303)
        # Not `Secure`: loopback has no TLS, and some browsers would drop the cookie.
        response.set_cookie(
            callers.cookie_name, new.cookie, max_age=SESSION_S, path="/", httponly=True, samesite="strict"
        )
        return response

    async def _own_project(self) -> str:
        """The project of the server itself; empty while it can't be opened, which every page then says."""
        try:
            return (await self._api.server.projects.first()).writer.reader.project.id
        except HandrailError:
            return ""

    async def _ticket(self, request: Request) -> Response:
        """A new link, for who has the key of scripts: `handrail open` asks for it."""
        try:
            caller = self._api.callers.caller(request.headers, is_write=True)
            if caller.channel != COMMAND:
                raise NotSignedIn("only a script with the key gets a link")
            made = await self._new_ticket(request)
        except HandrailError as error:
            return self._api.problem(error, request, status=401 if isinstance(error, Forbidden) else None)
        return Response(msgspec.json.encode(made), media_type=MediaType.JSON.value)

    async def _new_ticket(self, request: Request) -> given.Ticket:
        """A link for the project in the folder that the body names, which is opened here if it is not yet."""
        body = await read_body(request.scope, request.receive, bytes_max=TICKET_BODY_BYTES)
        folder = ticket_body(body or b"").project
        projects = self._api.server.projects
        parts = await (projects.open(folder) if folder else projects.first())
        reader = parts.writer.reader
        return given.Ticket(
            url=self._api.link(reader.project.id),
            seconds=TICKET_S,
            project=reader.project,
            open=len(projects.opened),
            changed=await projects.is_changed(parts),
        )

    async def _logout(self, request: Request) -> Response:
        callers = self._api.callers
        try:
            caller = callers.caller(request.headers, is_write=True)
        except HandrailError as error:
            status = 401 if isinstance(error, NotSignedIn) else None
            return problem_response(problem_of(error, status=status, instance=request.url.path))
        if caller.session is not None:
            callers.sign_in.end(caller.session)
        response = Response(
            msgspec.json.encode(given.Ended(ended=caller.session is not None)), media_type=MediaType.JSON.value
        )
        response.delete_cookie(callers.cookie_name, path="/", httponly=True, samesite="strict")
        return response

    async def _file(self, file: StaticFile, request: Request) -> Response:
        if file is self._files.index:
            return self._html(file)
        headers = {"etag": file.etag, "cache-control": REVALIDATED.decode()}
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)

    async def _page(self, route: Route | None, request: Request) -> Response:
        answers = await page_answers(self._api, route, request)
        index = self._files.index
        return self._html(replace(index, content=with_state(index.content, answers)))

    async def _nothing(self, request: Request) -> Response:
        """A page for people who followed a wrong link; an error for programs."""
        if allowed := _allowed(request):
            wrong = Invalid(f"{request.method} is not possible here", hint=f"use {allowed}")
            response = problem_response(problem_of(wrong, status=405, instance=request.url.path))
            response.headers["allow"] = allowed
            return response
        if HTML in request.headers.get("accept", ""):
            return self._html(self._files.index, status=404)
        missing = NotFound("there is nothing at this path", hint=f"the API is at {API}/openapi.json, MCP at /mcp")
        return problem_response(problem_of(missing, instance=request.url.path))

    def _html(self, file: StaticFile, *, status: int = 200) -> Response:
        headers = {"content-security-policy": self._files.policy}
        return Response(file.content, status, headers, file.media_type)


def _allowed(request: Request) -> str:
    """The methods of what is at this path, if it is there at all: this one is none of them."""
    found = [route for route in request.app.routes if route.matches(request.scope)[0] is Match.PARTIAL]
    return ", ".join(sorted({method for route in found for method in route.methods or ()}))


def _twin(route: Route) -> str:
    return HOME_TWIN if route.page == "/" else f"{route.page}.json"
