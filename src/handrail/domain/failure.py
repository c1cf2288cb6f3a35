"""Failure: what a run does about a step that has failed for good.

Pure. The step's own word wins over that of the steps that hold it, and these over the run's."""

from __future__ import annotations

from handrail.domain.definition import Definition, OnFailure
from handrail.domain.path import holder_of, is_in_undo, locate


def policy_for(definition: Definition, path: str) -> OnFailure:
    """What the failure of this step means for its run."""
    if is_in_undo(path):
        return OnFailure.CONTINUE  # the undo as a whole fails, and that has its own rules
    at = path
    while at:
        own = locate(definition, at).step.on_failure
        if own is not None:
            return own
        at = holder_of(at)
    return definition.on_failure
