"""What a rehearsed run waits for, and the results it can get. Values only.

The results come from a script (walk.py) or from exploring all paths (paths.py)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from handrail.domain.definition.model import Category, Prompt, Tool
from handrail.domain.run.step_path import UNDO


class Performer(StrEnum):
    """Who has to act before a run continues."""

    AGENT = "agent"
    TOOL = "tool"
    PERSON = "person"


class AwaitedStep(Struct, frozen=True, kw_only=True):
    """A step that an agent, a tool or a person has to do or undo."""

    path: str
    who: Performer
    is_undo: bool = False
    work: Prompt | Tool | None = None
    args: Any = None
    """The arguments of the tool call."""
    trouble: str = ""
    """Why it could not be done: its prompt can't be rendered."""

    @property
    def name(self) -> str:
        """Its name in a script, with rounds: `build[2].make`, `tag!undo`."""
        return self.path + UNDO if self.is_undo else self.path


class DoneResult(Struct, frozen=True):
    """It was done, with this output."""

    output: Any = None


class RefusedResult(Struct, frozen=True):
    """The submitted output was refused; the step waits for another try."""

    findings: tuple[Any, ...]


class SkippedResult(Struct, frozen=True):
    """The agent skipped it."""


class FailedResult(Struct, frozen=True):
    """It could not be done."""

    category: Category = Category.TOOL_ERROR
    message: str = "failed as scripted"
    is_final: bool = False
    """Whether it is not retried, whatever the retry policy says."""


class ApprovedResult(Struct, frozen=True):
    """A person approved."""


class RejectedResult(Struct, frozen=True):
    """A person rejected."""


class NoAnswer(Struct, frozen=True):
    """There is no answer: if the time to answer is limited, it expires."""


StepResult = DoneResult | RefusedResult | SkippedResult | FailedResult | ApprovedResult | RejectedResult | NoAnswer
