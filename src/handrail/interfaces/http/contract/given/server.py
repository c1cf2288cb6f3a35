"""Answers about the server itself: figures, doctor, settings, projects, clients. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handrail.domain.project import Project
from handrail.engine.reading.step_view import Shown
from handrail.interfaces.http.contract.given.tools import ToolFiguresView


class WorkflowFigures(Shown, frozen=True):
    """The runs of one workflow so far."""

    workflow: str
    runs: int = 0
    statuses: Mapping[str, int] = {}
    p50_ms: int | None = None
    p95_ms: int | None = None


class DayFigures(Shown, frozen=True):
    """The runs that started on one day, by how they are now."""

    day: str
    statuses: Mapping[str, int] = {}


class Statistics(Shown, frozen=True):
    """The figures so far, from the journal."""

    runs: int = 0
    statuses: Mapping[str, int] = {}
    workflows: tuple[WorkflowFigures, ...] = ()
    days: tuple[DayFigures, ...] = ()
    tools: tuple[ToolFiguresView, ...] = ()
    since: str = ""
    is_cut: bool = False


class DoctorFinding(Shown, frozen=True):
    """One check of this installation."""

    name: str
    level: str
    """ok, warn or fail."""
    message: str
    fix: str = ""
    age_ms: int | None = None
    """How long ago what it is about happened last; of a problem, how long it lasts."""


class DoctorReport(Shown, frozen=True):
    """Whether everything works."""

    ok: bool
    checks: tuple[DoctorFinding, ...] = ()
    at: str = ""


class SettingView(Shown, frozen=True):
    """One setting, its value, and where it comes from."""

    setting: str
    value: Any
    origin: str
    is_off: bool = False
    """Whether it does not count until a person has trusted the project."""


class SettingList(Shown, frozen=True):
    """The settings in effect."""

    settings: tuple[SettingView, ...] = ()
    trust: str = ""
    hint: str = ""


class SecretView(Shown, frozen=True):
    """A secret: its name, never its value."""

    name: str
    stored_in: str
    """file or keyring."""
    set: str
    given_to: tuple[str, ...] = ()
    """The tools that plans may pass it to."""


class SecretList(Shown, frozen=True):
    """The secrets of this home."""

    secrets: tuple[SecretView, ...] = ()


class ProjectEntry(Shown, frozen=True):
    """A project of this home."""

    id: str
    name: str
    folder: str = ""
    is_here: bool = False
    is_open: bool = False
    """Whether this server has it open, so that it can be worked on here."""
    command: str = ""
    """What opens it here, if it is not."""
    exists: bool = False
    open: int = 0
    runs: int = 0


class ProjectList(Shown, frozen=True):
    """The projects of this home."""

    projects: tuple[ProjectEntry, ...] = ()


class ClientView(Shown, frozen=True):
    """An agent, person or worker that was heard of: connected now, or last seen in the journal."""

    name: str
    kind: str
    """agent, person, worker."""
    connected: bool = False
    heard: str = ""
    run: str = ""
    """The run of its latest event, and the step."""
    step: str = ""


class ClientList(Shown, frozen=True):
    """Who takes part."""

    clients: tuple[ClientView, ...] = ()


class AboutServer(Shown, frozen=True):
    """This server: version, folders, who asks."""

    version: str
    python: str
    home: str
    project: Project
    person: str
    url: str
    started: str
    events: int = 0
    journal_bytes: int = 0
    readers: int = 0
    """How many receive the live feed."""
    channels: tuple[str, ...] = ()
    """By which ways an answer to an approval counts here."""
    needs_passphrase: bool = False
    note: str = ""
    restart: str = ""
    """What to do, if the configuration has changed since it was read."""


class WhoAsks(Shown, frozen=True):
    """Who asks, and how they signed in."""

    person: str
    channel: str
    expires: str = ""
    project: str = ""
    """The id of the project that the session was opened for."""


class Ticket(Shown, frozen=True):
    """A link that opens the console, once."""

    url: str
    seconds: int
    project: Project
    """The project that it opens on."""
    open: int
    """How many projects are open in this server."""
    changed: bool = False
    """Whether the settings of the project have changed since the server read them: it uses what it read."""


class Ended(Shown, frozen=True):
    """That the session is over."""

    ended: bool
