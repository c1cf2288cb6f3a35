"""What a plan says about its steps, worked out anew and simply: who comes after whom, and who owes an undo.

Shares nothing with the engine's own way of working it out (compensation.py, agenda.py) but the definition's words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from handrail.domain.definition.model import Call, Definition, Each, Effect, Prompt, Repeat, Step, Tool
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_SATISFIED, StepStatus
from handrail.domain.run.step_state import StepState
from simulation.outside import spec_of

_segment = re.compile(r"^([^.\[\]!]+)(?:\[(\d+)\])?(!undo)?$")
DONE = frozenset({StepStatus.COMPLETED, StepStatus.UNCERTAIN})
UNDO_OWED = DONE | {StepStatus.COMPENSATING, StepStatus.COMPENSATION_FAILED}
UNDONE_AS_A_WHOLE = UNDO_OWED | {StepStatus.COMPENSATED}


def segments(path: str) -> list[tuple[str, int | None, bool]]:
    """A path as names, each with its round, and whether it leads into an undo."""
    found = []
    for part in path.split("."):
        match = _segment.match(part)
        assert match is not None, path
        found.append((match[1], int(match[2]) if match[2] else None, bool(match[3])))
    return found


def inner_steps(definition: Definition, step: Step, *, is_undo: bool = False) -> tuple[Step, ...]:
    """The steps that a step holds, or those that undo it."""
    work = step.undo if is_undo else step.work
    return definition.pinned[work.workflow].steps if isinstance(work, Call) else step.body


def step_at(definition: Definition, path: str) -> Step:
    """The step that a path names."""
    steps = definition.steps
    found: Step | None = None
    for name, _, is_undo in segments(path):
        found = next(step for step in steps if step.id == name)
        steps = inner_steps(definition, found, is_undo=is_undo)
    assert found is not None
    return found


def siblings(definition: Definition, path: str) -> tuple[str, tuple[Step, ...]]:
    """The prefix of the list that a path stands in, and that list."""
    head, _, _ = path.rpartition(".")
    if not head:
        return "", definition.steps
    is_undo = head.endswith("!undo")
    return f"{head}.", inner_steps(definition, step_at(definition, head.removesuffix("!undo")), is_undo=is_undo)


def holder(path: str) -> str:
    """The step that holds this one."""
    head, _, _ = path.rpartition(".")
    return re.sub(r"(\[\d+\]|!undo)$", "", head)


def containers(path: str) -> Iterator[str]:
    """All steps that hold this one, the nearest first."""
    while path := holder(path):
        yield path


def is_container(step: Step) -> bool:
    """Whether a step only holds others."""
    return isinstance(step.work, Call | Each | Repeat)


def rounds_follow(step: Step) -> bool:
    """Whether the rounds of a loop come one after the other."""
    return isinstance(step.work, Repeat) or (isinstance(step.work, Each) and step.work.parallel == 1)


def _all_before(steps: tuple[Step, ...], name: str) -> frozenset[str]:
    named = {step.id: step for step in steps}
    found: set[str] = set()
    waiting = list(named[name].after)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += named[one].after
    return frozenset(found)


def comes_after(definition: Definition, later: str, earlier: str) -> bool:
    """Whether one step could only begin when the other had ended."""
    steps = definition.steps
    for (first, first_round, _), (second, second_round, is_undo) in zip(
        segments(earlier), segments(later), strict=False
    ):
        if first != second:
            return first in _before(steps, second)
        step = next(step for step in steps if step.id == first)
        if first_round is not None and second_round is not None and first_round != second_round:
            return rounds_follow(step) and first_round < second_round
        steps = inner_steps(definition, step, is_undo=is_undo)
    return False


def _before(steps: tuple[Step, ...], name: str) -> frozenset[str]:
    known = _BEFORE.get((id(steps), name))
    if known is None or known[0] is not steps:
        if len(_BEFORE) > 5_000:
            _BEFORE.clear()
        known = _BEFORE[id(steps), name] = (steps, _all_before(steps, name))
    return known[1]


_BEFORE: dict[tuple[int, str], tuple[tuple[Step, ...], frozenset[str]]] = {}


def has_effect(step: Step, state: StepState) -> bool:
    """Whether a step that was done changed the world, by what the simulated tools are."""
    if state.effect is Effect.NONE:
        return False  # its last try never reached the world, or it was carried into a fork
    if isinstance(step.work, Tool):
        return spec_of(step.work.tool).effect is not Effect.NONE
    return step.undo is not None


def owes_undo(definition: Definition, run: Run, path: str) -> bool:
    """Whether a step has done something that is not undone yet though it could be."""
    state = run.step(path)
    if state.status not in UNDO_OWED or "!undo" in path:
        return False
    step = step_at(definition, path)
    if not has_effect(step, state) or (step.undo is None and state.capture is None):
        return False
    return not any(
        run.step(above).status in UNDONE_AS_A_WHOLE and step_at(definition, above).undo is not None
        for above in containers(path)
    )


def could_begin(definition: Definition, run: Run) -> Iterator[str]:
    """Steps that nobody has begun though nothing stands in the way, except those for an agent."""
    for prefix, steps in open_lists(definition, run):
        for step in steps:
            state = run.step(prefix + step.id)
            if state.status not in {StepStatus.PENDING, StepStatus.READY} or isinstance(step.work, Prompt):
                continue
            if all(run.step(prefix + name).status in STEP_SATISFIED for name in step.after):
                yield prefix + step.id


def open_lists(definition: Definition, run: Run) -> Iterator[tuple[str, tuple[Step, ...]]]:
    """The lists of steps that are worked on: the plan's own, and those in steps that hold others."""
    if run.status.value != "compensating":
        yield "", definition.steps
    for path, state in run.steps.items():
        step = step_at(definition, path)
        if state.status is StepStatus.COMPENSATING and isinstance(step.undo, Call):
            yield f"{path}!undo.", inner_steps(definition, step, is_undo=True)
        if state.status is not StepStatus.RUNNING or not is_container(step):
            continue
        if run.status.value == "compensating" and "!undo" not in path:
            continue
        steps = inner_steps(definition, step)
        if isinstance(step.work, Call):
            yield f"{path}.", steps
        elif isinstance(step.work, Repeat):
            if state.round >= 0:
                yield f"{path}[{state.round}].", steps
        else:
            going = [number for number in range(state.rounds or 0) if not _is_over(run, f"{path}[{number}].", steps)]
            parallel = step.work.parallel if isinstance(step.work, Each) else 1
            yield from ((f"{path}[{number}].", steps) for number in going[:parallel])


def _is_over(run: Run, prefix: str, steps: tuple[Step, ...]) -> bool:
    return all(run.step(prefix + step.id).status in STEP_SATISFIED for step in steps)
