"""What a report says, whichever its format: everything about one run, and what verifying its journal found.

Values, and one function that reads them. Each format has its own file."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from handrail.assembly.opening import StoreReader
from handrail.domain.definition.model import Definition
from handrail.domain.history.story import StoryKind
from handrail.domain.instant import instant_text
from handrail.engine.proving.audit import AuditResult
from handrail.engine.reading.check_view import JudgedOutput
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import Detail, Status
from handrail.engine.reading.story_view import RunStory, StoryLine
from handrail.engine.reading.time_view import RunTimeline

SPANS_DRAWN: Final = 4_000
HUMAN: Final = frozenset({StoryKind.APPROVAL, StoryKind.DECISION, StoryKind.CONTROL, StoryKind.ACTION})


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
        return tuple(line for line in self.story.lines if line.kind in HUMAN)


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
