"""States of runs and steps, and the one table of legal moves that code, tests and docs read.

Pure values. run.py replays events into states; guard.py refuses illegal moves."""

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
    """What a step is doing. `ready` is stored only after someone decided to retry; otherwise it is computed."""

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


RUN_MEANINGS: Final[Mapping[RunStatus, str]] = {
    RunStatus.NEW: "nothing has happened yet; no reader ever sees it",
    RunStatus.RUNNING: "the engine works on its steps, or could",
    RunStatus.WAITING: "only an agent or a person can move it on; shown instead of `running`, never stored",
    RunStatus.PAUSED: "what has started may end, nothing new starts",
    RunStatus.COMPENSATING: "what was done is being undone, newest first",
    RunStatus.COMPLETED: "every step is completed or skipped",
    RunStatus.FAILED: "a step failed and the policy was to stop, or the deadline has passed; what was done stays",
    RunStatus.CANCELLED: "someone ended it early; what was done stays",
    RunStatus.COMPENSATED: "everything that can be undone is undone; what can't be is named",
    RunStatus.COMPENSATION_FAILED: "an undo failed; all that is not undone is named, and someone must decide",
}
STEP_MEANINGS: Final[Mapping[StepStatus, str]] = {
    StepStatus.PENDING: "steps before it are not over yet, or it has not been started",
    StepStatus.READY: "it can start now",
    StepStatus.RUNNING: "an attempt is running, or the steps inside it are",
    StepStatus.WAITING: "for an agent, a person's answer, or the time of the next attempt",
    StepStatus.COMPLETED: "its work is done and its output known",
    StepStatus.FAILED: "no further attempt is made unless someone asks for one",
    StepStatus.SKIPPED: "it was left out; steps after it go on",
    StepStatus.CANCELLED: "it was stopped together with its run",
    StepStatus.UNCERTAIN: "an attempt, or its undo, started and whether it happened is unknown; someone must decide",
    StepStatus.COMPENSATING: "it is being undone",
    StepStatus.COMPENSATED: "it is undone",
    StepStatus.COMPENSATION_FAILED: "its undo failed; its effect is still there",
}
"""What each state means to a reader; the reference prints these."""

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

_STEP_STARTS: Final = frozenset({StepStatus.RUNNING, StepStatus.WAITING, StepStatus.SKIPPED, StepStatus.CANCELLED})

MOVES: Final[Mapping[StepStatus, frozenset[StepStatus]]] = {
    StepStatus.PENDING: _STEP_STARTS | {StepStatus.COMPLETED},  # carried over into a fork
    StepStatus.READY: _STEP_STARTS | {StepStatus.UNCERTAIN},  # stopped after an attempt was lost
    StepStatus.RUNNING: frozenset(
        {
            StepStatus.COMPLETED,
            StepStatus.FAILED,
            StepStatus.WAITING,  # for the retry timer
            StepStatus.READY,  # the attempt was lost, and may be repeated
            StepStatus.UNCERTAIN,
            StepStatus.CANCELLED,
        }
    ),
    StepStatus.WAITING: frozenset(
        {
            StepStatus.RUNNING,
            StepStatus.UNCERTAIN,  # stopped after a failed attempt that may have had an effect
            StepStatus.WAITING,  # assigned again, to the same agent or another
            StepStatus.READY,  # a person answered its tool's question
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
            StepStatus.COMPENSATING,  # its tool did its work, but the result failed the checks
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
    StepStatus.COMPLETED: frozenset(
        {
            StepStatus.COMPENSATING,
            StepStatus.COMPENSATED,
            StepStatus.READY,  # an approval was withdrawn, because a value that it used has changed
        }
    ),
    StepStatus.COMPENSATING: frozenset(
        {
            StepStatus.COMPENSATED,
            StepStatus.COMPENSATION_FAILED,
            StepStatus.UNCERTAIN,  # its undo was lost, and may not be repeated
        }
    ),
    StepStatus.COMPENSATION_FAILED: frozenset(
        {
            StepStatus.COMPENSATING,
            StepStatus.COMPENSATED,
            StepStatus.SKIPPED,  # someone gave up on undoing it; it is listed as not compensated
        }
    ),
    StepStatus.SKIPPED: frozenset(),
    StepStatus.CANCELLED: frozenset(),
    StepStatus.COMPENSATED: frozenset(),
}

# --- named sets of states: use these instead of comparing with several states elsewhere ------------------

RUN_ENDED: Final = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.COMPENSATED})
"""Nothing more happens unless someone asks for it."""
RUN_STOPPED: Final = RUN_ENDED | {RunStatus.COMPENSATION_FAILED}
"""Ended, or nothing goes on before somebody decides."""
RUN_FINAL: Final = frozenset({RunStatus.COMPLETED, RunStatus.COMPENSATED})
"""No further move is legal, not even on request."""
RUN_UNENDED: Final = frozenset(
    {RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.COMPENSATING, RunStatus.COMPENSATION_FAILED}
)
"""Started and not ended: something is left to do or to decide."""
RUN_OPEN: Final = frozenset({RunStatus.RUNNING, RunStatus.PAUSED})
"""Its steps may be worked on: what has started may end, also while the run is paused."""
RUN_WORKING: Final = frozenset({RunStatus.RUNNING, RunStatus.COMPENSATING})
"""The engine works on it by itself, forwards or undoing."""
RUN_IN_PROGRESS: Final = RUN_OPEN | RUN_WORKING
"""It is working, or paused and will work again."""
RUN_SHOWN_OPEN: Final = RUN_UNENDED | {RunStatus.WAITING}
"""Not ended, in shown states, which include `waiting`."""
RUN_SHOWN_ASKING: Final = RUN_IN_PROGRESS | {RunStatus.WAITING}
"""A person may be asked for an approval in it, in shown states."""
RUN_UNDOING: Final = frozenset({RunStatus.COMPENSATING, RunStatus.COMPENSATED, RunStatus.COMPENSATION_FAILED})
"""Its work is being undone, was undone, or could not all be undone."""
RUN_ENDED_BADLY: Final = frozenset({RunStatus.FAILED, RunStatus.COMPENSATION_FAILED})
"""Ended, and somebody should look."""
RUN_BROKEN_OFF: Final = RUN_UNDOING | {RunStatus.FAILED, RunStatus.CANCELLED}
"""It stopped before all of its steps were done, and will not go on with them."""
RUN_WITH_REASON: Final = RUN_BROKEN_OFF | {RunStatus.PAUSED}
"""Why it is in this state is worth showing."""

