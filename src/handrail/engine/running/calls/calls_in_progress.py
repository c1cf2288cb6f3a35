"""The calls of one run that are in progress here, and the latest progress message of each.

Async. What a call does is in attempt.py; which calls start is decided by the conductor (conductor.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final

from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_OPEN, STEP_UNENDED, RunStatus, StepStatus
from handrail.domain.run.step_path import UNDO

PROGRESS_LENGTH_MAX: Final = 200


class CallsInProgress:
    """Calls by name: those of steps by path, those of undos by path with `!undo`."""

    def __init__(self) -> None:
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.progress: dict[str, str] = {}
        """The latest progress message of each call."""

    def __len__(self) -> int:
        return len(self.tasks)

    def start(self, name: str, work: Coroutine[None, None, None], *, on_end: Callable[[], None]) -> None:
        """Make a call beside others; `on_end` is called when it has ended in any way."""

        def ended(_: asyncio.Task[None]) -> None:
            self.tasks.pop(name, None)
            self.progress.pop(name, None)
            on_end()

        task = self.tasks[name] = asyncio.get_running_loop().create_task(work)
        # Not at the end of the task itself: a task that is cancelled before it starts never gets there.
        task.add_done_callback(ended)

    def note_progress(self, name: str, message: str) -> None:
        """Note what a tool has said about a call."""
        self.progress[name] = message[:PROGRESS_LENGTH_MAX]

    def cancel_stopped(self, run: Run) -> None:
        """Cancel the calls of steps that were stopped with their run, or are being undone."""
        if run.status in RUN_OPEN:
            return
        for name, task in self.tasks.items():
            if not name.endswith(UNDO) and _is_stopped(run, run.step(name).status):
                task.cancel()


def _is_stopped(run: Run, status: StepStatus) -> bool:
    if run.status is RunStatus.COMPENSATING:
        return status not in STEP_UNENDED
    # Another worker may have completed it meanwhile: then the answer here is late, and is journaled as such.
    return status is not StepStatus.COMPLETED
