"""Answers about the journal: events, verification, checkpoints and witnesses. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handrail.domain.journal.chain import Break
from handrail.engine.reading.run_view import ProjectView
from handrail.engine.reading.step_view import Shown


class EventView(Shown, frozen=True):
    """One event of the journal; `run` is the name of its stream."""

    run: str
    n: int
    at: str
    kind: str
    actor: str
    hash: str
    data: Mapping[str, Any] = {}
    step: str = ""
    attempt: int = 0
    erased: bool = False
    seq: int = 0
    """Its place in the whole store, where that is known."""
    project: str = ""
    """The id of the project of its stream, in the live feed."""


class EventPage(Shown, frozen=True):
    """A page of events."""

    events: tuple[EventView, ...] = ()
    cursor: str = ""
    total: int = 0
    """How many events the run has, in the journal of a run."""
    project: ProjectView | None = None


class Verified(Shown, frozen=True):
    """Whether the journal is intact."""

    ok: bool
    events: int
    streams: int
    checkpoints: int
    signed_events: int
    at: str
    took_ms: int = 0
    breaks: tuple[Break, ...] = ()
    first_bad: Break | None = None
    notes: tuple[str, ...] = ()


class CheckpointView(Shown, frozen=True):
    """A signed checkpoint."""

    number: int
    at: str
    events: int
    streams: int
    digest: str
    previous: str = ""
    key: str = ""
    is_restart: bool = False


class WitnessView(Shown, frozen=True):
    """How far a witness is."""

    name: str
    number: int = 0
    at: str = ""
    failed_at: str = ""
    reason: str = ""


class StreamHead(Shown, frozen=True):
    """Where a stream ends."""

    stream: str
    n: int
    hash: str
    name: str = ""
    """Of a run: the name of its definition, and the input that tells it from others."""
    label: str = ""


class JournalProof(Shown, frozen=True):
    """What vouches for the journal: checkpoints, witnesses, the key, the latest streams."""

    events: int
    key: str = ""
    checkpoints: tuple[CheckpointView, ...] = ()
    signed_events: int = 0
    witnesses: tuple[WitnessView, ...] = ()
    streams: tuple[StreamHead, ...] = ()


class CheckpointMade(Shown, frozen=True):
    """Whether a checkpoint was signed now, and the newest one."""

    new: bool
    checkpoint: CheckpointView | None = None
