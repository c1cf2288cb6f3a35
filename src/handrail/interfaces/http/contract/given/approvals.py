"""Answers about approvals: what is asked, and whether the caller may answer. Values only."""

from __future__ import annotations

from typing import Any

from handrail.domain.journal.event import EffectAhead
from handrail.domain.preview.values import CallAhead
from handrail.engine.reading.approvals import ApprovalSoFar, EffectDone
from handrail.engine.reading.run_view import ProjectView
from handrail.engine.reading.step_view import Shown, StepView
from handrail.interfaces.http.contract.given.journal import EventView


class ApprovalView(Shown, frozen=True, kw_only=True):
    """What a person is asked, and whether you may answer."""

    run: str
    step: str
    workflow: str
    name: str = ""
    """The name of the run's definition."""
    label: str = ""
    """The input that tells the run from others of its workflow."""
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
    ahead: tuple[CallAhead, ...] = ()
    """The steps that a yes lets start, in order, each with its call as far as it is known."""
    ahead_unshown: int = 0
    done: tuple[StepView, ...] = ()
    """The steps that are completed already, in a single approval."""
    effects_done: tuple[EffectDone, ...] = ()
    """What the run has changed already."""
    answers: tuple[ApprovalSoFar, ...] = ()
    """Who has said yes, if several must."""
    may_answer: bool
    why_not: str = ""
    hint: str = ""
    needs_passphrase: bool
    project: ProjectView | None = None


class AnsweredView(EventView, frozen=True):
    """An answer to an approval, and what was asked."""

    text: str = ""
    name: str = ""
    """The name of the run's definition."""
    label: str = ""
    """The input that tells the run from others of its workflow."""


class ApprovalPage(Shown, frozen=True):
    """Approvals that wait, and the latest that were answered."""

    approvals: tuple[ApprovalView, ...] = ()
    answered: tuple[AnsweredView, ...] = ()
    cursor: str = ""
