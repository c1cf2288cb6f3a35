"""A run as it was after one of its events: the same fold as ever, which stops there.

Async only to read the events, page by page; nothing is written."""

from __future__ import annotations

from msgspec import Struct

from handrail.domain.definition.model import Definition
from handrail.domain.errors import NotFound
from handrail.domain.history.spans import SpanFold
from handrail.domain.history.story import StoryFold
from handrail.domain.history.why import step_names
from handrail.domain.instant import instant_text
from handrail.domain.journal.chain import Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.run.state import Run, replay
from handrail.engine.journal import Journal
from handrail.engine.reading.agenda_cache import WatchedRuns
from handrail.engine.reading.step_view import Shown
from handrail.engine.stream_pages import pages_of


class AsOf(Shown, frozen=True):
    """Which event of a run a view stops at."""

    n: int
    of: int
    """How many events the run has by now."""
    at: str
    text: str
    """What happened then, in words."""
    kind: str
    actor: str
    step: str = ""


class PastRun(Struct, frozen=True):
    """A run after one of its events."""

    run: Run
    definition: Definition
    spans: SpanFold
    story: StoryFold
    as_of: AsOf
    now: int
    """When that was."""


async def past_run(journal: Journal, runs: WatchedRuns, run_id: str, n: int) -> PastRun:
    """A run after its event `n`; NotFound if it does not have so many."""
    newest = await runs.current(run_id)
    last = await journal.read(run_id, after=n - 1, limit=1) if 1 <= n <= newest.n else []
    if not last:
        raise NotFound(f"{run_id} has no event {n}", hint=f"it has {newest.n}, counted from 1")
    run, spans, story = Run(id=run_id), SpanFold(), StoryFold()
    async for page in pages_of(journal, run_id):
        entries = [entry_of(record) for record in page if record.n <= n]
        run = replay(entries, run)
        for entry in entries:
            spans.take(entry)
            story.take(entry)
        if run.n == n:
            break
    definition = await runs.definition(run.definition)
    text = story.latest(step_names(run, definition))
    return PastRun(run, definition, spans, story, _as_of(last[0], newest.n, text), last[0].at)


def _as_of(record: Record, of: int, text: str) -> AsOf:
    return AsOf(
        n=record.n,
        of=of,
        at=instant_text(record.at),
        text=text,
        kind=record.kind,
        actor=record.actor,
        step=record.step or "",
    )
