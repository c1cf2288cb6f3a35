"""Offered controls: those of the legal ones that would do something now.

Pure. What is legal is decided in domain/run/legal_controls.py; an undo of nothing is legal, too, but not offered."""

from __future__ import annotations

from handrail.domain.definition.model import Definition
from handrail.domain.run.legal_controls import Action, Legal, legal_actions
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.domain.scheduling.compensation import undo_order


def offered_actions(run: Run, definition: Definition) -> tuple[Legal, ...]:
    """The legal actions; undo only if there is something to undo, or a step at work may leave something."""
    legal = tuple(legal_actions(run))
    is_working = any(state.status is StepStatus.RUNNING for state in run.steps.values())
    if is_working or undo_order(run, definition):
        return legal
    return tuple(one for one in legal if one.action is not Action.COMPENSATE)
