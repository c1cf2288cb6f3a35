"""The first answers of a page, sent with its HTML, so that it can be drawn without another round trip.

They are the answers of the API themselves, in a script element that is data: a browser never runs it, and nothing in it
can end it early. Only for a session; what takes too long or is too large is left out, and the page asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Raw, Struct
from starlette.requests import Request

from handrail.domain.errors import HandrailError
from handrail.interfaces.http.contract.route import WITHIN_S, Route
from handrail.interfaces.http.edge.api_part import ApiPart, etag_of
from handrail.interfaces.http.edge.callers import ApiCaller

Pair: TypeAlias = tuple[str, str]

STATE_BYTES_MAX: Final = 512 * 1_024
STATE_S: Final = 1.0
"""How long a page waits for all of its answers."""
FRAME: Final = "home"
"""What the frame around every page shows."""
SHOWN_ONLY: Final = frozenset({"view", "show", "find", "tab", "only", "try", "like"})
"""Names in the address of a page that only say how it shows its answer."""
BREAKING: Final = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)
"""What could end the element, or means something in HTML or script; in JSON it only stands in texts."""
PROJECT: Final = "project"
PLACE: Final = b"</head>"
ELEMENT: Final = b'<script type="application/json" id="state">%b</script>'


class PageAnswer(Struct, frozen=True):
    """An answer as the page would get it."""

    path: str
    """Below /api/v1, with its query."""
    etag: str
    at: str
    """The place in the store that it is from."""
    project: str
    """Which one answered: a tab that is in another one asks again."""
    data: Raw


def with_state(page: bytes, answers: Sequence[PageAnswer]) -> bytes:
    """A page with its answers."""
    if not answers:
        return page
    content = msgspec.json.encode(answers)
    for text, escaped in BREAKING:
        content = content.replace(text, escaped)
    return page.replace(PLACE, ELEMENT % content + PLACE, 1)


async def page_answers(api: ApiPart, route: Route | None, request: Request) -> list[PageAnswer]:
    """The answers that a page shows first; none without a session."""
    try:
        caller = api.callers.caller(request.headers, is_write=False)
    except HandrailError:  # the page itself says what to do
        return []
    if caller.session is None:
        return []
    answers: list[PageAnswer] = []
    room = STATE_BYTES_MAX
    try:
        async with asyncio.timeout(STATE_S):
            async for one in _read(api, route, request, caller):
                if len(bytes(one.data)) <= room:
                    room -= len(bytes(one.data))
                    answers.append(one)
    except TimeoutError:  # the page asks for the rest itself
        return answers
    return answers


async def _read(api: ApiPart, route: Route | None, request: Request, caller: ApiCaller) -> AsyncIterator[PageAnswer]:
    at = await api.head()
    for path, (one, query) in _wanted(api.table, route, request).items():
        try:
            content, project = await api.read(one, caller, request.path_params, query)
        except HandrailError:  # the page asks again, and shows the error
            continue
        yield PageAnswer(path, etag_of(content), at.text, project, Raw(content))


def _wanted(table: Sequence[Route], route: Route | None, request: Request) -> dict[str, tuple[Route, list[Pair]]]:
    """By its path with the query, as the page will ask for it but for the project, which the page adds: the operation
    of each answer, and what it is asked."""
    pairs = [(name, value) for name, value in request.query_params.multi_items() if name not in SHOWN_ONLY]
    names = () if route is None else route.shows or (route.name,)
    wanted: dict[str, tuple[Route, list[Pair]]] = {}
    for one in table:
        if one.name not in (*names, FRAME) or one.within_s > WITHIN_S:
            continue
        query = pairs if one is route else [pair for pair in pairs if pair[0] in _shared(one)]
        named = [pair for pair in query if pair[0] != PROJECT]
        is_here = one is route and one.page == one.path
        path = request.scope["raw_path"].decode("latin-1") if is_here else _path(one, request.path_params)
        wanted[path + (f"?{urlencode(named)}" if named else "")] = (one, query)
    return wanted


def _shared(route: Route) -> frozenset[str]:
    """Which names in the address of a page count for the answers beside its own."""
    return frozenset((*route.shared, PROJECT)) & frozenset(route.query.__struct_fields__)


def _path(route: Route, path: Mapping[str, Any]) -> str:
    filled = route.path
    for name, value in path.items():
        filled = filled.replace("{" + name + "}", quote(str(value), safe=""))
    return filled
