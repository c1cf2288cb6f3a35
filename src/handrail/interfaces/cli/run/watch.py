"""Watching a run: a live view in a terminal, one line for each event elsewhere.

Polls the store, so it does not matter which process executes the run."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from handrail.domain.instant import instant_text
from handrail.domain.journal.event import Entry
from handrail.domain.run.status import STEP_QUIET, StepStatus
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import Detail, Status
from handrail.engine.reading.step_view import LiveState, StepView
from handrail.engine.stream_pages import entries_of
from handrail.foundation.visible_text import visible_line
from handrail.interfaces.cli.run.story import sentence, timed_line
from handrail.interfaces.cli.run.view import (
    COLOR_OF_RUN,
    COLOR_OF_STEP,
    depth_of,
    icon_of,
    note_on,
    progress_words,
    spent_words,
)
from handrail.interfaces.cli.words.live_console import LiveConsole
from handrail.interfaces.cli.words.table import Column, elided, has_unicode, placed
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.words.times import time_format

POLL_S: Final = 0.1
REDRAW_S: Final = 0.5
"""How often the view is redrawn when only time has passed."""
REST: Final = 5
"""After a poll, the pause is this many times as long as the poll took."""
EVENTS_SHOWN: Final = 5
ROWS_RESERVED: Final = EVENTS_SHOWN + 6
"""Lines of the terminal that the list of steps leaves for the rest of the view."""
# Without titles: the values explain themselves. The note is last because the last column shrinks.
COLUMNS: Final = (Column(""), Column(""), Column("", 1), Column("", 2), Column(""))
NOTE: Final = len(COLUMNS) - 1

ReadWithin: TypeAlias = Callable[[], LiveState]
"""Reads what a worker in this process knows about a run beyond the journal."""


class RunViewer(Protocol):
    """Shows a run to a person."""

    async def show(self, run_reader: RunReader, run_id: str, entries: Sequence[Entry]) -> None:
        """Show the run's status, and its new events."""


class LineView:
    """One line for each event, each once."""

    def __init__(self, *, err: bool, indent: str = "") -> None:
        self.err = err
        self.indent = indent

    async def show(self, run_reader: RunReader, run_id: str, entries: Sequence[Entry]) -> None:
        """Print the new events."""
        for entry in entries:
            say(self.indent + timed_line(entry), err=self.err)


class LiveView:
    """A live view of the run."""

    def __init__(self, live: Live, *, unicode: bool, within: ReadWithin) -> None:
        self.live = live
        self.unicode = unicode
        self.within = within
        self.latest: list[Entry] = []

    async def show(self, run_reader: RunReader, run_id: str, entries: Sequence[Entry]) -> None:
        """Redraw it."""
        self.latest = [*self.latest, *entries][-EVENTS_SHOWN:]
        status = await run_reader.status(run_id, detail=Detail.FULL, within=self.within())
        self.live.update(self.drawn(status), refresh=True)

    def drawn(self, status: Status) -> Group:
        """The whole view."""
        room = max(5, self.live.console.height - ROWS_RESERVED)
        steps, hidden = shortened(status.steps, room)
        parts: list[Any] = [self._head(status), *self._lines(steps)]
        if hidden:
            parts.append(Text(f"  and {hidden} more", style="dim"))
        total = max(1, status.progress.total)
        bar = Table.grid()
        bar.add_row(
            ProgressBar(
                total=total, completed=status.progress.done, width=40, complete_style="cyan", finished_style="green"
            )
        )
        parts.append(bar)
        width = self.live.console.width
        parts += [
            Text(elided(f"  {visible_line(sentence(entry))}", width, self._ellipsis), style="dim")
            for entry in self.latest
        ]
        return Group(*parts)

    def _head(self, status: Status) -> Text:
        color = COLOR_OF_RUN.get(status.status, "cyan")
        head = Text(f"{status.run}  {status.workflow}  ")
        head.append(status.status.value, style=f"bold {color}")
        return head.append(f"  {progress_words(status.progress)}")

    @property
    def _ellipsis(self) -> str:
        return "…" if self.unicode else "..."

    def _lines(self, steps: Sequence[StepView]) -> Iterator[Text]:
        """The steps, one line each. Names and states are never cut; the note gets the rest of the width."""
        rows = [self._row(step) for step in steps]
        _, *laid_out = placed(COLUMNS, rows, width=self.live.console.width, unicode=self.unicode)
        for step, lines in zip(steps, laid_out, strict=True):
            color = COLOR_OF_STEP.get(step.status, "dim")
            for line in lines:
                if line[0].column != NOTE:  # a note that does not fit beside its step is left out
                    pieces = [(cell.text, "dim" if cell.column == NOTE else color) for cell in line]
                    yield Text.assemble(*pieces, overflow="fold")

    def _row(self, step: StepView) -> tuple[str, ...]:
        shown = time_format()
        now = instant_text(shown.now) if step.status is StepStatus.RUNNING else ""
        name = f"{icon_of(step.status, unicode=self.unicode)} {'  ' * depth_of(step.id)}{visible_line(step.id)}"
        tries = f"try {step.attempts}" if step.attempts > 1 else ""
        return name, step.status.value, spent_words(step, now), tries, visible_line(note_on(step, shown))


def shortened(steps: Sequence[StepView], room: int) -> tuple[Sequence[StepView], int]:
    """As many steps as there is room for: the active ones, and those around them."""
    if len(steps) <= room:
        return steps, 0
    active = [index for index, step in enumerate(steps) if step.status not in STEP_QUIET]
    # Where something happens now; once all is over, the last step that has ended.
    middle = active[0] if active else max((i for i, step in enumerate(steps) if step.ended), default=0)
    start = min(max(0, middle - room // 3), len(steps) - room)
    return steps[start : start + room], len(steps) - room


@contextlib.contextmanager
def run_viewer(*, err: bool, within: ReadWithin = LiveState) -> Iterator[RunViewer]:
    """A live view where there is a terminal, else lines; on stderr when stdout is for data."""
    stream = sys.stderr if err else sys.stdout
    if not stream.isatty():
        yield LineView(err=err)
        return
    unicode = has_unicode()  # read before the live view replaces stdout
    with Live(console=LiveConsole(stderr=err), auto_refresh=False) as live:
        yield LiveView(live, unicode=unicode, within=within)


async def watch(
    run_reader: RunReader, run_id: str, shown: RunViewer, until: asyncio.Future[Any], *, after: int = 0
) -> None:
    """Show a run until `until` is done; its events from after the number `after`."""
    loop = asyncio.get_running_loop()
    seen, drawn_s = after, float("-inf")
    while True:
        # Read before the events: what is written in between is shown by the next, last round.
        is_over = until.done()
        started_s = loop.time()
        entries = await entries_of(run_reader.store, run_id, after=seen)
        if entries or is_over or started_s - drawn_s > REDRAW_S:
            seen, drawn_s = entries[-1].n if entries else seen, started_s
            await shown.show(run_reader, run_id, entries)
        if is_over:
            return
        # A view of thousands of steps takes a while to compute: it must not slow down the run itself.
        await asyncio.wait({until}, timeout=max(POLL_S, REST * (loop.time() - started_s)))
