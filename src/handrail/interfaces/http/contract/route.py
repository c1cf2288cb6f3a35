"""A route of the API: method, path, what it may do by the policy, what it takes and gives.

Values only. The table is in routes.py; handlers are found by name in api/handlers.py."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from handrail.domain.policy.act import Act

API: Final = "/api/v1"
BODY_BYTES: Final = 1_024 * 1_024
"""The largest body of a write, unless its route says otherwise."""
PLAN_BYTES: Final = 4 * 1_024 * 1_024
"""The same, of what can hold a whole definition or output."""
CHECK_S: Final = 600.0
"""How long the checks of a submission, or of the whole journal, may take."""
WITHIN_S: Final = 30.0
"""How long an answer may take, unless its route says otherwise."""


class Method(StrEnum):
    """How a route is called: GET reads and changes nothing, POST writes."""

    GET = "GET"
    POST = "POST"


GET, POST = Method.GET, Method.POST


class MediaType(StrEnum):
    """What an answer looks like."""

    JSON = "application/json"
    LINES = "application/x-ndjson"
    BUNDLE = "application/octet-stream"
    EVENTS = "text/event-stream"


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """A query or a body without any field."""


class Route(Struct, frozen=True, kw_only=True):
    """One row of the table."""

    method: Method
    path: str
    """Below /api/v1; `{run}` is one part of a path, `{step:path}` is all that is left of it."""
    name: str
    """Of the operation; its handler is found by it."""
    summary: str
    gives: Any
    dry: Any = None
    """What it gives with `dry_run=1`, when nothing is changed."""
    query: type[Struct] = Nothing
    body: type[Struct] | None = None
    acts: tuple[Act, ...] = ()
    """What a call can be to the policy; empty: it only reads."""
    own: bool = False
    """Whether it only reads, and yet only the run's own project can answer."""
    spans: bool = False
    """Whether its `project` filters a list: `*` and projects that are not open here can be asked for, too."""
    page: str = ""
    """The page of the console that shows this answer; with `.json` behind it, it is this very answer."""
    shows: tuple[str, ...] = ()
    """The operations whose answers its page shows at once; empty: only this one."""
    shared: tuple[str, ...] = ()
    """Names in its query that other pages pass on to it, where they show its answer."""
    tag: str = ""
    form: MediaType = MediaType.JSON
    takes_bytes: bool = False
    """Whether its body is a file rather than JSON."""
    status: int = 200
    body_bytes: int = BODY_BYTES
    within_s: float = WITHIN_S

    @property
    def is_write(self) -> bool:
        """Whether it changes anything."""
        return self.method is Method.POST and bool(self.acts)

    @property
    def is_own(self) -> bool:
        """Whether it works on the run in its path, which only that run's own project does."""
        return self.own or bool(self.acts)
