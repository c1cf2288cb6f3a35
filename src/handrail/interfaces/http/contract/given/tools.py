"""Answers about tools, their servers and rules. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from handrail.domain.definition.model import Effect
from handrail.engine.reading.pin_changes import PinChange
from handrail.engine.reading.step_view import Shown


class LatencySlot(Shown, frozen=True):
    """The calls in one slot of time; slots without calls are left out."""

    start: str
    calls: int
    failed: int = 0
    p50_ms: int | None = None
    p95_ms: int | None = None


class ToolFiguresView(Shown, frozen=True):
    """The calls of a tool so far, or of all tools of a server."""

    tool: str
    calls: int = 0
    failures: Mapping[str, int] = {}
    """By category."""
    retries: int = 0
    p50_ms: int | None = None
    p95_ms: int | None = None
    p99_ms: int | None = None
    max_ms: int | None = None
    last: str = ""
    is_undo: bool = False
    slots: tuple[LatencySlot, ...] = ()
    """The same over time, where a page draws it."""


class ToolView(Shown, frozen=True):
    """A tool that plans can call."""

    name: str
    description: str
    effect: Effect
    args: Mapping[str, Any] = {}
    output: Any = None
    server: str = ""
    undo: str = ""
    idempotent: bool = False
    off: str = ""
    """Why every call of it is refused."""
    figures: ToolFiguresView | None = None
    """Its calls in the last 24 hours, if there were any."""


class OutageView(Shown, frozen=True):
    """A time in which a server was not called."""

    opened: str
    reason: str
    failures: int
    openings: int = 1
    probes: int = 0
    lasted_ms: int = 0
    closed: str = ""
    until: str = ""


class ServerState(StrEnum):
    """Whether a server is called."""

    USED = "used"
    """It is called."""
    NOT_CALLED = "not_called"
    """It has not been asked for its tools yet."""
    OPEN = "open"
    """It is not called for a while, because it failed."""
    HALF_OPEN = "half_open"
    """The next call tries it again."""
    CHANGED = "changed"
    """It is called, but describes a tool otherwise than when a plan was saved or a run started."""
    UNTRUSTED = "untrusted"
    """It is the project's own, and is not trusted."""


class ServerView(Shown, frozen=True):
    """A tool server: whether it is called, its tools, its figures and its outages."""

    server: str
    state: ServerState
    tools: tuple[str, ...] = ()
    why: str = ""
    """Why it is not called."""
    until: str = ""
    failures: int = 0
    whole: ToolFiguresView | None = None
    """All its calls together."""
    figures: tuple[ToolFiguresView, ...] = ()
    outages: tuple[OutageView, ...] = ()
    changed: tuple[PinChange, ...] = ()
    """The tools that it describes otherwise than when plans were saved or runs started."""


class ToolPage(Shown, frozen=True):
    """Servers first, those in trouble before the others; then tools, each with its figures."""

    servers: tuple[ServerView, ...] = ()
    tools: tuple[ToolView, ...] = ()
    total: int = 0
    broken: Mapping[str, str] = {}
    """Why a plugin can't be used, by its name."""
    cursor: str = ""


class RuleView(Shown, frozen=True):
    """A rule that checks can name."""

    name: str
    summary: str
    looks_at: str
    """world or words."""
    reads: str
    parameters: Mapping[str, Any] = {}
    required: tuple[str, ...] = ()
    origin: str = ""
    version: str = ""
    timeout: str = ""
    example: Mapping[str, Any] = {}


class RuleList(Shown, frozen=True):
    """The rules, and the plugins that can't be used."""

    rules: tuple[RuleView, ...] = ()
    broken: Mapping[str, str] = {}
