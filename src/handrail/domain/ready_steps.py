"""Ready steps: those that wait for nothing and have not started, by what starting them takes.

Pure. When a step is ready, agenda.py knows; what starting it means, beginning.py."""

from __future__ import annotations

from handrail.domain.definition import Prompt, Step, Tool
from handrail.domain.open_lane import StepRank
from handrail.domain.ranked_queue import RankedQueue


class ReadySteps:
    """The ready steps of one run."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        """All of them; each is also in one of the three below."""
        self.calls: RankedQueue[StepRank] = RankedQueue()
        """Those that call a tool, the most urgent first."""
        self.prompts: set[str] = set()
        """Those that only an agent can do, whatever happens."""
        self.others: dict[str, None] = {}
        """The rest, as they became ready: questions, loops, workflows, and prompts that have a condition."""

    def add(self, path: str, step: Step, rank: StepRank) -> None:
        """Add a step; one that is ready already stays where it is."""
        self.paths.add(path)
        if isinstance(step.work, Tool):
            self.calls.add(path, rank)
        elif isinstance(step.work, Prompt) and step.when is None:
            self.prompts.add(path)
        else:
            self.others[path] = None

    def discard(self, path: str) -> None:
        """Take a step off, if it is there."""
        if path in self.paths:
            self.paths.discard(path)
            self.calls.discard(path)
            self.prompts.discard(path)
            self.others.pop(path, None)

    def clear(self) -> None:
        """Take all of them off."""
        self.paths.clear()
        self.calls.clear()
        self.prompts.clear()
        self.others.clear()
