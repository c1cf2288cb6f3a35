"""Erasure: what is left of an event when its content is removed.

Pure. For every event, the table says which fields contain user content and which are needed to replay the stream
(ids, steps, hashes). engine/proving/erasure.py replaces the event in the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.journal import event as e
from handrail.domain.journal import store_event as s

ERASED_TEXT: Final = "[erased]"
ERASED_VALUE: Final[Mapping[str, bool]] = {"erased": True}


class Fields(Struct, frozen=True, kw_only=True):
    """The fields of an event that can contain text: those that can be erased, and those that replay needs."""

    payload: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    """Those of the payload that later steps, an undo or a person who is asked may need, as long as the run is open."""


_REASON: Final = Fields(payload=("reason",))
_STEP: Final = Fields(kept=("step",))
_STEP_REASON: Final = Fields(payload=("reason",), kept=("step",))
_STEP_MESSAGE: Final = Fields(payload=("message",), kept=("step",))
_ANSWER: Final = Fields(payload=("reason",), kept=("step", "digest", "channel", "behalf"))

FIELDS: Final[Mapping[type[e.Event], Fields]] = {
    e.RunStarted: Fields(
        payload=("inputs", "goal", "trace"),
        kept=("definition", "workflow", "key", "asked", "pins", "project", "behalf"),
        used=("inputs",),
    ),
    e.RunAdopted: Fields(payload=("reason",), kept=("project",)),
    e.ProjectRecorded: Fields(payload=("dirty",), kept=("step", "commit", "branch", "tree", "missing")),
    e.RunPaused: _REASON,
    e.RunResumed: _REASON,
    e.RunCancelled: _REASON,
    e.RunCompleted: Fields(payload=("outputs",)),
    e.RunFailed: _STEP_MESSAGE,
    e.CompensationStarted: Fields(payload=("reason",), kept=("steps",)),
    e.RunCompensated: Fields(kept=("not_compensated",)),
    e.RunCompensationFailed: Fields(kept=("steps", "not_compensated")),
    e.VarsSet: Fields(payload=("vars",), used=("vars",)),
    e.DecisionRecorded: Fields(payload=("decision", "reason", "alternatives", "details"), kept=("step",)),
    e.ActionRecorded: Fields(payload=("description", "output", "details"), kept=("step",)),
    e.StepCarried: Fields(payload=("output",), kept=("step", "checks"), used=("output",)),
    e.StepOpened: Fields(payload=("values",), kept=("step",), used=("values",)),
    e.RoundStarted: _STEP,
    e.StepHandedOut: Fields(kept=("step", "agent")),
    e.OutputRefused: Fields(payload=("findings", "output"), kept=("step", "evidence")),
    e.ApprovalRequested: Fields(
        payload=("text", "schema", "effects"),
        kept=("step", "digest", "by", "not_by"),
        used=("text", "schema", "effects"),
    ),
    e.ApprovalGiven: Fields(
        payload=("reason", "content"), kept=("step", "digest", "channel", "behalf"), used=("content",)
    ),
    e.ApprovalRejected: _ANSWER,
    e.ApprovalExpired: _STEP,
    e.ApprovalWithdrawn: Fields(kept=("step", "digest", "changed")),
    # A capture contains paths and digests: without them the step could not be undone.
    e.AttemptStarted: Fields(kept=("step", "capture")),
    e.AttemptFailed: _STEP_MESSAGE,
    e.AttemptLost: _STEP,
    e.AnswerCameLate: Fields(payload=("output", "message"), kept=("step",)),
    e.RetryScheduled: _STEP,
    e.StepDeferred: _STEP,
    e.StepCompleted: Fields(payload=("output", "findings"), kept=("step", "checks", "evidence"), used=("output",)),
    e.StepFailed: _STEP_MESSAGE,
    e.StepSkipped: _STEP_REASON,
    e.ApprovalOverridden: Fields(payload=("reason",), kept=("step", "digest", "channel")),
    e.StepCancelled: _STEP,
    e.StepBecameUncertain: _STEP,
    e.StepRetried: _STEP_REASON,
    e.StepAccepted: Fields(payload=("reason", "output"), kept=("step",), used=("output",)),
    e.UndoStarted: Fields(payload=("values",), kept=("step", "capture"), used=("values",)),
    e.UndoFailed: _STEP_MESSAGE,
    e.UndoLost: _STEP,
    e.UndoBecameUncertain: _STEP,
    e.StepCompensated: Fields(payload=("description", "details"), kept=("step",)),
    s.BreakerOpened: Fields(payload=("message",), kept=("server",)),
    s.BreakerProbed: Fields(kept=("server",)),
    s.BreakerClosed: Fields(kept=("server",)),
    # The name is also in the definition's text, which an erasure does not change.
    s.PlanSaved: Fields(payload=("note",), kept=("definition", "name", "pins", "project")),
    s.PlanRetired: _REASON,
    # The store's own stream records what was done to the journal: nothing in it can be erased.
    s.StoreCreated: Fields(kept=("store", "key")),
    s.NodeAdmitted: Fields(kept=("node", "key", "box", "by", "signature")),
    s.JournalAccepted: Fields(kept=("reason", "found")),
    s.StoreRestored: Fields(kept=("backup", "until")),
    s.PayloadErased: Fields(kept=("stream", "digest", "residue", "reason")),
    s.RunsArchived: Fields(kept=("archive", "digest", "reason")),
    s.RunsUnarchived: Fields(kept=("archive", "runs", "reason")),
    s.ArchivedRunsDeleted: Fields(kept=("archive", "runs", "reason", "remains", "digest")),
}


def residue(event: e.Event) -> e.Event:
    """The same event without its content; fields that replay needs stay, and empty fields stay empty."""
    payload = FIELDS[type(event)].payload
    return replace(event, **{name: _blank(getattr(event, name)) for name in payload})


def erasable(event: e.Event) -> tuple[str, ...]:
    """The fields that an erasure of this event would empty."""
    left = residue(event)
    return tuple(name for name in FIELDS[type(event)].payload if getattr(event, name) != getattr(left, name))


def used_later(event: e.Event) -> tuple[str, ...]:
    """Those of the fields that an erasure of this event would empty, and that an open run may still need."""
    used = FIELDS[type(event)].used
    return tuple(name for name in erasable(event) if name in used)


def _blank(value: Any) -> Any:
    match value:
        case str():
            return ERASED_TEXT if value else ""
        case tuple():
            return ()
        case None:
            return None
        case Mapping():
            return ERASED_VALUE if value else {}
        case _:
            return ERASED_VALUE
