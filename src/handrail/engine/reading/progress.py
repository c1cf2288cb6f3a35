"""The progress of a run, with a total that does not grow while one works.

Pure. What can be counted at the start is: the steps, those of inlined workflows, and the rounds of loops over lists
that are known from the inputs. Other rounds are shown apart."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from handrail.domain.definition.model import Call, Definition, Each, Repeat, Step
from handrail.domain.errors import Invalid
from handrail.domain.run.scope import evaluate, read_by
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_UNDOING, STEP_SATISFIED, StepStatus
from handrail.domain.run.step_path import UNDO, top_lane
from handrail.domain.scheduling.compensation import remaining, undo_order
from handrail.engine.reading.step_view import Shown


class UndoneProgress(Shown, frozen=True):
    """How far undoing is: `done` of `of` steps are undone, and `not_undone` effects remain, or may."""

    done: int
    of: int
    not_undone: int


class Progress(Shown, frozen=True):
    """The progress of a run: `done` steps of `total` are over, of which `skipped` were skipped.

    What could not be counted at the start is apart: the loops that are in progress, and the steps done in rounds."""

    done: int
    total: int
    skipped: int = 0
    rounds: Mapping[str, str] = {}
    """By loop in progress: the latest round, and how many there are."""
    in_rounds: int = 0
    known_done: int = 0
    known_total: int = 0
    """With the steps of all rounds that are known by now, and how many of those are over: in full views, where that is
    not the same."""
    undone: UndoneProgress | None = None
    """Of a run that is or was undone."""


def progress_of(run: Run, definition: Definition, *, is_full: bool = False) -> Progress:
    """How far a run is; `is_full` also counts the rounds that only became known while it ran."""
    progress = _progress(run, definition)
    if run.status in RUN_UNDOING:
        progress = replace(progress, undone=_undone(run, definition))
    if not is_full:
        return progress
    known_total, known_done = _KnownCount(run, definition).counted(definition.steps, "")
    is_same = (known_total, known_done) == (progress.total, progress.done)
    return progress if is_same else replace(progress, known_total=known_total, known_done=known_done)


def steps_of(run: Run, definition: Definition) -> tuple[int, int]:
    """How many steps that do something themselves are over, and how many are known; boxes of others don't count."""
    if not any(step.body or isinstance(step.work, Call) for step in definition.steps):
        return run.done, len(definition.steps)
    total, over = _KnownCount(run, definition, with_boxes=False).counted(definition.steps, "")
    return over, total


def _undone(run: Run, definition: Definition) -> UndoneProgress:
    done = sum(state.status is StepStatus.COMPENSATED for state in run.steps.values())
    left = undo_order(run, definition)
    return UndoneProgress(done=done, of=done + len(left), not_undone=len(remaining(run, definition)))


class _KnownCount:
    """Counts everything that is known by now, every round of every loop."""

    def __init__(self, run: Run, definition: Definition, *, with_boxes: bool = True) -> None:
        self.run, self.definition, self.with_boxes = run, definition, with_boxes
        self.rounds = dict(_known_rounds(run, definition))

    def counted(self, steps: Sequence[Step], prefix: str) -> tuple[int, int]:
        """How many steps there are, and how many of them are over."""
        total = over = 0
        for step in steps:
            path = prefix + step.id
            inside = [self.counted(inner, place) for inner, place in self._inside(step, path)]
            all_of_it = self._own(inside) + sum(one for one, _ in inside)
            is_over = self.run.step(path).status in STEP_SATISFIED
            total += all_of_it
            over += all_of_it if is_over else sum(done for _, done in inside)
        return total, over

    def _own(self, inside: Sequence[object]) -> int:
        return 1 if self.with_boxes or not inside else 0

    def _inside(self, step: Step, path: str) -> Iterator[tuple[Sequence[Step], str]]:
        if isinstance(step.work, Call):
            yield self.definition.pinned[step.work.workflow].steps, f"{path}."
            return
        state = self.run.step(path)
        started = state.round + 1 if state.rounds is None else state.rounds
        for number in range(max(started, self.rounds.get(path, 0)) if step.body else 0):
            yield step.body, f"{path}[{number}]."


