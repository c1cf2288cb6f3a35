"""The desktop channel: a notification on this machine's screen, by the program that the system has for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from handrail.domain.notify.notice import Notice
from handrail.engine.notify.sender import NotSent
from handrail.foundation.program_search import programs_named
from handrail.tools.channels.command import run_program

WITHIN_S: Final = 10.0
TITLE: Final = "handrail"
BY_OSASCRIPT: Final = (
    "-e",
    "on run words",
    "-e",
    "display notification (item 1 of words) with title (item 2 of words)",
    "-e",
    "end run",
)


@dataclass(frozen=True)
class DesktopSender:
    """Shows notices."""

    folder: Path
    find: Callable[[str], Iterator[str]] = programs_named

    async def send(self, notice: Notice, *, now: int) -> None:
        """Return once it is shown; NotSent if it can't be."""
        await run_program(self._argv(notice.text), b"", folder=self.folder, within_s=WITHIN_S)

    async def close(self) -> None:
        """Nothing stays open."""

    def _argv(self, text: str) -> tuple[str, ...]:
        name = "osascript" if sys.platform == "darwin" else "notify-send"
        program = next(self.find(name), "")
        if not program:
            raise NotSent(f"this machine has no {name}, which shows notifications")
        if name == "osascript":
            return (program, *BY_OSASCRIPT, text, TITLE)
        # `--`: a text that starts with a hyphen is no option.
        return (program, "--app-name", TITLE, "--", TITLE, text)
