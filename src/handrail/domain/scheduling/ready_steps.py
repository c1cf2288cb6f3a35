"""Ready steps: those that wait for nothing and have not started, grouped by what is needed to start them.

Pure. Which steps are ready is decided in agenda.py; what starting one means, in step_start.py."""

from __future__ import annotations

from handrail.domain.definition.model import Prompt, Step, Tool
from handrail.domain.scheduling.open_lane import StepRank
from handrail.domain.scheduling.ranked_queue import RankedQueue


class ReadySteps:
    """The ready steps of one run."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        """All ready steps; each is also in one of the three groups below."""
        self.calls: RankedQueue[StepRank] = RankedQueue()
        """Steps that call a tool, the most urgent first."""
        self.prompts: set[str] = set()
        """Steps that only an agent can do, unconditionally."""
        self.others: dict[str, None] = {}
        """The rest, in the order they became ready: approvals, loops, workflows, and prompts with a condition."""

    def add(self, path: str, step: Step, rank: StepRank) -> None:
        """Add a step; one that is already ready stays where it is."""
        self.paths.add(path)
        if isinstance(step.work, Tool):
            self.calls.add(path, rank)
        elif isinstance(step.work, Prompt) and step.when is None:
            self.prompts.add(path)
        else:
            self.others[path] = None

    def discard(self, path: str) -> None:
        """Remove a step, if it is there."""
        if path in self.paths:
            self.paths.discard(path)
            self.calls.discard(path)
            self.prompts.discard(path)
            self.others.pop(path, None)

    def clear(self) -> None:
        """Remove all steps."""
        self.paths.clear()
        self.calls.clear()
        self.prompts.clear()
        self.others.clear()