STEP_SATISFIED: Final = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED})
"""Steps after it may start."""
STEP_NOT_STARTED: Final = frozenset({StepStatus.PENDING, StepStatus.READY})
"""It never started, or is to start again."""
STEP_EXECUTING: Final = frozenset({StepStatus.RUNNING, StepStatus.COMPENSATING})
"""Its work or its undo is being executed."""
STEP_UNDER_WAY: Final = frozenset({StepStatus.RUNNING, StepStatus.WAITING})
"""It is being worked on, or waits for an answer or a timer."""
STEP_UNENDED: Final = STEP_NOT_STARTED | STEP_UNDER_WAY
"""It has not ended yet."""
STEP_ENDED: Final = STEP_SATISFIED | {StepStatus.FAILED, StepStatus.CANCELLED, StepStatus.COMPENSATED}
"""It has ended with a known result."""
STEP_STUCK: Final = frozenset({StepStatus.FAILED, StepStatus.UNCERTAIN})
"""Its work went wrong, and it does not go on before somebody has it retried."""
STEP_STOPPED: Final = STEP_SATISFIED | STEP_STUCK | {StepStatus.CANCELLED}
"""Its work does not go on by itself: it is done, left out, cancelled or stuck."""
STEP_BETWEEN_ATTEMPTS: Final = frozenset({StepStatus.READY, StepStatus.WAITING})
"""No attempt is running, but an earlier one may have been lost or may have failed."""
STEP_ANSWERED: Final = frozenset({StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.WAITING})
"""The state of a step after a call's answer: done, failed, or waiting for the next attempt."""
STEP_MOVING: Final = STEP_BETWEEN_ATTEMPTS | {StepStatus.RUNNING, StepStatus.UNCERTAIN}
"""It started and may still move, by itself or by someone's decision."""
STEP_TRACKED: Final = STEP_UNDER_WAY | {StepStatus.UNCERTAIN, StepStatus.FAILED}
"""The agenda must include it even before the list of steps that it is in is open."""
STEP_REPORT_DUE: Final = frozenset({StepStatus.RUNNING, StepStatus.FAILED})
"""In a run that is only recorded: started, and its agent has not reported it as done."""
STEP_SUBMITTABLE: Final = STEP_BETWEEN_ATTEMPTS | {StepStatus.PENDING, StepStatus.FAILED}
"""Its output can be submitted, also after it failed."""
STEP_RETRIABLE: Final = frozenset({StepStatus.FAILED, StepStatus.UNCERTAIN})
"""Somebody may decide that it is tried again."""
STEP_HALF_DONE: Final = STEP_RETRIABLE
"""It may have had its effect, or a part of it: that is not known."""
STEP_IN_TROUBLE: Final = frozenset({StepStatus.FAILED, StepStatus.UNCERTAIN, StepStatus.COMPENSATION_FAILED})
"""It needs a decision: retry, skip, accept or undo."""
STEP_STANDING: Final = frozenset({StepStatus.WAITING, StepStatus.COMPLETED})
"""Of an approval: it waits for an answer, or was given."""
STEP_MAY_START: Final = STEP_UNENDED | STEP_IN_TROUBLE - {StepStatus.COMPENSATION_FAILED}
"""It may still start, or be tried again."""
STEP_ACTED: Final = frozenset({StepStatus.COMPLETED, StepStatus.UNCERTAIN})
"""It has had its effect, or may have."""
STEP_UNDOABLE: Final = STEP_ACTED | {StepStatus.COMPENSATING, StepStatus.COMPENSATION_FAILED}
"""It has had its effect, or may have, and is not undone yet."""
STEP_UNDO_STARTED: Final = frozenset({StepStatus.COMPENSATING, StepStatus.COMPENSATION_FAILED})
"""Its undo was tried, and it is not undone."""
STEP_WAS_DONE: Final = STEP_UNDO_STARTED | {StepStatus.COMPLETED, StepStatus.COMPENSATED}
"""Its work was done, whatever became of it then."""
STEP_QUIET: Final = STEP_SATISFIED | {StepStatus.PENDING}
"""Nothing happens on it now; a short view can leave it out."""
