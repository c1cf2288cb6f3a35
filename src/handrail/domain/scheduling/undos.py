"""Undos: which steps of a run may be undone now, which are being undone, and which wait for the undo of a later step.

Pure. The order is decided in compensation.py; what starting an undo means, in step_start.py."""

from __future__ import annotations

from handrail.domain.definition.model import Call, Definition, Prompt, Work
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_ACTED, StepStatus
from handrail.domain.run.step_path import locate
from handrail.domain.run.step_state import StepState
from handrail.domain.scheduling.compensation import holding_back, undo_order
from handrail.domain.scheduling.ranked_queue import RankedQueue


class Undos:
    """What is left to undo in one run."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.is_on = False
        """Whether the run is being undone at all."""
        self.ready: RankedQueue[int] = RankedQueue()
        """Steps whose undo may start, the latest step first."""
        self.under_way: set[str] = set()
        """Steps whose undo has started and not ended."""
        self.uncertain: set[str] = set()
        """Steps of which it is unknown whether they are undone: someone must decide."""
        self._place: dict[str, int] = {}
        self._blocked: dict[str, list[str]] = {}
        """By step: earlier steps whose undo waits until this one is undone."""

    def turn(self, run: Run) -> None:
        """Switch to undoing: find what is left to undo, and in which order."""
        self.is_on = True
        self.ready.clear()
        self.under_way.clear()
        self.uncertain.clear()
        self._blocked.clear()
        order = undo_order(run, self.definition)
        self._place = {path: place for place, path in enumerate(order)}
        for path in order:
            state = run.step(path)
            # `turned` is when the run started to undo, or was asked to try again: an older failure has been answered by
            # that.
            if state.broke > run.turned:
                continue  # its undo has failed permanently since, and no retry was requested
            if state.status is StepStatus.COMPENSATING:
                self.under_way.add(path)
            elif state.undo_uncertain:
                self.uncertain.add(path)
            else:
                self._put(run, path)

    def see(self, run: Run, path: str, state: StepState) -> bool:
        """Apply the new state of a step; returns whether its undo has ended."""
        self.uncertain.discard(path)
        if state.status is StepStatus.COMPENSATING:
            self.ready.discard(path)
            self.under_way.add(path)
            return False
        self.under_way.discard(path)
        if state.undo_uncertain:
            self.uncertain.add(path)  # like a failed undo, it keeps blocking the steps before it
            return True
        if state.status in STEP_ACTED:
            return False  # a late answer changes nothing: it is still to be undone
        self.ready.discard(path)
        if state.status is not StepStatus.COMPENSATION_FAILED:  # a failed undo keeps blocking the steps before it
            for waiting in self._blocked.pop(path, ()):
                self._put(run, waiting)
        return True

    def by_tool(self) -> list[str]:
        """The steps that handrail is undoing with a tool, not those undone by an agent or by a workflow."""
        return [path for path in sorted(self.under_way) if not isinstance(self._undo(path), Prompt | Call)]

    def by_agent(self) -> list[str]:
        """The steps that an agent has to undo."""
        return [path for path in sorted(self.under_way) if isinstance(self._undo(path), Prompt)]

    def _undo(self, path: str) -> Work | None:
        return locate(self.definition, path).step.undo

    def _put(self, run: Run, path: str) -> None:
        """Let the undo of a step start, or wait for the later step that blocks it."""
        # Each waits for one later step only; when that is undone it is looked at again, and may wait for another.
        later = holding_back(run, self.definition, path)
        if later is None:
            self.ready.add(path, self._place.get(path, 0))
        else:
            self._blocked.setdefault(later, []).append(path)
