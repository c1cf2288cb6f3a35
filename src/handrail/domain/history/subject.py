"""What events are about, for readers who look for one sort of them: decisions, failures, undo. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from handrail.domain.journal import event as e
from handrail.domain.journal.codec import KINDS


class EventSubject(StrEnum):
    """What an event is about."""

    DECISIONS = "decisions"
    """What people and agents decided, and the answers to approvals."""
    FAILURES = "failures"
    """What failed, was refused or was tried again."""
    UNDO = "undo"


ABOUT: Final[Mapping[EventSubject, frozenset[type[Any]]]] = {
    EventSubject.DECISIONS: frozenset(
        {
            e.DecisionRecorded,
            e.ApprovalRequested,
            e.ApprovalGiven,
            e.ApprovalRejected,
            e.ApprovalOverridden,
            e.ApprovalExpired,
            e.ApprovalWithdrawn,
            e.RunPaused,
            e.RunResumed,
            e.RunCancelled,
            e.StepRetried,
            e.StepSkipped,
            e.StepAccepted,
            e.CompensationStarted,
        }
    ),
    EventSubject.FAILURES: frozenset(
        {
            e.AttemptFailed,
            e.RetryScheduled,
            e.StepFailed,
            e.RunFailed,
            e.OutputRefused,
            e.AttemptLost,
            e.StepBecameUncertain,
            e.UndoFailed,
            e.UndoLost,
            e.UndoBecameUncertain,
            e.RunCompensationFailed,
        }
    ),
    EventSubject.UNDO: frozenset(
        {
            e.CompensationStarted,
            e.UndoStarted,
            e.UndoFailed,
            e.UndoLost,
            e.UndoBecameUncertain,
            e.StepCompensated,
            e.RunCompensated,
            e.RunCompensationFailed,
        }
    ),
}


def kinds_about(subject: EventSubject) -> frozenset[str]:
    """The kinds of events about a subject, by the names that the journal has for them."""
    return frozenset(kind for kind, event in KINDS.items() if event in ABOUT[subject])
