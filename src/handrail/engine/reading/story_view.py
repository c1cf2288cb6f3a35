"""A run as a story for readers, and why it is where it is. Pure functions; times are RFC 3339."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from handrail.domain.definition.model import Definition
from handrail.domain.history.story import StoryEntry, StoryKind, story_of
from handrail.domain.history.why import why_of
from handrail.domain.instant import instant_text
from handrail.domain.journal.event import Entry
from handrail.domain.run.state import Run
from handrail.engine.reading.step_view import Shown

LINES_MAX: Final = 5_000
WORDS_LENGTH_MAX: Final = 2_000


class StoryLine(Shown, frozen=True):
    """One entry of a story, with the numbers of the journal entries that it tells of."""

    kind: StoryKind
    first: int
    last: int
    at: str
    text: str
    until: str = ""
    actor: str = ""
    step: str = ""
    words: str = ""
    facts: Mapping[str, str] = {}


class WhyLine(Shown, frozen=True):
    """One sentence of why a run is where it is, and the journal entry that it comes from."""

    text: str
    n: int = 0


class RunStory(Shown, frozen=True):
    """A run as a story."""

    run: str
    n: int
    """The number of the last entry in it."""
    why: tuple[WhyLine, ...] = ()
    lines: tuple[StoryLine, ...] = ()
    left_out: int = 0
    """How many of the first lines are left out."""


def run_story(run: Run, definition: Definition, entries: Sequence[Entry]) -> RunStory:
    """The story of a run by its events."""
    story = story_of(entries)
    return RunStory(
        run=run.id,
        n=entries[-1].n if entries else 0,
        why=tuple(WhyLine(text=one.text, n=one.n) for one in why_of(run, definition, entries)),
        lines=tuple(map(_line, story[-LINES_MAX:])),
        left_out=max(0, len(story) - LINES_MAX),
    )


def _line(one: StoryEntry) -> StoryLine:
    return StoryLine(
        kind=one.kind,
        first=one.first,
        last=one.last,
        at=instant_text(one.at),
        text=one.text,
        until=instant_text(one.until) if one.until != one.at else "",
        actor=one.actor,
        step=one.step,
        words=one.words[:WORDS_LENGTH_MAX],
        facts=one.facts,
    )
