"""The agenda: what a run could do next, kept up to date event by event at a cost that does not grow with the run.

Pure: no clock, no chance, nothing is done here. It can be made anew from a run at any time, and is then the same. What
beginning a step means is told by beginning.py, how rounds of a loop follow each other by rounds.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Final

from handrail.domain.compensation import holding_back, undo_order
from handrail.domain.definition import Call, Definition, Each, OnFailure, Prompt, Repeat, Step, Tool
from handrail.domain.failure import policy_for
from handrail.domain.path import UNDO, Lane, lane_in, locate, top_lane, undo_lane
from handrail.domain.run import Run, StepState
from handrail.domain.status import STEP_ACTED, STEP_MOVING, STEP_SATISFIED, STEP_TRACKED, RunStatus, StepStatus

HALTS: Final = (OnFailure.COMPENSATE, OnFailure.STOP)
"""Policies that let nothing new begin, the stronger first."""


class OpenLane:
    """A list of steps that is being worked on: what each still waits for, what is left, and what may still move."""

    def __init__(self, lane: Lane, order: tuple[int, ...], chain: int) -> None:
        self.lane = lane
        self.order = order
        self.chain = chain
        self.missing = {name: len(needs) for name, needs in lane.course.needs.items()}
        self.left = set(lane.course.named)
        self.moving: set[str] = set()

    def rank(self, name: str) -> tuple[int, int, tuple[int, ...]]:
        """What ready steps are ordered by, across all lanes."""
        priority, chain, place = self.lane.course.ranks[name]
        return (priority, chain + self.chain, (*self.order, place))

    @property
    def is_stuck(self) -> bool:
        """Whether something is left, and nothing of it can ever move."""
        return bool(self.left) and not self.moving


class Going:
    """The rounds of a loop that are worked on, and the next one."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.next = 0


