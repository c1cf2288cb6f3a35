"""Compensation: which steps of a run are to be undone, and in which order.

Pure. Running the undo is the worker's business; what an undo is, the definition says."""

from __future__ import annotations

from handrail.domain.definition import Definition, Effect, Step
from handrail.domain.path import locate
from handrail.domain.run import Run
from handrail.domain.status import StepStatus

UNDONE_FROM = frozenset(
    {StepStatus.COMPLETED, StepStatus.UNCERTAIN, StepStatus.COMPENSATING, StepStatus.COMPENSATION_FAILED}
)
"""What a step must be to still need its undo."""


def undo_order(run: Run, definition: Definition) -> list[str]:
    """The steps that still have to be undone, newest first."""
    # Newest first by end, so that a later step, which may hold what an earlier one made, always goes before it.
    return [path for path in _newest_first(run) if has_undo(locate(definition, path).step)]


def not_compensated(run: Run, definition: Definition) -> list[str]:
    """The steps whose effect stays because nothing says how to undo it."""
    return [path for path in _newest_first(run) if has_lasting_effect(locate(definition, path).step)]


def has_undo(step: Step) -> bool:
    """Whether the step says how it is undone, and there is something to undo."""
    return step.undo is not None and step.effect is not Effect.NONE


def has_lasting_effect(step: Step) -> bool:
    """Whether the step says that it changes the world, and nothing says how to take that back."""
    return step.undo is None and step.effect not in {None, Effect.NONE}


def _newest_first(run: Run) -> list[str]:
    touched = [(path, state) for path, state in run.steps.items() if state.status in UNDONE_FROM]
    # Steps of one instant keep the journal's order: dict order is the order of first events.
    ordered = sorted(enumerate(touched), key=lambda item: (item[1][1].ended or item[1][1].started or 0, item[0]))
    return [path for _, (path, _) in reversed(ordered)]
