"""Notifies waiting callers when a run has changed, so that they need not poll.

Async. Changes made by other processes are only found by reading again, so waits are short."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from handrail.domain.run.state import Run
from handrail.engine.dispatch import Dispatch

LOOK_S: Final = 0.2
"""The longest wait before reading again: another process may have written."""


@dataclass(frozen=True)
class ChangeSubscription:
    """Receives every change of one run from the moment it was created."""

    heard: asyncio.Event = field(default_factory=asyncio.Event)

    async def next_change(self, *, within_s: float) -> None:
        """Wait until the run has changed since the last wait, at most `within_s` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(within_s, LOOK_S))):  # not wait_for, which can lose a cancellation
                await self.heard.wait()
        # After waking: what happens while the caller reads must wake it again.
        self.heard.clear()


@dataclass
class ChangeNotifier:
    """Lets callers wait for the next change of a run."""

    dispatch: Dispatch
    _ears: dict[str, list[ChangeSubscription]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dispatch.watchers.append(self._ring)

    @contextlib.contextmanager
    def listening(self, run_id: str) -> Iterator[ChangeSubscription]:
        """A subscription to a run. Subscribe first, then read the run, so that no change is missed in between."""
        ear = ChangeSubscription()
        self._ears.setdefault(run_id, []).append(ear)
        try:
            yield ear
        finally:
            self._ears[run_id].remove(ear)
            if not self._ears[run_id]:
                del self._ears[run_id]

    def _ring(self, run: Run, *_: object) -> None:
        for ear in self._ears.get(run.id, ()):
            ear.heard.set()
