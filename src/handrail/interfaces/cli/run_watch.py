"""Watching a run: a live picture in a terminal, one line for each event elsewhere.

Reads the store again and again, so it does not matter which process executes the run."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from handrail.domain.event import Entry
from handrail.domain.status import STEP_QUIET, StepStatus
from handrail.engine.clock import instant_text, system_clock
from handrail.engine.lookout import Lookout
from handrail.engine.step_view import StepView, Within
from handrail.engine.stream import entries_of
from handrail.engine.view import Detail, Status
from handrail.interfaces.cli.run_view import (
    COLOR_OF_RUN,
    COLOR_OF_STEP,
    depth_of,
    has_unicode,
    icon_of,
    note_on,
    progress_words,
    took,
)
from handrail.interfaces.cli.story import sentence, told

POLL_S: Final = 0.1
REDRAW_S: Final = 0.5
"""How often a picture is drawn anew when nothing has happened but time."""
REST: Final = 5
"""How many times as long as it took to look, nobody looks again."""
EVENTS_SHOWN: Final = 5
ROWS_SPARED: Final = EVENTS_SHOWN + 6
"""Lines of a terminal that the list of steps leaves to the rest."""

Looking: TypeAlias = Callable[[], Within]
"""What a worker of this process knows of a run, beside what the journal tells."""


class Onlooker(Protocol):
    """Somebody who is shown a run."""

    async def show(self, lookout: Lookout, run_id: str, entries: Sequence[Entry]) -> None:
        """Show where the run stands, and what has happened since the last time."""


class Lines:
    """One line for each event, each once."""

    def __init__(self, *, err: bool, indent: str = "") -> None:
        self.err = err
        self.indent = indent

    async def show(self, lookout: Lookout, run_id: str, entries: Sequence[Entry]) -> None:
        """Tell the new events."""
        for entry in entries:
            click.echo(self.indent + told(entry), err=self.err)


class Picture:
    """A live picture of the run."""

    def __init__(self, live: Live, *, unicode: bool, within: Looking) -> None:
        self.live = live
        self.unicode = unicode
        self.within = within
        self.latest: list[Entry] = []

    async def show(self, lookout: Lookout, run_id: str, entries: Sequence[Entry]) -> None:
        """Draw it anew."""
        self.latest = [*self.latest, *entries][-EVENTS_SHOWN:]
        status = await lookout.status(run_id, detail=Detail.FULL, within=self.within())
        self.live.update(self.drawn(status), refresh=True)

    def drawn(self, status: Status) -> Group:
        """The whole picture."""
        room = max(5, self.live.console.height - ROWS_SPARED)
        steps, hidden = shortened(status.steps, room)
        parts: list[Any] = [self._head(status), self._table(steps)]
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
        parts += [Text(f"  {sentence(entry)}"[: self.live.console.width], style="dim") for entry in self.latest]
        return Group(*parts)

    def _head(self, status: Status) -> Text:
        color = COLOR_OF_RUN.get(status.status, "cyan")
        head = Text(f"{status.run}  {status.workflow}  ")
        head.append(status.status.value, style=f"bold {color}")
        return head.append(f"  {progress_words(status.progress)}")

    def _table(self, steps: Sequence[StepView]) -> Table:
        now = instant_text(system_clock())
        table = Table.grid(padding=(0, 2))
        for _ in range(4):
            table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis" if self.unicode else "crop", ratio=1)
        for step in steps:
            color = COLOR_OF_STEP.get(step.status, "dim")
            name = f"{icon_of(step.status, unicode=self.unicode)} {'  ' * depth_of(step.id)}{step.id}"
            tries = f"try {step.attempts}" if step.attempts > 1 else ""
            cells = (name, step.status.value, took(step, now if step.status is StepStatus.RUNNING else ""), tries)
            table.add_row(*(Text(cell, style=color) for cell in cells), Text(note_on(step), style="dim"))
        return table


def shortened(steps: Sequence[StepView], room: int) -> tuple[Sequence[StepView], int]:
    """As many steps as there is room for: those that something happens to, and what stands around them."""
    if len(steps) <= room:
        return steps, 0
    lively = [index for index, step in enumerate(steps) if step.status not in STEP_QUIET]
    middle = lively[0] if lively else max((i for i, step in enumerate(steps) if step.ended), default=0)
    start = min(max(0, middle - room // 3), len(steps) - room)
    return steps[start : start + room], len(steps) - room


@contextlib.contextmanager
def onlooker(*, err: bool, within: Looking = Within) -> Iterator[Onlooker]:
    """A live picture where there is a terminal, else lines; on stderr when stdout is for data."""
    stream = sys.stderr if err else sys.stdout
    if not stream.isatty():
        yield Lines(err=err)
        return
    unicode = has_unicode()  # asked before the picture takes stdout over
    with Live(console=Console(stderr=err), auto_refresh=False) as live:
        yield Picture(live, unicode=unicode, within=within)


async def watch(lookout: Lookout, run_id: str, shown: Onlooker, until: asyncio.Future[Any], *, after: int = 0) -> None:
    """Show a run until something has ended, and what has happened since its event `after`."""
    loop = asyncio.get_running_loop()
    seen, drawn_s = after, float("-inf")
    while True:
        is_over = until.done()
        began_s = loop.time()
        entries = await entries_of(lookout.store, run_id, after=seen)
        if entries or is_over or began_s - drawn_s > REDRAW_S:
            seen, drawn_s = entries[-1].n if entries else seen, began_s
            await shown.show(lookout, run_id, entries)
        if is_over:
            return
        # A picture of thousands of steps takes a while: the run itself must not wait for it.
        await asyncio.wait({until}, timeout=max(POLL_S, REST * (loop.time() - began_s)))
