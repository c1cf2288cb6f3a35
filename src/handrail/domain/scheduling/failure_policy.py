"""What a run does about a step that has failed permanently.

Pure. The step's own policy wins over that of the steps that contain it, and theirs over the run's."""

from __future__ import annotations

from handrail.domain.definition.model import Definition, OnFailure
from handrail.domain.run.step_path import container_of, is_in_undo, locate


def policy_for(definition: Definition, path: str) -> OnFailure:
    """What the failure of this step means for its run."""
    if is_in_undo(path):
        return OnFailure.CONTINUE  # the whole undo fails then, and that has its own rules
    at = path
    while at:
        own = locate(definition, at).step.on_failure
        if own is not None:
            return own
        at = container_of(at)
    return definition.on_failure
