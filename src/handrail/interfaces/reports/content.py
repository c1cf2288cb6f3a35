"""What a report says, whichever its format: everything about one run, and what verifying its journal found.

Values, and one function that reads them. Each format has its own file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from handrail.assembly.opening import StoreReader
from handrail.domain.definition.model import Definition, Kind
from handrail.domain.history.story import StoryKind
from handrail.domain.instant import instant_text
from handrail.domain.policy.actor import ActorKind, kind_of
from handrail.domain.run.status import STEP_WAS_DONE
from handrail.domain.secrets.scrubbing import SecretScrubber
from handrail.engine.proving.audit import AuditResult
from handrail.engine.reading.check_view import JudgedOutput
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import Detail, Status
from handrail.engine.reading.step_view import StepView
from handrail.engine.reading.story_view import RunStory, StoryLine
from handrail.engine.reading.time_view import RunTimeline

StructT = TypeVar("StructT", bound=Struct)

SPANS_DRAWN: Final = 4_000
WITHOUT_CHECK: Final[Mapping[Kind, str]] = {Kind.TOOL: "executed", Kind.APPROVE: "approved"}
"""What is known of a step that is done and that no check looked at."""
HUMAN: Final = frozenset({StoryKind.APPROVAL, StoryKind.DECISION, StoryKind.CONTROL, StoryKind.ACTION})
UNDO_CHOSEN: Final = "compensation_started"
STATE_WORDS: Final[Mapping[str, str]] = {
    "compensating": "undoing",
    "compensated": "undone",
    "compensation_failed": "undo failed",
    "failed": "failed permanently",
    "pending": "not started",
    "uncertain": "outcome unknown",
}
"""States whose word for people is another; as in the console."""


class ReportContent(Struct, frozen=True, kw_only=True):
    """Everything about one run."""

    status: Status
    name: str
    definition: Definition
    definition_hash: str
    story: RunStory
    timeline: RunTimeline
    evidence: tuple[tuple[str, JudgedOutput], ...]
    """By step: the latest output that went through checks."""
    verified: AuditResult
    made: str
    """When the report was made."""

    @property
    def decisions(self) -> tuple[StoryLine, ...]:
        """What people and agents decided, and the answers to approvals."""
        return tuple(line for line in self.story.lines if line.kind in HUMAN or _is_chosen_undo(line))


def _is_chosen_undo(line: StoryLine) -> bool:
    """Whether somebody chose to undo the run; an undo by the plan's own policy is no decision."""
    return line.event == UNDO_CHOSEN and kind_of(line.actor) in {ActorKind.PERSON, ActorKind.AGENT}


async def report_content(look: StoreReader, reader: RunReader, run_id: str) -> ReportContent:
    """Read everything that a report says of a run; NotFound if there is none."""
    run = await reader.run(run_id)
    definition = await reader.definition(run)
    return ReportContent(
        status=await reader.status(run_id, detail=Detail.FULL),
        name=definition.name or definition.id,
        definition=definition,
        definition_hash=run.definition,
        story=await reader.story(run_id),
        timeline=await reader.timeline(run_id, at_most=SPANS_DRAWN),
        evidence=await reader.evidence(run_id),
        verified=await look.verify(stream=run_id),
        made=instant_text(reader.clock()),
    )


def clean_content(seen: ReportContent, scrubber: SecretScrubber) -> ReportContent:
    """The same without secrets, also those of events from before they were stored: a report is made to be shown."""
    if not scrubber:
        return seen
    return replace(
        seen,
        name=scrubber.text(seen.name),
        status=_clean(seen.status, scrubber),
        story=_clean(seen.story, scrubber),
        timeline=_clean(seen.timeline, scrubber),
        evidence=tuple((step, _clean(judged, scrubber)) for step, judged in seen.evidence),
    )


def _clean(value: StructT, scrubber: SecretScrubber) -> StructT:
    return msgspec.convert(scrubber.value(msgspec.to_builtins(value)), type(value))


def state_word(state: str) -> str:
    """A state as people say it."""
    return STATE_WORDS.get(state, state.replace("_", " "))


def tries_of(step: StepView) -> int:
    """How often a step was tried: calls of its tool, or submissions, of which the last may have been accepted."""
    if step.kind is Kind.PROMPT:
        return step.refused + (step.status in STEP_WAS_DONE)
    return step.attempts


def known_by(step: StepView) -> str:
    """How it is known that a step is done, and what became of it."""
    undone = {"": "", "none": "NOT undone"}.get(step.compensation, f"undone: {step.compensation}")
    how = step.proof or (WITHOUT_CHECK.get(step.kind, "") if step.status in STEP_WAS_DONE else "")
    return ", ".join(filter(None, (how, *step.checks, undone)))
