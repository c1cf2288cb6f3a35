"""Branches: the ways that a workflow can take at each fork, and which of them a run has taken.

Pure. Steps of inlined workflows are not counted: those workflows have tests of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from handrail.domain.definition.model import Approve, Call, Definition, Each, Repeat, Step
from handrail.domain.rehearsal.script import plain
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.domain.run.step_path import UNDO
from handrail.domain.run.step_state import StepState

SEVERAL = 2


class Way(StrEnum):
    """One way out of a fork."""

    TRUE = "its condition is true"
    FALSE = "its condition is false"
    NO_ROUND = "no round"
    ONE_ROUND = "one round"
    ROUNDS = "several rounds"
    YES = "a person says yes"
    NO = "a person says no"
    FAILURE = "it fails"


class Branch(Struct, frozen=True, order=True):
    """A step, by its name without rounds, and one of its ways."""

    step: str
    way: Way

    def __str__(self) -> str:
        return f"{self.step}: {self.way.value}"


FORKS = frozenset({Way.TRUE, Way.FALSE, Way.YES, Way.NO, Way.ONE_ROUND, Way.ROUNDS})
"""Ways that tests should cover; a failure, and a loop without any round, are optional."""


def branches_of(definition: Definition) -> list[Branch]:
    """Every branch of a definition's own steps, in written order."""
    return list(_branches(definition.steps, ""))


def _branches(steps: tuple[Step, ...], prefix: str) -> Iterator[Branch]:
    for step in steps:
        name = prefix + step.id
        conditional = (Way.TRUE, Way.FALSE) if step.when is not None else ()
        yield from (Branch(name, way) for way in (*conditional, *_own_ways(step)))
        yield from _branches(step.body, f"{name}.")


def _own_ways(step: Step) -> Sequence[Way]:
    match step.work:
        case Approve():
            return (Way.YES, Way.NO)
        case Each():
            return (Way.NO_ROUND, Way.ONE_ROUND, Way.ROUNDS)
        case Repeat(repeat=rounds):
            return _ways(rounds.times, is_while=rounds.while_ is not None)
        case Call():
            return ()  # only its steps can fail, and those are not counted here
        case _:
            return (Way.FAILURE,)


def _ways(times: int | None, *, is_while: bool) -> list[Way]:
    if times is not None:
        return [_way_of(times)]
    return [*([Way.NO_ROUND] if is_while else []), Way.ONE_ROUND, Way.ROUNDS]


def branches_taken(definition: Definition, run: Run) -> set[Branch]:
    """The branches that a run has taken so far."""
    known = dict(_own(definition.steps, ""))
    return {branch for path in run.steps for branch in _taken(run, path, known)}


def _own(steps: tuple[Step, ...], prefix: str) -> Iterator[tuple[str, Step]]:
    for step in steps:
        yield prefix + step.id, step
        yield from _own(step.body, f"{prefix}{step.id}.")


def _taken(run: Run, path: str, known: Mapping[str, Step]) -> Iterator[Branch]:
    name, state = plain(path), run.step(path)
    step = known.get(name)
    if step is None or UNDO in path:
        return
    ways = (_condition_way(step, state), _end_way(step, state), _rounds_way(step, state))
    yield from (Branch(name, way) for way in ways if way is not None)


def _condition_way(step: Step, state: StepState) -> Way | None:
    if step.when is None or (state.started is None and state.status is not StepStatus.SKIPPED):
        return None
    return Way.FALSE if state.started is None else Way.TRUE


def _end_way(step: Step, state: StepState) -> Way | None:
    is_asked = isinstance(step.work, Approve)
    if state.status is StepStatus.FAILED:
        return Way.NO if is_asked else Way.FAILURE
    return Way.YES if is_asked and state.status is StepStatus.COMPLETED else None


def _rounds_way(step: Step, state: StepState) -> Way | None:
    if not step.body or state.started is None:
        return None
    if state.rounds is not None:
        return _way_of(state.rounds)
    rounds = state.round + 1
    is_sure = state.status is StepStatus.COMPLETED or rounds >= SEVERAL  # else there may be another round
    return _way_of(rounds) if is_sure else None


def _way_of(rounds: int) -> Way:
    if rounds >= SEVERAL:
        return Way.ROUNDS
    return Way.ONE_ROUND if rounds else Way.NO_ROUND
