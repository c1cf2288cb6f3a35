"""Questions: what a rehearsed run waits for, and what may be answered. Values only; who answers stands elsewhere."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from handrail.domain.definition import Category, Prompt, Tool
from handrail.domain.path import UNDO


class Performer(StrEnum):
    """Who has to do something before a run goes on."""

    AGENT = "agent"
    TOOL = "tool"
    PERSON = "person"


class AwaitedStep(Struct, frozen=True, kw_only=True):
    """A step that somebody has to do, or to undo."""

    path: str
    who: Performer
    is_undo: bool = False
    work: Prompt | Tool | None = None
    args: Any = None
    """What a tool would be called with."""
    trouble: str = ""
    """Why nobody could do it: its words can't be filled in."""

    @property
    def name(self) -> str:
        """What a script calls it, round for round: `build[2].make`, `tag!undo`."""
        return self.path + UNDO if self.is_undo else self.path


class DoneResult(Struct, frozen=True):
    """It was done, and this was handed in or answered."""

    output: Any = None


class RefusedResult(Struct, frozen=True):
    """What was handed in was turned down; the step waits for another try."""

    findings: tuple[Any, ...]


class SkippedResult(Struct, frozen=True):
    """The agent left it out."""


class FailedResult(Struct, frozen=True):
    """It could not be done."""

    category: Category = Category.TOOL_ERROR
    message: str = "it failed, by the script"
    is_final: bool = False
    """Whether it is not tried again, whatever the retry policy says."""


class ApprovedResult(Struct, frozen=True):
    """A person said yes."""


class RejectedResult(Struct, frozen=True):
    """A person said no."""


class NoAnswer(Struct, frozen=True):
    """Nobody comes: if the time to answer is limited, it runs out."""


StepResult = DoneResult | RefusedResult | SkippedResult | FailedResult | ApprovedResult | RejectedResult | NoAnswer
