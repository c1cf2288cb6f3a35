"""A run as a story for readers, and why it is where it is. Pure functions; times are RFC 3339."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from handrail.domain.definition.model import Definition
from handrail.domain.history.story import StoryEntry, StoryFold, StoryKind
from handrail.domain.history.why import WhyKind, step_names, why_of
from handrail.domain.instant import instant_text
from handrail.domain.run.state import Run
from handrail.engine.reading.step_view import Shown

LINES_MAX: Final = 5_000
WHY_MAX: Final = 20
WORDS_LENGTH_MAX: Final = 2_000


class StoryLine(Shown, frozen=True):
    """One entry of a story, with the numbers of the journal entries that it tells of."""

    kind: StoryKind
    first: int
    last: int
    at: str
    text: str
    event: str = ""
    """The kind of the event that it is about; empty for what is routine."""
    until: str = ""
    actor: str = ""
    step: str = ""
    words: str = ""
    """What a person or an agent wrote, or what a tool said."""
    notes: tuple[str, ...] = ()
    """Further sentences: which steps needed more than one try."""
    facts: Mapping[str, str] = {}


class WhyLine(Shown, frozen=True):
    """One line of why a run is where it is, and the journal entry that it comes from."""

    kind: WhyKind
    lead: str
    words: str = ""
    """What a tool said, or a person wrote."""
    note: str = ""
    n: int = 0
    step: str = ""
    until: str = ""

    @property
    def text(self) -> str:
        """All of it as one sentence."""
        said = " ".join(filter(None, (self.lead, self.words, f"({self.note})" if self.note else "")))
        return said if said.endswith((".", "?", "!")) else f"{said}."


class RunStory(Shown, frozen=True):
    """A run as a story."""

    run: str
    n: int
    """The number of the last entry in it."""
    why: tuple[WhyLine, ...] = ()
    lines: tuple[StoryLine, ...] = ()
    left_out: int = 0
    """How many of the first lines are left out."""
    subjects: Mapping[str, int] = {}
    """How many entries of the journal are about decisions, failures and undo."""
    actors: Mapping[str, int] = {}
    """How many entries each person and agent made."""


def run_story(run: Run, definition: Definition, fold: StoryFold) -> RunStory:
    """The story of a run by its events."""
    story = fold.story(step_names(run, definition))
    return RunStory(
        run=run.id,
        n=fold.n,
        why=why_lines(run, definition, fold),
        lines=tuple(map(_line, story[-LINES_MAX:])),
        left_out=max(0, len(story) - LINES_MAX),
        subjects={subject.value: number for subject, number in fold.subjects.items()},
        actors=dict(fold.actors.most_common()),
    )


def why_lines(run: Run, definition: Definition, fold: StoryFold) -> tuple[WhyLine, ...]:
    """Why a run is where it is."""
    return tuple(
        WhyLine(
            kind=one.kind,
            lead=one.lead,
            words=one.words[:WORDS_LENGTH_MAX],
            note=one.note,
            n=one.n,
            step=one.step,
            until=instant_text(one.until) if one.until else "",
        )
        for one in why_of(run, definition, fold.noted)[:WHY_MAX]
    )


def _line(one: StoryEntry) -> StoryLine:
    return StoryLine(
        kind=one.kind,
        first=one.first,
        last=one.last,
        at=instant_text(one.at),
        text=one.text,
        event=one.event,
        until=instant_text(one.until) if one.until != one.at else "",
        actor=one.actor,
        step=one.step,
        words=one.words[:WORDS_LENGTH_MAX],
        notes=one.notes,
        facts=one.facts,
    )
