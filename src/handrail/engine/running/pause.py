"""The pause of a run after the store failed, or after another writer was first: each one longer than the last.

Async only in that it uses an alarm. Why a run pauses, and what it reads again afterwards, is in conductor.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from handrail.engine.running.alarm import Alarm

PAUSE_S_FIRST: Final = 0.1
PAUSE_S_MAX: Final = 5.0


class Pause:
    """Whether a run does nothing for now, and for how long it will the next time."""

    def __init__(self, alarm: Alarm) -> None:
        # The one alarm of the run: its timers need not ring during a pause, since it is read again afterwards.
        self._alarm = alarm
        self.is_on = False
        self.next_s = PAUSE_S_FIRST

    def start(self, then: Callable[[], None]) -> None:
        """Pause, and call back when it is over; the next pause is twice as long."""

        def end() -> None:
            self._alarm.clear()
            self.is_on = False
            then()

        self.is_on = True
        self._alarm.set(self.next_s, end)
        self.next_s = min(2 * self.next_s, PAUSE_S_MAX)

    def reset(self) -> None:
        """Start with short pauses again: something has succeeded."""
        self.next_s = PAUSE_S_FIRST
