"""A call of the API, as handlers get it: the program, the caller, and what was asked. Values only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgspec import Struct

from handrail.assembly.opening import Assembly
from handrail.domain.project import Project
from handrail.interfaces.http.edge.callers import ApiCaller
from handrail.interfaces.http.edge.open_projects import OpenProjects
from handrail.interfaces.http.feed.event_feed import EventFeed


class Connected(Struct, frozen=True, kw_only=True):
    """A client that is connected to this server."""

    name: str
    heard: int
    """In milliseconds since 1970."""


ConnectedClients: TypeAlias = Callable[[], Sequence[Connected]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What handlers know of the server itself."""

    url: str
    started: int
    feed: EventFeed
    connected: ConnectedClients
    projects: OpenProjects


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """One call."""

    program: Assembly
    caller: ApiCaller
    server: ServerFacts
    path: Mapping[str, Any]
    query: Any
    body: Any = None
    """What the route takes, or the bytes of a file."""
    key: str = ""
    """The idempotency key."""

    @property
    def project(self) -> Project:
        """The project that answers."""
        return self.program.writer.reader.project

    @property
    def named_folder(self) -> str:
        """The folder that a command must name: with several projects open, it can be typed anywhere."""
        return self.project.folder if len(self.server.projects.opened) > 1 else ""

    @property
    def run(self) -> str:
        """The run that the path names."""
        return str(self.path["run"])


Handler: TypeAlias = Callable[[ApiCall], Awaitable[Any]]
