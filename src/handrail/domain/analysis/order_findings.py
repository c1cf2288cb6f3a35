"""Findings about order: duplicate ids, cycles, and `after` that names no step, the step itself, or contradicts
`revisit`.

Pure. Each list of steps, the top one and every loop's body, is a graph of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from handrail.domain.checks.finding import Flaw, Path, Severity, place
from handrail.domain.definition.graph import cycles_in
from handrail.domain.definition.model import Definition, Step
from handrail.domain.suggestion import did_you_mean

CYCLES_REPORTED_MAX: Final = 10
CYCLE_SHOWN_MAX: Final = 20


def order_flaws(definition: Definition) -> Iterator[Flaw]:
    """What is wrong with the ids and the order of the steps, list by list."""
    yield from _list_flaws(definition.steps, ("steps",))
    if definition.revisit:
        yield from _revisit_flaws(definition.steps)


def _revisit_flaws(steps: tuple[Step, ...]) -> Iterator[Flaw]:
    """Steps that are looked at again are done in the order of the list: no other order can be meant."""
    for index, step in enumerate(steps):
        before = (steps[index - 1].id,) if index else ()
        if step.after != before:
            yield Flaw(
                rule="revisit_order",
                severity=Severity.CRITICAL,
                path=("steps", index, "after"),
                message=f"with `revisit`, steps are done in the order of the list, but `{step.id}` has an `after`",
                fix="remove the `after`, or `revisit`",
            )


def _list_flaws(steps: tuple[Step, ...], path: Path) -> Iterator[Flaw]:
    twice = list(_duplicates(steps, path))
    yield from twice
    count = Counter(step.id for step in steps)
    for index, step in enumerate(steps):
        yield from _after_flaws(step, (*path, index), count)
    if not twice:  # with duplicate ids, the order of steps is undefined
        yield from _cycle_flaws(steps, path)
    for index, step in enumerate(steps):
        yield from _list_flaws(step.body, (*path, index, "steps"))


def _duplicates(steps: tuple[Step, ...], path: Path) -> Iterator[Flaw]:
    first: dict[str, int] = {}
    for index, step in enumerate(steps):
        if first.setdefault(step.id, index) != index:
            yield Flaw(
                rule="duplicate_id",
                severity=Severity.CRITICAL,
                path=(*path, index, "id"),
                message=f"the id `{step.id}` is used twice in one list, first at {place((*path, first[step.id]))}",
                fix="give one of them another id",
            )


def _after_flaws(step: Step, path: Path, known: Counter[str]) -> Iterator[Flaw]:
    for index, name in enumerate(step.after):
        here = (*path, "after", index)
        if name == step.id and known[name] == 1:
            yield Flaw(
                rule="after_itself",
                severity=Severity.CRITICAL,
                path=here,
                message=f"step `{name}` waits for itself",
                fix=f"remove `{name}` from its `after`",
            )
        elif name not in known:
            yield Flaw(
                rule="unknown_step",
                severity=Severity.CRITICAL,
                path=here,
                message=f"there is no step `{name}` in this list",
                fix=did_you_mean(name, known),
            )


def _cycle_flaws(steps: tuple[Step, ...], path: Path) -> Iterator[Flaw]:
    places = {step.id: index for index, step in enumerate(steps)}
    others = [step for step in steps if step.id not in step.after]  # a step after itself has its own finding
    for cycle in cycles_in(others, most=CYCLES_REPORTED_MAX):
        first, last = cycle[0], cycle[-2]
        yield Flaw(
            rule="cycle",
            severity=Severity.CRITICAL,
            path=(*path, places[first], "after", steps[places[first]].after.index(last)),
            message=f"these steps wait for each other: {_shown_cycle(cycle)}",
            fix=f"remove `{last}` from the `after` of `{first}`, or break the cycle elsewhere",
        )


def _shown_cycle(cycle: tuple[str, ...]) -> str:
    if len(cycle) > CYCLE_SHOWN_MAX:
        cycle = (
            *cycle[: CYCLE_SHOWN_MAX // 2],
            f"... {len(cycle) - CYCLE_SHOWN_MAX} more",
            *cycle[-CYCLE_SHOWN_MAX // 2 :],
        )
    return " -> ".join(cycle)