def _progress(run: Run, definition: Definition) -> Progress:
    if not any(step.body or Call in (type(step.work), type(step.undo)) for step in definition.steps):
        skipped = sum(state.status is StepStatus.SKIPPED for state in run.steps.values())
        return Progress(done=run.done, total=len(definition.steps), skipped=skipped)
    counter = _Counter(run, definition)
    counter.count(definition.steps, "")
    return Progress(
        done=counter.done,
        total=counter.total,
        skipped=counter.skipped,
        rounds=counter.rounds,
        in_rounds=counter.in_rounds,
    )


class _Counter:
    """Counts the steps of one run: one pass over those with events, and one over those that are written down."""

    def __init__(self, run: Run, definition: Definition) -> None:
        self.run, self.definition = run, definition
        self.done = self.total = self.skipped = self.in_rounds = 0
        self.rounds: dict[str, str] = {}
        self.known = dict(_known_rounds(run, definition))
        """How many rounds the loops have whose list is known from the start."""
        self.over_in: Counter[str] = Counter()
        """How many steps are over in the rounds of each of them; other steps count for themselves."""
        self.look()

    def look(self) -> None:
        for path, state in self.run.steps.items():
            if state.status not in STEP_SATISFIED:
                continue
            if self.is_apart(path):
                self.in_rounds += 1
                continue
            self.skipped += state.status is StepStatus.SKIPPED
            self.over_in[path.partition("[")[0]] += 1

    def is_apart(self, path: str) -> bool:
        """Whether a step is in a round that is not counted, or in an undo."""
        loop, bracket, rest = path.partition("[")
        return UNDO in path or "[" in rest or (bool(bracket) and loop not in self.known)

    def count(self, steps: Sequence[Step], prefix: str) -> None:
        for step in steps:
            path = prefix + step.id
            state = self.run.step(path)
            inside = self.size(step, path)
            self.total += 1 + inside
            if state.status in STEP_SATISFIED:
                self.done += 1 + inside  # also what it never started inside: it is over
            elif isinstance(step.work, Call):
                before = self.total
                self.count(self.definition.pinned[step.work.workflow].steps, f"{path}.")
                self.total = before  # they are counted already
            elif path in self.known:
                self.done += self.over_in[path]
            elif step.body and state.status is StepStatus.RUNNING:
                self.rounds[path] = self.round_words(step, path)

    def size(self, step: Step, path: str = "") -> int:
        """How many steps inside a step are counted; without a path, in each round of a loop around it."""
        if isinstance(step.work, Call):
            return sum(1 + self.size(one) for one in self.definition.pinned[step.work.workflow].steps)
        return self.known.get(path, 0) * sum(1 + self.size(one) for one in step.body)

    def round_words(self, loop: Step, path: str) -> str:
        state = self.run.step(path)
        if isinstance(loop.work, Repeat):
            return f"{state.round + 1} of at most {loop.work.repeat.bound}"
        rounds = state.rounds or 0
        return f"{self.current_round(loop, path, rounds)} of {rounds}"

    def current_round(self, loop: Step, path: str, rounds: int) -> int:
        """The latest round, from 1; also one whose first step is open, and has no event yet."""
        # Rounds start in order, so the first that has not started is found without looking at each.
        started = bisect_left(range(rounds), 1, key=lambda number: not self.has_started(loop, f"{path}[{number}]."))
        is_next = started < rounds and self.is_over(loop, f"{path}[{started - 1}].")
        return min(rounds, started + 1) if is_next or not started else started

    def is_over(self, loop: Step, prefix: str) -> bool:
        return all(self.run.step(prefix + step.id).status in STEP_SATISFIED for step in loop.body)

    def has_started(self, loop: Step, prefix: str) -> bool:
        return any(prefix + step.id in self.run.steps for step in loop.body)


def _known_rounds(run: Run, definition: Definition) -> Iterator[tuple[str, int]]:
    """The loops of the run's own list of steps whose items depend on nothing but the inputs, and how many there are."""
    lane = top_lane(definition)
    for step in definition.steps:
        if not isinstance(step.work, Each):
            continue
        try:
            if all(path[0] == "inputs" for path in read_by(step.work.items, lane)):
                items = evaluate(step.work.items, run, lane)
                yield step.id, len(items) if isinstance(items, list | tuple) else 0
        except Invalid:  # the loop itself will report that
            continue
