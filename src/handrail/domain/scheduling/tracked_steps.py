"""Tracked steps: those with a call in progress, those that wait, and those that someone must look at.

Pure. They are tracked whether or not the list of steps that they are in is open: a question in a list that is over can
still expire. Which steps are ready is in ready_steps.py; when the state of a step changes is decided in agenda.py."""

from __future__ import annotations

from typing import Final

from handrail.domain.definition.model import Call, Definition, Each, OnFailure, Repeat, Step
from handrail.domain.run.status import StepStatus
from handrail.domain.run.step_state import StepState
from handrail.domain.scheduling.failure_policy import policy_for

HALTS: Final = (OnFailure.COMPENSATE, OnFailure.STOP)
"""Policies under which no new step starts, the stronger one first."""


class TrackedSteps:
    """The steps of one run that have started and are not simply done."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.busy: set[str] = set()
        """Steps with an attempt in progress, as far as the journal shows."""
        self.waiting: set[str] = set()
        """Steps that wait for an agent, a person or their next attempt."""
        self.expired: dict[str, None] = {}
        """Those whose question was not answered in time."""
        self.withdrawn: dict[str, None] = {}
        """Approvals that must be asked for again, even if the list of steps that they are in is over."""
        self.uncertain: set[str] = set()
        """Steps of which it is unknown whether they took effect."""
        self.failed: dict[str, OnFailure] = {}
        """Failed steps, each with what happens because of it."""

    @property
    def halt(self) -> OnFailure | None:
        """The strongest reason why nothing new may start."""
        if not self.failed:
            return None
        return next((policy for policy in HALTS if policy in self.failed.values()), None)

    def note(self, path: str, step: Step, state: StepState) -> None:
        """Put a step where it belongs by its state, and take it out of everywhere else."""
        # A container is RUNNING or WAITING as long as its steps are: only they are called or asked for.
        is_container = isinstance(step.work, Call | Each | Repeat)
        sorts = (
            (StepStatus.RUNNING, self.busy),
            (StepStatus.WAITING, self.waiting),
            (StepStatus.UNCERTAIN, self.uncertain),
        )
        # Each status has one collection: leaving one and entering another must be the same step, or a reader counts
        # twice.
        for status, kept in sorts:
            if state.status is status and not is_container:
                kept.add(path)
            else:
                kept.discard(path)
        if state.withdrawn and state.status is StepStatus.READY:
            self.withdrawn[path] = None
        else:
            self.withdrawn.pop(path, None)
        if state.status is StepStatus.FAILED:
            self.failed[path] = self._policy(path, state)
        else:
            self.failed.pop(path, None)

    def _policy(self, path: str, state: StepState) -> OnFailure:
        policy = OnFailure.ASK if state.asks else policy_for(self.definition, path)
        # Steps that depend on a withdrawn approval may have started: someone must say what becomes of them.
        return OnFailure.ASK if state.withdrawn and policy is OnFailure.CONTINUE else policy
