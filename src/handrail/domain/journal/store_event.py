"""Events that are not of runs: of tool servers, plans, and the store itself.

Values only. The events of a run, and the union of all events, are in event.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct, field

from handrail.domain.journal.fact import Fact


class BreakerOpened(Fact, frozen=True):
    """A tool server failed so often in a row that it is not called until this time."""

    server: str
    failures: int
    until: int
    message: str


class BreakerProbed(Fact, frozen=True):
    """The wait is over: one call is let through to test whether the server has recovered."""

    server: str


class BreakerClosed(Fact, frozen=True):
    """The tool server works again."""

    server: str


class PlanSaved(Fact, frozen=True):
    """A version of a plan was saved; its text is in the store under this content hash.

    `pins` are the content hashes of the tool servers' descriptions of the tools that it calls; `project` is the id of
    the project that it belongs to."""

    version: int
    definition: str
    name: str
    steps: int
    note: str = ""
    pins: Mapping[str, str] = field(default_factory=dict)
    project: str = ""


class PlanRetired(Fact, frozen=True):
    """The plan is no longer offered. Nothing is deleted."""

    reason: str


class StoreCreated(Fact, frozen=True):
    """A store was created, with the public key that verifies its checkpoints."""

    store: str
    key: str


class NodeAdmitted(Fact, frozen=True):
    """A node of a shared store was admitted: its public key signs checkpoints too, and `box` is the key under which
    secrets are sealed for it. An admitted key has signed that; see domain/journal/node_admission.py for the bytes."""

    node: str
    key: str
    box: str
    by: str
    signature: str


class JournalAccepted(Fact, frozen=True):
    """An operator accepted a journal that differs from its last checkpoint."""

    reason: str
    found: str


class StoreRestored(Fact, frozen=True):
    """The journal was restored from a backup: what others wrote after its last event is not in it.

    `backup` is the id of the backup, `made` the instant it was made, `events` how many events were restored, and
    `until` where the restore stopped, if an operator chose an earlier event or instant."""

    backup: str
    made: int
    events: int
    until: str = ""


class PayloadErased(Fact, frozen=True):
    """The content of one event was erased; the two digests still prove its place in the chain."""

    stream: str
    event: int
    digest: str
    residue: str
    reason: str


class ArchivedRun(Struct, frozen=True):
    """A run whose events were moved into an archive file: how many, and what proves them."""

    run: str
    n: int
    hashes: str
    """The digest of the hashes of all its events, in their order: the last of them is the head."""


class RunsArchived(Fact, frozen=True):
    """The events of ended runs were moved into an archive file, whose digest this is; their places and hashes stay."""

    archive: str
    digest: str
    runs: tuple[ArchivedRun, ...]
    reason: str = ""


class RunsUnarchived(Fact, frozen=True):
    """The events of archived runs are back in the journal, at their places."""

    archive: str
    runs: tuple[str, ...]
    reason: str = ""


class ArchivedRunsDeleted(Fact, frozen=True):
    """The events of archived runs were deleted; their places and hashes stay. `remains` is the archive file
    with the other runs of the old one, and `digest` that file's; empty if there were no others."""

    archive: str
    runs: tuple[str, ...]
    reason: str
    remains: str = ""
    digest: str = ""


ServerEvent: TypeAlias = BreakerOpened | BreakerProbed | BreakerClosed
PlanEvent: TypeAlias = PlanSaved | PlanRetired
RetentionEvent: TypeAlias = RunsArchived | RunsUnarchived | ArchivedRunsDeleted
StoreEvent: TypeAlias = StoreCreated | NodeAdmitted | JournalAccepted | StoreRestored | PayloadErased | RetentionEvent
