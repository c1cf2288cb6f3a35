"""The progress of a run, with a total that does not grow while one works.

Pure. What can be counted at the start is: the steps, those of inlined workflows, and the rounds of loops over lists
that are known from the inputs. Other rounds are shown apart."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from handrail.domain.definition.model import Call, Definition, Each, Repeat, Step
from handrail.domain.errors import Invalid
from handrail.domain.run.scope import evaluate, read_by
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_SATISFIED, StepStatus
from handrail.domain.run.step_path import UNDO, top_lane
from handrail.engine.reading.step_view import Shown


class Progress(Shown, frozen=True):
    """The progress of a run: `done` steps of `total` are over, of which `skipped` were skipped.

    What could not be counted at the start is apart: the loops that are in progress, and the steps done in rounds."""

    done: int
    total: int
    skipped: int = 0
    rounds: Mapping[str, str] = {}
    """By loop in progress: the latest round, and how many there are."""
    in_rounds: int = 0


def progress_of(run: Run, definition: Definition) -> Progress:
    """How far a run is."""
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
        # Rounds start in order, so the first that has not started is found without looking at each.
        started = bisect_left(range(rounds), 1, key=lambda number: not self.has_started(loop, f"{path}[{number}]."))
        return f"{started} of {rounds}"

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
