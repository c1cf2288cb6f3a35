"""The API as a part of the site: from the table of routes to answers.

For every route the same: who calls, whether the policy lets them, what is asked, the handler within its time, and the
answer with its ETag; errors become problem details. No handler is reached in any other way."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute
from starlette.routing import Route as Starred

from handrail.assembly.opening import Assembly
from handrail.domain.errors import HandrailError, Invalid, Limited, Unavailable
from handrail.domain.journal.kind_name import kinds_named
from handrail.domain.journal.mark import Mark, mark_from
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import Allowed, PolicyVerdict, require_allowed
from handrail.engine.known_secrets import NO_SECRETS, KnownSecrets
from handrail.interfaces.http.api.call import ApiCall, Handler, ServerFacts
from handrail.interfaces.http.contract.openapi import AT, FILE, IDEMPOTENCY, PROJECT
from handrail.interfaces.http.contract.problem import PROBLEM, ProblemDetails, problem_of
from handrail.interfaces.http.contract.route import API, MediaType, Method, Route
from handrail.interfaces.http.contract.whole_arrays import with_arrays
from handrail.interfaces.http.edge.asking import body_of, query_of
from handrail.interfaces.http.edge.callers import ApiCaller, Callers, NotSignedIn
from handrail.interfaces.http.edge.clean_json import clean_json
from handrail.interfaces.http.edge.idempotency import IdempotentAnswers, KeptAnswer
from handrail.interfaces.http.edge.known_streams import require_stream
from handrail.interfaces.http.edge.open_projects import ProjectAsked, asked_of
from handrail.interfaces.http.feed.event_stream import Wanted, event_stream
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.request_body import read_body
from handrail.interfaces.web.responses import JsonResponse
from handrail.interfaces.web.slow_refusals import SlowRefusals

JSON: Final = MediaType.JSON.value
EVENTS: Final = f"{API}/events"
ENTER: Final = "/enter"
DISCONNECTED: Final = 499

log = logging.getLogger(__name__)


class ApiPart:
    """The part of a site that is the API."""

    def __init__(
        self,
        table: Sequence[Route],
        handlers: Mapping[str, Handler],
        *,
        callers: Callers,
        server: ServerFacts,
        limits: HttpLimits,
    ) -> None:
        self.table, self.handlers = table, handlers
        self.callers, self.server, self._limits = callers, server, limits
        self._answers = IdempotentAnswers()
        self._refusals = SlowRefusals(limits)
        self._document = FILE.read_bytes()
        self._secrets = NO_SECRETS
        """Those of the program, once it is open: before that, no answer has anything of it."""

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """The table, and its document."""
        return [
            Starred(f"{API}/openapi.json", self._openapi),
            *(Starred(API + route.path, self.endpoint(route), methods=[route.method.value]) for route in self.table),
        ]

    @property
    def streams(self) -> frozenset[str]:
        """The live feed."""
        return frozenset({EVENTS})

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Nothing is opened before it is needed."""
        yield

    async def close(self) -> None:
        """Stop the feed."""
        await self.server.feed.close()
        self._refusals.close()

    def link(self, project: str = "") -> str:
        """A link that opens the console on a project, once; without one, on the server's own."""
        return f"{self.server.url}{ENTER}?ticket={self.callers.sign_in.new_ticket(project)}"

    def endpoint(self, route: Route) -> Callable[[Request], Any]:
        """What answers a route."""
        return partial(self._answer, route)

    async def _openapi(self, _: Request) -> Response:
        return Response(self._document, media_type=JSON)

    async def _answer(self, route: Route, request: Request) -> Response:
        try:
            caller = self.callers.caller(request.headers, is_write=route.method is Method.POST)
            return await self._answer_to(route, request, caller)
        except NotSignedIn as error:
            problem = self.problem(error, request, status=401)
            refused = JsonResponse(401, bytes(problem.body))
            # Slowly, and only a few at once: guessing a key must cost more than asking.
            made = await self._refusals.after_a_while(refused, request.scope)
            return problem if made is refused else Response(made.body, made.status, media_type=JSON)
        except HandrailError as error:
            return self.problem(error, request)

    async def _answer_to(self, route: Route, request: Request, caller: ApiCaller) -> Response:
        query = query_of(route.query, request.query_params.multi_items())
        body = await self._body(route, request)
        if body is None:
            return Response(status_code=DISCONNECTED)
        if route.form is MediaType.EVENTS:
            return await self._events(request, query, caller)
        program = await self.server.projects.answering(asked_of(route, request.path_params, query, caller.project))
        self._secrets = program.writer.record_writer.secrets
        require_act(route, caller.actor, program)
        # After the permission: what is wrong with a body tells about the program, and that only to who may ask.
        taken = body_of(route, body)
        # The run may be in the body instead of the address: then its project answers, not that of the session.
        if run := getattr(taken, "run", ""):
            program = await self.server.projects.answering(
                ProjectAsked(run=run, session=caller.project, must_be_own=True)
            )
        call = ApiCall(
            program=program,
            caller=caller,
            server=self.server,
            path=request.path_params,
            query=query,
            body=taken,
            key=request.headers.get(IDEMPOTENCY, ""),
        )
        if route.form is not MediaType.JSON:
            return await self._file(route, call)
        if route.method is Method.POST:
            return await self._write(route, call, request, body)
        # Before the answer is made: what is written meanwhile must not be missed by who continues from here.
        at = await self.head()
        content = self._json(await self._made(route, call))
        headers = {AT: at.text, PROJECT: call.project.id}
        return _tagged(content, headers, request.headers.get("if-none-match", ""))

    async def head(self) -> Mark:
        """How far the store is."""
        return await (await self.server.projects.first()).writer.reader.store.end()

    async def read(
        self, route: Route, caller: ApiCaller, path: Mapping[str, Any], pairs: Iterable[tuple[str, str]]
    ) -> tuple[bytes, str]:
        """The answer of a route that only reads, as it is sent, and the project that answered."""
        query = query_of(route.query, pairs)
        program = await self.server.projects.answering(asked_of(route, path, query, caller.project))
        self._secrets = program.writer.record_writer.secrets
        require_act(route, caller.actor, program)
        call = ApiCall(program=program, caller=caller, server=self.server, path=path, query=query)
        return self._json(await self._made(route, call)), call.project.id

    async def _body(self, route: Route, request: Request) -> bytes | None:
        if route.method is not Method.POST:
            return b""
        # A form can only send three types, and JSON is none of them: that alone stops forms of other sites.
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != (MediaType.BUNDLE if route.takes_bytes else MediaType.JSON).value:
            expected = (MediaType.BUNDLE if route.takes_bytes else MediaType.JSON).value
            raise Invalid(f"the body is of type {kind[:60] or 'nothing'}", hint=f"send Content-Type: {expected}")
        return await read_body(request.scope, request.receive, bytes_max=route.body_bytes)

    async def _made(self, route: Route, call: ApiCall) -> Any:
        try:
            async with asyncio.timeout(route.within_s):
                return await self.handlers[route.name](call)
        except TimeoutError as error:
            raise Unavailable(
                f"this took longer than {route.within_s:g} s", hint="ask for less, or try again"
            ) from error

    async def _write(self, route: Route, call: ApiCall, request: Request, body: bytes) -> Response:
        async def make() -> KeptAnswer:
            try:
                value = await self._made(route, call)
            except HandrailError as error:
                problem = self.problem(error, request)
                # A refusal is kept under the key, too: repeating the call must not suddenly succeed.
                return KeptAnswer(problem.status_code, bytes(problem.body), PROBLEM)
            is_new = isinstance(value, route.gives) and not getattr(value, "repeated", False)
            return KeptAnswer(route.status if is_new else 200, self._json(value), JSON)

        if not call.key or not route.is_write:
            made, is_repeated = await make(), False
        else:
            # The path and the query belong to the request: the same body can be sent to pause and to cancel.
            asked = b"\0".join((request.url.path.encode(), request.url.query.encode(), body))
            # So does the project: one that was not named is that of the session.
            who = (call.program.writer.reader.project.id, call.caller.actor)
            made, is_repeated = await self._answers.once(call.key, who, asked, make)
        response = Response(made.body, made.status, media_type=made.media_type)
        if is_repeated:
            response.headers["Idempotent-Replayed"] = "true"
        return response

    async def _file(self, route: Route, call: ApiCall) -> Response:
        made = await self._made(route, call)
        if isinstance(made, bytes):
            name = f'attachment; filename="{call.path.get("run", "journal")}.bundle"'
            return Response(made, media_type=route.form.value, headers={"content-disposition": name})
        return StreamingResponse(_lines(made), media_type=route.form.value)

    async def _events(self, request: Request, query: Any, caller: ApiCaller) -> Response:
        await self._require_known(query)
        wanted = Wanted(runs=frozenset(query.run), project=query.project, kinds=kinds_named(query.kind))
        after = _marked(request.headers.get("last-event-id", ""), query.from_)
        # Here, not in the stream: once it has started, nothing can be refused any more.
        if self.server.feed.is_full:
            raise Limited("too many readers receive the live feed", hint="close other windows, then try again")

        def may_stay() -> bool:
            session = caller.session
            return session is None or self.callers.is_open(session)

        stream = event_stream(self.server.feed, wanted, after=after, may_stay=may_stay)
        return StreamingResponse(stream, media_type=MediaType.EVENTS.value, headers={"x-accel-buffering": "no"})

    async def _require_known(self, query: Any) -> None:
        """Refuse to wait for the events of what is not there: none would ever come."""
        first = await self.server.projects.first()
        if query.project:
            await self.server.projects.require_known(query.project)
        for run in query.run:
            await require_stream(first, run)

    def problem(self, error: HandrailError, request: Request, *, status: int | None = None) -> Response:
        """An error as the answer to a request."""
        run = str(request.path_params.get("run", ""))
        is_large = isinstance(error, Limited) and "bytes" in str(error)
        made = problem_of(error, status=413 if is_large else status, instance=request.url.path, run=run)
        about = {"run": run} if run else {}
        log.info("%s %s refused: %d %s", request.method, request.url.path, made.status, error.name, extra=about)
        return problem_response(made, self._secrets)

    def _json(self, value: Any) -> bytes:
        return clean_json(with_arrays(value), self._secrets)


