"""Answers about approvals: what is asked, and whether the caller may answer. Values only."""

from __future__ import annotations

from typing import Any

from handrail.domain.journal.event import EffectAhead
from handrail.engine.reading.run_view import ProjectView
from handrail.engine.reading.step_view import Shown, StepView
from handrail.interfaces.http.contract.given.journal import EventView


class AnsweredView(Shown, frozen=True):
    """An answer that was given."""

    by: str
    answer: str
    reason: str = ""
    at: str = ""
    channel: str = ""
    n: int = 0


class ApprovalView(Shown, frozen=True):
    """What a person is asked, and whether you may answer."""

    run: str
    step: str
    workflow: str
    text: str
    digest: str
    goal: str = ""
    since: str = ""
    expires: str = ""
    by: tuple[str, ...] = ()
    approvals: int = 1
    approved_by: tuple[str, ...] = ()
    not_by: str = ""
    schema: Any = None
    """The form of the answer, if a yes or no is not enough."""
    effects: tuple[EffectAhead, ...] = ()
    """What a yes lets happen."""
    unshown: int = 0
    done: tuple[StepView, ...] = ()
    """What is done already, in a single approval."""
    may_answer: bool = False
    why_not: str = ""
    hint: str = ""
    needs_passphrase: bool = False
    project: ProjectView | None = None


class ApprovalPage(Shown, frozen=True):
    """Approvals that wait, and the latest that were answered."""

    approvals: tuple[ApprovalView, ...] = ()
    answered: tuple[EventView, ...] = ()
    cursor: str = ""
