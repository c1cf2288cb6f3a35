"""Findings about loops and constant conditions: too many rounds, no end, or unreachable steps.

Pure. A skipped step counts as satisfied, so the steps after an unreachable step are still reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.definition.model import (
    LOOP_ROUNDS_DEFAULT,
    AtMax,
    Call,
    Definition,
    Each,
    Repeat,
    Rounds,
    Step,
    Work,
    walk,
)
from handrail.domain.errors import HandrailError
from handrail.domain.json import Json
from handrail.domain.language.expression import compile_expression

LOOP_STEPS_MAX: Final = 100_000
"""How many steps a loop may execute, including nested loops."""


class Constants:
    """The values of constant expressions, each evaluated once."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[Json, ...]] = {}

    def of(self, source: str | None) -> tuple[Json, ...]:
        """The constant value of an expression, in a tuple; () if it is not constant or can't be parsed."""
        if source is None:
            return ()
        if source not in self.known:
            try:
                self.known[source] = (compile_expression(source, {}).evaluate({}),)
            except HandrailError:
                self.known[source] = ()
        return self.known[source]


class Sizes:
    """How many steps a list can execute, including loops and called workflows."""

    def __init__(self, pinned: Mapping[str, Definition], constants: Constants) -> None:
        self.pinned = pinned
        self.constants = constants
        self.calls: dict[str, int] = {}

    def of(self, steps: tuple[Step, ...]) -> int:
        """The maximum number of steps of one pass through the list."""
        return sum(1 + self.inside(step.work) for step in steps)

    def inside(self, work: Work) -> int:
        """The maximum number of steps inside the work of one step."""
        match work:
            case Each() | Repeat():
                return self.rounds(work) * self.of(work.steps)
            case Call(workflow=name) if name in self.pinned:
                if name not in self.calls:
                    self.calls[name] = 0  # while it is counted: the recursion must end even for a cycle of workflows
                    self.calls[name] = self.of(self.pinned[name].steps)
                return self.calls[name]
            case _:
                return 0

    def rounds(self, loop: Each | Repeat) -> int:
        """The maximum number of rounds of a loop."""
        bound, written = _bounds(loop, self.constants)
        return bound if written is None else min(bound, written)


def loop_flaws(definition: Definition) -> Iterator[Flaw]:
    """Loops that always exceed their own bound, or that multiply to more steps than a run may have."""
    constants = Constants()
    sizes = Sizes(definition.pinned, constants)
    for path, step in walk(definition.steps):
        if not isinstance(step.work, Each | Repeat):
            continue
        bound, written = _bounds(step.work, constants)
        if written is not None and written > bound and _at_max(step.work) is AtMax.FAIL:
            yield Flaw(
                rule="loop_bound",
                severity=Severity.MAJOR,
                path=path,
                message=f"the loop makes {written:,} rounds, but at most {bound:,} are allowed: it always fails",
                fix=f"write `max: {written}`",
            )
        once, all_rounds = sizes.of(step.body), sizes.inside(step.work)
        if once <= LOOP_STEPS_MAX < all_rounds:  # of nested loops, only the one that exceeds the limit
            yield Flaw(
                rule="loop_bound",
                severity=Severity.CRITICAL,
                path=path,
                message=f"the loop can have {all_rounds:,} steps ({sizes.rounds(step.work):,} rounds of {once:,})",
                fix=f"give it, or a loop inside it, a smaller `max`: at most {LOOP_STEPS_MAX:,} steps in all",
            )


def loop_notes(definition: Definition) -> Iterator[Flaw]:
    """Steps that are never reached, loops that never end by themselves, and loops without a written bound."""
    constants = Constants()
    for path, step in walk(definition.steps):
        if constants.of(step.when) == (False,):
            yield _note("unreachable", (*path, "when"), f"`{step.id}` is never reached: its condition is always false")
        if isinstance(step.work, Each | Repeat) and _bounds(step.work, constants)[1] == 0:
            key = "each" if isinstance(step.work, Each) else "repeat"
            yield _note("unreachable", (*path, key), f"the steps in `{step.id}` are never reached: it has no rounds")
        if isinstance(step.work, Repeat):
            yield from _end_notes(step.id, step.work, (*path, "repeat"), constants)


def _end_notes(name: str, loop: Repeat, path: Path, constants: Constants) -> Iterator[Flaw]:
    rounds = loop.repeat
    if rounds.times is not None:
        return
    if constants.of(rounds.until) == (False,) or constants.of(rounds.while_) == (True,):
        message = f"the loop `{name}` never ends by itself: it {_ends(rounds)} after {rounds.bound:,} rounds"
        yield _note("endless_loop", path, message, "let the condition depend on a step inside, or write `times:`")
    elif rounds.max is None:
        message = f"the loop `{name}` has no `max`: it {_ends(rounds)} after {LOOP_ROUNDS_DEFAULT} rounds, the default"
        yield _note("default_bound", path, message, "write `max:` to say how many rounds are reasonable")


def _at_max(loop: Each | Repeat) -> AtMax:
    return loop.at_max if isinstance(loop, Each) else loop.repeat.at_max


def _ends(rounds: Rounds) -> str:
    return "is left" if rounds.at_max is AtMax.LEAVE else "fails"


def _bounds(loop: Each | Repeat, constants: Constants) -> tuple[int, int | None]:
    """How many rounds are allowed, and how many there will be if that is constant."""
    if isinstance(loop, Each):
        items = constants.of(loop.items)
        return loop.max, len(items[0]) if items and isinstance(items[0], list | tuple) else None
    never_starts = constants.of(loop.repeat.while_) == (False,)
    return loop.repeat.bound, 0 if never_starts else loop.repeat.times


def _note(rule: str, path: Path, message: str, fix: str = "fix it, or remove the step") -> Flaw:
    return Flaw(rule=rule, severity=Severity.MINOR, path=path, message=message, fix=fix)