def problem_response(problem: ProblemDetails, secrets: KnownSecrets = NO_SECRETS) -> Response:
    """Problem details as a response."""
    headers = {"retry-after": str(problem.retry_after)} if problem.retry_after else {}
    return Response(clean_json(problem, secrets), problem.status, headers, PROBLEM)


def require_act(route: Route, actor: str, program: Assembly) -> None:
    """Refuse what the policy lets this actor never do; whether it may now, dispatch asks again, knowing the run."""
    if not route.acts:
        return
    policy = program.writer.dispatch.policy
    verdicts: list[PolicyVerdict] = [may(actor, act, policy) for act in route.acts]
    # A route may stand for several acts, one for each state of a run: here it is enough that one of them is allowed.
    if not any(isinstance(one, Allowed) for one in verdicts):
        require_allowed(verdicts[0])


def etag_of(content: bytes) -> str:
    """The tag of an answer."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def _tagged(content: bytes, headers: dict[str, str], seen: str) -> Response:
    """An answer with the tag of its content; without the content if the client has it."""
    etag = etag_of(content)
    headers = {"etag": etag, **headers}
    if etag in {one.strip().removeprefix("W/") for one in seen.split(",")}:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=JSON, headers=headers)


async def _lines(views: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    """Values as lines of JSON, many in one piece."""
    gathered: list[bytes] = []
    async for view in views:
        gathered.append(msgspec.json.encode(view) + b"\n")
        if len(gathered) >= 100:
            yield b"".join(gathered)
            gathered = []
    yield b"".join(gathered)


def _marked(header: str, asked: str | None) -> Mark | None:
    """Where a reader of the feed goes on: what its browser remembers, or what it asked for."""
    if header:
        return mark_from(header, "Last-Event-ID")
    return mark_from(asked, "from") if asked else None
