"""States of runs and steps, and the one table of legal moves that code, tests and docs read.

Pure values. The fold of events into states is run.py's, the refusal of illegal moves decide.py's."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class RunStatus(StrEnum):
    """What a run is doing. `waiting` is computed for readers, never stored."""

    NEW = "new"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    COMPENSATING = "compensating"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    COMPENSATED = "compensated"
    COMPENSATION_FAILED = "compensation_failed"


class StepStatus(StrEnum):
    """What a step is doing. `ready` is stored only after somebody decided to retry; else it is computed."""

    PENDING = "pending"
    READY = "ready"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    UNCERTAIN = "uncertain"
    COMPENSATING = "compensating"
    COMPENSATED = "compensated"
    COMPENSATION_FAILED = "compensation_failed"


RUN_MOVES: Final[Mapping[RunStatus, frozenset[RunStatus]]] = {
    RunStatus.NEW: frozenset({RunStatus.RUNNING}),
    RunStatus.RUNNING: frozenset(
        {RunStatus.PAUSED, RunStatus.COMPENSATING, RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED}
    ),
    RunStatus.WAITING: frozenset(),
    RunStatus.PAUSED: frozenset({RunStatus.RUNNING, RunStatus.COMPENSATING, RunStatus.CANCELLED}),
    RunStatus.COMPENSATING: frozenset({RunStatus.COMPENSATED, RunStatus.COMPENSATION_FAILED}),
    RunStatus.FAILED: frozenset({RunStatus.COMPENSATING}),  # what was done may still be undone, if asked
    RunStatus.CANCELLED: frozenset({RunStatus.COMPENSATING}),
    RunStatus.COMPENSATION_FAILED: frozenset({RunStatus.COMPENSATING, RunStatus.COMPENSATED}),
    RunStatus.COMPLETED: frozenset(),
    RunStatus.COMPENSATED: frozenset(),
}

_STEP_BEGINS: Final = frozenset({StepStatus.RUNNING, StepStatus.WAITING, StepStatus.SKIPPED, StepStatus.CANCELLED})

MOVES: Final[Mapping[StepStatus, frozenset[StepStatus]]] = {
    StepStatus.PENDING: _STEP_BEGINS | {StepStatus.COMPLETED},  # carried over into a fork
    StepStatus.READY: _STEP_BEGINS | {StepStatus.UNCERTAIN},  # stopped after a try was lost
    StepStatus.RUNNING: frozenset(
        {
            StepStatus.COMPLETED,
            StepStatus.FAILED,
            StepStatus.WAITING,  # for the retry timer
            StepStatus.READY,  # the try was lost, and may be repeated
            StepStatus.UNCERTAIN,
            StepStatus.CANCELLED,
        }
    ),
    StepStatus.WAITING: frozenset(
        {
            StepStatus.RUNNING,
            StepStatus.UNCERTAIN,  # stopped while a try that failed may have done something
            StepStatus.WAITING,  # handed out again, to the same agent or another
            StepStatus.READY,  # a person said what its tool wanted to know
            StepStatus.COMPLETED,
            StepStatus.FAILED,
            StepStatus.SKIPPED,
            StepStatus.CANCELLED,
        }
    ),
    StepStatus.FAILED: frozenset(
        {
            StepStatus.READY,
            StepStatus.SKIPPED,
            StepStatus.COMPENSATING,  # its tool did its work, and checks had something against it
            StepStatus.COMPENSATED,
        }
    ),
    StepStatus.UNCERTAIN: frozenset(
        {
            StepStatus.READY,
            StepStatus.COMPLETED,  # accepted
            StepStatus.SKIPPED,
            StepStatus.COMPENSATING,
            StepStatus.COMPENSATED,  # by hand
        }
    ),
    StepStatus.COMPLETED: frozenset({StepStatus.COMPENSATING, StepStatus.COMPENSATED}),
    StepStatus.COMPENSATING: frozenset({StepStatus.COMPENSATED, StepStatus.COMPENSATION_FAILED}),
    StepStatus.COMPENSATION_FAILED: frozenset(
        {
            StepStatus.COMPENSATING,
            StepStatus.COMPENSATED,
            StepStatus.SKIPPED,  # somebody gave up on undoing it; it is listed as not compensated
        }
    ),
    StepStatus.SKIPPED: frozenset(),
    StepStatus.CANCELLED: frozenset(),
    StepStatus.COMPENSATED: frozenset(),
}

SATISFIED: Final = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED})
"""What a step must be for those after it to start."""