class Agenda:
    """What one run could do next."""

    def __init__(self, definition: Definition, run: Run) -> None:
        self.definition = definition
        self.lanes: dict[str, OpenLane] = {}
        self.ready: set[str] = set()
        """Steps that wait for nothing and have not begun."""
        self.for_agent: set[str] = set()
        """Those of them that only an agent can do."""
        self.busy: set[str] = set()
        """Steps with a try under way, as far as the journal tells."""
        self.waiting: set[str] = set()
        """Steps that wait for an agent, a person or their next try."""
        self.uncertain: set[str] = set()
        self.failed: dict[str, OnFailure] = {}
        self.holders: set[str] = set()
        """Steps that hold others and need a look: a round may be over, or the next one begin."""
        self.undoing: set[str] = set()
        """Steps whose undo has begun and not ended."""
        self.to_undo: set[str] = set()
        """Steps whose undo may begin."""
        self._undo_queue: list[tuple[int, str]] = []
        self._undo_place: dict[str, int] = {}
        self._queue: list[tuple[tuple[int, int, tuple[int, ...]], str]] = []
        self._others: list[str] = []
        self._timers: list[tuple[int, str]] = []
        self._known: dict[str, StepStatus] = {}
        self._held_back: dict[str, list[str]] = {}
        self._rounds: dict[str, Going] = {}
        self._is_undoing = False
        self._enter(run, top_lane(definition), order=(), chain=0)
        for path, state in run.steps.items():
            if state.status in STEP_TRACKED and path not in self._known:
                self._note(path, locate(definition, path).step, state)
        self._turn(run)

    # --- what is asked of it ------------------------------------------------------------------------

    @property
    def halt(self) -> OnFailure | None:
        """The strongest reason why nothing new may begin."""
        return next((policy for policy in HALTS if policy in self.failed.values()), None)

    @property
    def is_done(self) -> bool:
        """Whether every step of the run is completed or skipped."""
        return not self.lanes[""].left if "" in self.lanes else True

    @property
    def is_stuck(self) -> bool:
        """Whether steps are left that can never begin, and nothing else moves either."""
        return "" in self.lanes and self.lanes[""].is_stuck

    @property
    def left(self) -> int:
        """How many steps are known that are not done yet."""
        return sum(len(lane.left) for lane in self.lanes.values())

    def in_order(self) -> Iterator[str]:
        """The ready steps that call a tool, the most urgent first; each is taken off the queue."""
        taken: set[str] = set()
        while self._queue:
            _, path = heappop(self._queue)
            # A step may stand there twice: offered before its events were seen, then put back when its time had come.
            if path in self.ready and path not in taken:
                taken.add(path)
                yield path

    def others(self) -> list[str]:
        """The ready steps that call no tool, so that nothing limits them; they are taken off."""
        known = dict.fromkeys(self._others)  # each once, like above
        others = [path for path in known if path in self.ready and path not in self.for_agent]
        self._others.clear()
        return others

    def put_back(self, path: str) -> None:
        """Let a step that calls a tool come up again: it could not begin, or it is time for its next try."""
        head, _, name = path.rpartition(".")
        opened = self.lanes.get(f"{head}." if head else "")
        if opened is not None:
            self.ready.add(path)
            heappush(self._queue, (opened.rank(name), path))

    def rank(self, path: str) -> tuple[int, int, tuple[int, ...]]:
        """What ready steps are ordered by: priority, critical path, then as written."""
        head, _, name = path.rpartition(".")
        return self.lanes[f"{head}." if head else ""].rank(name)

    def undo_in_order(self) -> Iterator[str]:
        """The steps whose undo may begin, newest first; each is taken off the queue."""
        while self._undo_queue:
            _, path = heappop(self._undo_queue)
            if path in self.to_undo:
                yield path

    def put_back_undo(self, path: str) -> None:
        """Let a step whose undo could not begin come up again."""
        self.to_undo.add(path)
        heappush(self._undo_queue, (self._undo_place.get(path, 0), path))

    def leave_to_agent(self, path: str) -> None:
        """Note that a ready step is one that an agent does."""
        self.for_agent.add(path)

    def due(self, run: Run, now: int) -> list[str]:
        """The steps whose time has come, taken off; a time that has changed meanwhile does not count."""
        come: dict[str, None] = {}
        while self._timers and self._timers[0][0] <= now:
            due, path = heappop(self._timers)
            if run.step(path).due == due:
                come[path] = None
        return list(come)

    def next_due(self, run: Run) -> int | None:
        """When the next step's time comes."""
        while self._timers and run.step(self._timers[0][1]).due != self._timers[0][0]:
            heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def waits_for_time(self, run: Run) -> bool:
        """Whether a time will come at which handrail goes on by itself, whatever others do."""
        return any(run.step(path).due == due and self._is_own_time(run, path) for due, path in self._timers)

    def _is_own_time(self, run: Run, path: str) -> bool:
        if run.step(path).digest:
            return False
        step = locate(self.definition, path).step
        return not isinstance(step.undo if path in self.undoing else step.work, Prompt)

    def update(self, run: Run, paths: Iterable[str]) -> None:
        """Take in what has happened to these steps, and to the run."""
        for path in paths:
            self._see(run, path)
        self._turn(run)

    # --- lanes --------------------------------------------------------------------------------------

    def enter(self, run: Run, holder: str, number: int = 0) -> None:
        """Begin to work on the steps that a step holds, in this round of it."""
        found = locate(self.definition, holder)
        outer = self._lane_of(holder)
        _, chain, place = found.lane.course.ranks[found.step.id]
        lane = lane_in(self.definition, found, number)
        self._enter(run, lane, order=(*outer.order, place, number), chain=outer.chain + chain)

    def go_round(self, run: Run, holder: str, *, rounds: int, parallel: int) -> bool:
        """Work on the next rounds of a loop, at most so many at once; whether all of them are over."""
        going = self._rounds.setdefault(holder, Going())
        for number in [number for number in going.open if self.lane_over(f"{holder}[{number}].")]:
            self.leave(f"{holder}[{number}].")
            going.open.remove(number)
        while len(going.open) < parallel and going.next < rounds:
            prefix = f"{holder}[{going.next}]."
            # Behind a round that can't go on no further one begins; those that have begun still come to their end.
            if self._is_any_stuck(holder, going) and not self._has_begun(run, holder, prefix):
                break
            self.enter(run, holder, going.next)
            if self.lane_over(prefix):
                self.leave(prefix)
            else:
                going.open.add(going.next)
            going.next += 1
        return not going.open

    def lanes_in(self, holder: str) -> list[str]:
        """The lists of steps inside a holder that are worked on, by their prefix."""
        return [prefix for prefix, opened in self.lanes.items() if opened.lane.parent == holder]

    def _is_any_stuck(self, holder: str, going: Going) -> bool:
        return any(self.lanes[f"{holder}[{number}]."].is_stuck for number in going.open)

    def _has_begun(self, run: Run, holder: str, prefix: str) -> bool:
        return any(prefix + step.id in run.steps for step in locate(self.definition, holder).step.body)

    def leave(self, prefix: str) -> None:
        """Work no longer on a list of steps: its round is over."""
        self.lanes.pop(prefix, None)

    def lane_over(self, prefix: str) -> bool:
        """Whether nothing is left to do in an open list of steps."""
        return prefix in self.lanes and not self.lanes[prefix].left

    def _enter(self, run: Run, lane: Lane, *, order: tuple[int, ...], chain: int) -> None:
        if lane.prefix in self.lanes:
            return
        opened = self.lanes[lane.prefix] = OpenLane(lane, order, chain)
        for name in lane.course.named:
            self._known.pop(lane.prefix + name, None)
        for name, missing in list(opened.missing.items()):
            if not missing and run.step(lane.prefix + name).status is StepStatus.PENDING:
                self._offer(opened, name)
        for name in lane.course.named:
            if lane.prefix + name in run.steps:
                self._see(run, lane.prefix + name)
        if lane.parent and (not opened.left or not opened.moving):
            self.holders.add(lane.parent)

    def _lane_of(self, path: str) -> OpenLane:
        head, _, _ = path.rpartition(".")
        return self.lanes[f"{head}." if head else ""]

    def _offer(self, opened: OpenLane, name: str) -> None:
        """Note that a step waits for nothing any more."""
        path = opened.lane.prefix + name
        opened.moving.add(name)
        if path in self.ready:
            return  # it stands in a queue, or is just being looked at
        self.ready.add(path)
        if isinstance(opened.lane.course.named[name].work, Tool):
            heappush(self._queue, (opened.rank(name), path))
        else:
            self._others.append(path)

    # --- what has happened --------------------------------------------------------------------------

    def _see(self, run: Run, path: str) -> None:
        head, _, name = path.rpartition(".")
        opened = self.lanes.get(f"{head}." if head else "")
        state, before = run.step(path), self._known.get(path, StepStatus.PENDING)
        self._known[path] = state.status
        if state.due is not None:
            heappush(self._timers, (state.due, path))
        if opened is None:
            self._note(path, locate(self.definition, path).step, state)
            self._see_undo(run, path, state)
            return
        step = opened.lane.course.named[name]
        self._sort(path, step, state)
        self._move(opened, name, state)
        if state.status in STEP_SATISFIED and before not in STEP_SATISFIED:
            self._satisfy(opened, name)
        self._see_undo(run, path, state)
        if opened.lane.parent and (not opened.left or not opened.moving):
            self.holders.add(opened.lane.parent)

    def _sort(self, path: str, step: Step, state: StepState) -> None:
        """Put a step where its state belongs."""
        self._note(path, step, state)
        if isinstance(step.work, Call | Each | Repeat):
            if state.status is StepStatus.RUNNING:
                self.holders.add(path)
            else:
                self._close(path)
        if state.status is not StepStatus.PENDING:
            self.ready.discard(path)
            self.for_agent.discard(path)

    def _note(self, path: str, step: Step, state: StepState) -> None:
        """Note what is to be known of a step even if the list that it stands in is not worked on."""
        is_holder = isinstance(step.work, Call | Each | Repeat)
        sorts = (
            (StepStatus.RUNNING, self.busy),
            (StepStatus.WAITING, self.waiting),
            (StepStatus.UNCERTAIN, self.uncertain),
        )
        for status, kept in sorts:
            if state.status is status and not is_holder:
                kept.add(path)
            else:
                kept.discard(path)
        if state.status is StepStatus.FAILED:
            self.failed[path] = OnFailure.ASK if state.asks else policy_for(self.definition, path)
        else:
            self.failed.pop(path, None)

    def _close(self, holder: str) -> None:
        """Work on nothing any more that a step holds: it has failed, or ended."""
        self._rounds.pop(holder, None)
        for prefix in [prefix for prefix in self.lanes if prefix.startswith((f"{holder}.", f"{holder}["))]:
            for name in self.lanes.pop(prefix).lane.course.named:
                self.ready.discard(prefix + name)
                self.for_agent.discard(prefix + name)
                self._rounds.pop(prefix + name, None)

    def _move(self, opened: OpenLane, name: str, state: StepState) -> None:
        path = opened.lane.prefix + name
        if state.status is StepStatus.READY:
            self._offer(opened, name)
        elif state.status in STEP_MOVING or self.failed.get(path) is OnFailure.ASK:
            opened.moving.add(name)
        elif state.status is not StepStatus.PENDING:
            opened.moving.discard(name)

    def _satisfy(self, opened: OpenLane, name: str) -> None:
        opened.left.discard(name)
        for follower in opened.lane.course.followers[name]:
            opened.missing[follower] -= 1
            is_pending = self._known.get(opened.lane.prefix + follower, StepStatus.PENDING) is StepStatus.PENDING
            if not opened.missing[follower] and is_pending:
                self._offer(opened, follower)

    # --- undoing ------------------------------------------------------------------------------------

    def _turn(self, run: Run) -> None:
        """Turn from doing to undoing when the run does."""
        if run.status is not RunStatus.COMPENSATING:
            self._is_undoing = False
            return
        if self._is_undoing:
            return
        self._is_undoing = True
        self.lanes.clear()
        for kept in (self.ready, self.for_agent, self.busy, self.holders, self.to_undo, self.undoing):
            kept.clear()
        self._held_back.clear()
        order = undo_order(run, self.definition)
        self._undo_place = {path: place for place, path in enumerate(order)}
        for path in order:
            state = run.step(path)
            if state.broke > run.turned:
                continue  # it has failed for good since, and nobody has asked for it again
            if state.status is StepStatus.COMPENSATING:
                self._begin_undoing(run, path)
                if state.due is not None:
                    heappush(self._timers, (state.due, path))
            else:
                self._place_undo(run, path)

    def _place_undo(self, run: Run, path: str) -> None:
        """Let the undo of a step begin, or wait for the one that holds it back."""
        later = holding_back(run, self.definition, path)
        if later is None:
            self.put_back_undo(path)
        else:
            self._held_back.setdefault(later, []).append(path)

    def _see_undo(self, run: Run, path: str, state: StepState) -> None:
        if not self._is_undoing:
            return
        if state.status is StepStatus.COMPENSATING:
            self._begin_undoing(run, path)
            return
        self.undoing.discard(path)
        if state.status in STEP_ACTED:
            return  # a late answer changes nothing: it is still to be undone
        self._close(path + UNDO)
        self.to_undo.discard(path)
        if state.status is StepStatus.COMPENSATION_FAILED:
            return  # those that it holds back stay as they are
        for waiting in self._held_back.pop(path, ()):
            self._place_undo(run, waiting)

    def _begin_undoing(self, run: Run, path: str) -> None:
        self.to_undo.discard(path)
        self.undoing.add(path)
        lane = undo_lane(self.definition, locate(self.definition, path))
        if lane is not None:
            self._enter(run, lane, order=(), chain=0)
