"""The agenda: the state of all steps of a run, updated with each event at a cost that does not grow with the run.

Pure: no clock, nothing is executed. Only `update` and `keep_up` change it, and only by what has happened: the result is
always equal to a new agenda made from the run. Reading it changes nothing. What the run does next is decided in
turn.py; what loops and inlined workflows need is decided in loop_rounds.py."""

from __future__ import annotations

from collections.abc import Iterable

from handrail.domain.definition.model import Call, Definition, Each, OnFailure, Prompt, Repeat, Step
from handrail.domain.journal.event import Mode
from handrail.domain.run.revisiting import next_steps
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_EXECUTING, STEP_MOVING, STEP_SATISFIED, STEP_TRACKED, RunStatus, StepStatus
from handrail.domain.run.step_path import UNDO, Lane, lane_in, locate, top_lane, undo_lane
from handrail.domain.run.step_state import StepState
from handrail.domain.scheduling.open_lane import OpenLane, OpenLanes, prefix_of
from handrail.domain.scheduling.ready_steps import ReadySteps
from handrail.domain.scheduling.timers import Timers
from handrail.domain.scheduling.tracked_steps import TrackedSteps
from handrail.domain.scheduling.undos import Undos


class Agenda:
    """The state of the steps of one run, as of the event `run.n` and the time `now`."""

    def __init__(self, definition: Definition, run: Run) -> None:
        self.definition = definition
        self.run = run
        self.now = 0
        """Timers up to this time have been processed."""
        self.lanes = OpenLanes()
        self.ready_steps = ReadySteps()
        self.ready = self.ready_steps.paths
        """Steps that wait for nothing and have not started."""
        self.containers: set[str] = set()
        """Steps that contain others and need a command: a round is over, or none of the inner steps can continue."""
        self.tracked = TrackedSteps(definition)
        self.undos = Undos(definition)
        self._timers = Timers()
        self._touched: set[str] = set()
        """Steps that contain others and must be looked at again: something has changed inside."""
        self._known: dict[str, StepStatus] = {}
        self._has_revisited = definition.revisit or any(inner.revisit for inner in definition.pinned.values())
        self._enter(top_lane(definition), order=(), chain=0)
        for path, state in run.steps.items():
            if (state.status in STEP_TRACKED or state.withdrawn) and path not in self._known:
                self.tracked.note(path, locate(definition, path).step, state)
        self._turn()
        self.keep_up(self.now)

    # --- reading ------------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether every step of the run is completed or skipped."""
        top = self.lanes.by_prefix.get("")
        return top is None or not top.left

    @property
    def is_stuck(self) -> bool:
        """Whether steps are left that can never start, and nothing else moves either."""
        top = self.lanes.by_prefix.get("")
        return top is not None and top.is_stuck

    @property
    def next_due(self) -> int | None:
        """When the next timer of a step is due."""
        return self._timers.next_due()

    @property
    def waits_for_time(self) -> bool:
        """Whether a timer is set after which handrail continues by itself, whatever others do."""
        return any(not self.run.step(path).digest for path in self._timers)

    # --- keeping up ---------------------------------------------------------------------------------

    def update(self, run: Run, paths: Iterable[str]) -> None:
        """Apply what has happened to these steps, and to the run."""
        paths = list(paths)
        # Everything that followed from a withdrawn approval may have to close, at any depth.
        if run.approvals and any(_is_reopened(self.run.step(path), run.step(path)) for path in paths):
            self._start_over(run)
            return
        self.run = run
        for path in paths:
            self._see(path)
        for opened in self.lanes.by_prefix.values() if self._has_revisited else ():
            if opened.is_revisited:
                self._look_again(opened)
        self._turn()
        self.keep_up(self.now)

    def _start_over(self, run: Run) -> None:
        """Become what a new agenda of this run would be: rare, and taking steps back one by one would be intricate."""
        now, fresh = self.now, Agenda(self.definition, run)
        vars(self).update(vars(fresh))
        self.keep_up(now)

    def keep_up(self, now: int) -> None:
        """Process timers up to this time, and open the lists of steps that can start now."""
        self.now = max(self.now, now)
        while True:
            # Containers first: the timers of steps inside a loop are only known once its round is open.
            while self._touched:
                container = min(self._touched)  # a fixed order: a replay must do the same
                self._touched.discard(container)
                self._go_on(container)
            come = self._timers.take_due(self.now)
            if not come:
                return
            for path in come:
                self._come_due(path)

    def _come_due(self, path: str) -> None:
        state, opened = self.run.step(path), self.lanes.at(path)
        if state.status is StepStatus.WAITING and state.digest:
            # An approval or a question: expiring it is a command, which the turn makes.
            self.tracked.expired[path] = None
        elif opened is None:
            return  # the step that contains it has ended
        elif state.status is StepStatus.RUNNING:
            self._touched.add(path)
        elif state.status is StepStatus.WAITING:
            self._offer(opened, path.rpartition(".")[2])

    def _see(self, path: str) -> None:
        opened, name = self.lanes.at(path), path.rpartition(".")[2]
        state, before = self.run.step(path), self._known.get(path, StepStatus.PENDING)
        # What is known here, not `run.steps`: it decides whether a dependency was satisfied just now, or counted
        # before.
        self._known[path] = state.status
        step = opened.lane.course.named[name] if opened is not None else locate(self.definition, path).step
        self.tracked.note(path, step, state)
        self.tracked.expired.pop(path, None)
        self._timers.set(path, _time_of(step, state))
        if opened is not None:
            self._sort(opened, step, state)
            if state.status in STEP_SATISFIED and before not in STEP_SATISFIED:
                self._satisfy(opened, name)
        if self.undos.is_on:
            self._see_undo(path, state)
        if opened is not None:
            self._touch_parent(opened)

    def _sort(self, opened: OpenLane, step: Step, state: StepState) -> None:
        """Put a step into the collections that fit its state."""
        path = opened.lane.prefix + step.id
        if isinstance(step.work, Call | Each | Repeat):
            if state.status is StepStatus.RUNNING:
                self._touched.add(path)
            else:
                self._close(path)
        if state.status is StepStatus.PENDING:
            return
        self.ready_steps.discard(path)
        if state.status is StepStatus.READY:
            self._offer(opened, step.id)
        elif state.status in STEP_MOVING or self.tracked.failed.get(path) is OnFailure.ASK:
            opened.moving.add(step.id)
        else:
            opened.moving.discard(step.id)

    def _satisfy(self, opened: OpenLane, name: str) -> None:
        opened.left.discard(name)
        if opened.is_revisited:
            return
        for follower in opened.lane.course.followers[name]:
            opened.missing[follower] -= 1
            is_pending = self._known.get(opened.lane.prefix + follower, StepStatus.PENDING) is StepStatus.PENDING
            if not opened.missing[follower] and is_pending:
                self._offer(opened, follower)

    def _offer(self, opened: OpenLane, name: str) -> None:
        """Note that a step waits for nothing and can start."""
        opened.moving.add(name)
        step = opened.lane.course.named[name]
        self.ready_steps.add(opened.lane.prefix + name, step, opened.rank(name))

    def _look_again(self, opened: OpenLane) -> None:
        """Offer what comes next in a list in which a condition may become true later, unless a step is at work."""
        offered = [
            name for name in opened.offered if self.run.step(opened.lane.prefix + name).status is StepStatus.PENDING
        ]
        for name in offered:
            opened.moving.discard(name)
            self.ready_steps.discard(opened.lane.prefix + name)
        opened.offered = () if opened.moving else tuple(next_steps(self.run, opened.lane))
        for name in opened.offered:
            self._offer(opened, name)

    # --- lanes --------------------------------------------------------------------------------------

    def _go_on(self, container: str) -> None:
        """Open the lists inside a container that can start now, and note whether it needs a command."""
        found, state = locate(self.definition, container), self.run.step(container)
        # In record mode the agent works by itself and reports only the steps of the top list: no other list opens.
        if state.status is StepStatus.RUNNING and self.run.mode is not Mode.RECORD:
            match found.step.work:
                case Each() as work:
                    self._go_round(container, rounds=state.rounds or 0, parallel=work.parallel)
                case Repeat():
                    self.lanes.by_prefix.pop(f"{container}[{state.round - 1}].", None)
                    if state.round >= 0 and (state.due is None or state.due <= self.now):
                        self._open(container, state.round)
                case _:
                    self._open(container)
        is_at_work = state.status in STEP_EXECUTING
        if is_at_work and (self.lanes.is_round_over(found, state) or self.lanes.stuck_in(container) is not None):
            self.containers.add(container)
        else:
            self.containers.discard(container)

    def _go_round(self, container: str, *, rounds: int, parallel: int) -> None:
        """Open the next rounds of a loop, at most `parallel` at once."""
        going, lanes = self.lanes.close_ended_rounds(container), self.lanes.by_prefix
        while len(going.open) < parallel and going.next < rounds:
            prefix = f"{container}[{going.next}]."
            # After a round that can't continue no further one starts; those that have started still run to their end.
            is_any_stuck = any(lanes[f"{container}[{number}]."].is_stuck for number in going.open)
            if is_any_stuck and not _has_started(self.run, self.definition, container, prefix):
                return
            self._open(container, going.next)
            if self.lanes.is_over(prefix):
                del lanes[prefix]
            else:
                going.open.add(going.next)
            going.next += 1

    def _open(self, container: str, number: int = 0) -> None:
        """Open the list of steps inside a container, for this round."""
        found, outer = locate(self.definition, container), self.lanes.by_prefix[prefix_of(container)]
        _, chain, place = found.lane.course.ranks[found.step.id]
        lane = lane_in(self.definition, found, number)
        self._enter(lane, order=(*outer.order, place, number), chain=outer.chain + chain)

    def _enter(self, lane: Lane, *, order: tuple[int, ...], chain: int) -> None:
        if lane.prefix in self.lanes.by_prefix:
            return
        opened = self.lanes.by_prefix[lane.prefix] = OpenLane(lane, order, chain)
        for name in lane.course.named:
            # The lane counts its dependencies from nothing, so each of its steps must be seen again as if it were new.
            self._known.pop(lane.prefix + name, None)
        for name, missing in [] if opened.is_revisited else list(opened.missing.items()):
            if not missing and self.run.step(lane.prefix + name).status is StepStatus.PENDING:
                self._offer(opened, name)
        for name in lane.course.named:
            if lane.prefix + name in self.run.steps:
                self._see(lane.prefix + name)
        if opened.is_revisited:
            self._look_again(opened)
        self._touch_parent(opened)

    def _touch_parent(self, opened: OpenLane) -> None:
        parent = opened.lane.parent
        # Only what may change the container: looking at it after each event would cost as much as the run is deep.
        if parent and (not opened.left or not opened.moving or parent in self.containers):
            self._touched.add(parent)

    def _close(self, container: str) -> None:
        """Close all lists inside a container: it has failed or ended."""
        self.containers.discard(container)
        self._touched.discard(container)
        for path in self.lanes.close_inside(container):
            self.ready_steps.discard(path)
            self.containers.discard(path)
            self._touched.discard(path)

    # --- undoing ------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Switch from doing to undoing when the run does."""
        if self.run.status is not RunStatus.COMPENSATING:
            self.undos.is_on = False
            return
        if self.undos.is_on:
            return
        # Nothing starts any more but undos; what is in progress is journaled as late, or ends.
        self.lanes.by_prefix.clear()
        self.ready_steps.clear()
        for kept in (self.tracked.busy, self.containers, self._touched):
            kept.clear()
        self.undos.turn(self.run)
        for path in sorted(self.undos.under_way):
            # An undo that failed waits for its next try, and that time was set before the run turned.
            self._timers.set(path, self.run.step(path).due)
            self._enter_undo(path)

    def _see_undo(self, path: str, state: StepState) -> None:
        if self.undos.see(self.run, path, state):
            self._close(path + UNDO)
            self.containers.discard(path)
        elif path in self.undos.under_way:
            self._enter_undo(path)

    def _enter_undo(self, path: str) -> None:
        lane = undo_lane(self.definition, locate(self.definition, path))
        if lane is not None:
            self._enter(lane, order=(), chain=0)


def _time_of(step: Step, state: StepState) -> int | None:
    """When handrail continues with a step by itself; None if it does not."""
    # The claim of an agent also ends at a set time, but then there is nothing for handrail to do.
    is_claim = state.status is StepStatus.WAITING and isinstance(step.work, Prompt) and not state.digest
    return None if is_claim else state.due


def _is_reopened(before: StepState, after: StepState) -> bool:
    """Whether an approval that was given is withdrawn: what followed from it is no longer so."""
    return before.status in STEP_SATISFIED and after.withdrawn


def _has_started(run: Run, definition: Definition, container: str, prefix: str) -> bool:
    """Whether any step of this round has an event."""
    return any(prefix + step.id in run.steps for step in locate(definition, container).step.body)
