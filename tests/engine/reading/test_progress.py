"""The progress of a run: its total is known from the start, and what is not is shown apart."""

from __future__ import annotations

from typing import Any

import msgspec

from domain.facts import after, fresh, plan
from handrail.domain.definition.model import Definition, Effect
from handrail.domain.journal.event import How
from handrail.domain.run.command import (
    Command,
    CompensateStep,
    CompleteStep,
    FinishCompensation,
    OpenStep,
    SkipStep,
    StartAttempt,
    StartCompensation,
    StartRound,
    StartUndo,
)
from handrail.domain.run.state import Run
from handrail.engine.reading.progress import Progress, progress_of

MAKE = {"id": "make", "tool": "ci.make"}
REST = {"id": "rest", "tool": "x.y"}


def done(step: str) -> list[Command]:
    return [StartAttempt(step=step, effect=Effect.NONE), CompleteStep(step=step)]


def seen(run: Run, definition: Definition) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(progress_of(run, definition))
    return shown


def walked(definition: Definition, *commands: Command) -> list[Progress]:
    """The progress at the start, and after each command."""
    run = fresh(definition)
    found = [progress_of(run, definition)]
    for command in commands:
        run = after(run, [command], definition)
        found.append(progress_of(run, definition))
    return found


def require_steady(found: list[Progress]) -> None:
    assert {one.total for one in found} == {found[0].total}
    assert [one.done for one in found] == sorted(one.done for one in found)
    assert found[-1].done == found[-1].total


def inlining(*inner: dict[str, Any]) -> Definition:
    outer = plan({"id": "call", "workflow": "a-plan@1"}, REST)
    return msgspec.structs.replace(outer, pinned={"a-plan@1": plan(*inner)})


def test_the_rounds_of_a_list_that_is_known_are_counted_from_the_start() -> None:
    definition = plan({"id": "build", "each": "[1, 2]", "steps": [MAKE, {"id": "try", "tool": "x.y"}]}, REST)
    rounds = [command for number in (0, 1) for name in ("make", "try") for command in done(f"build[{number}].{name}")]
    opened = OpenStep(step="build", rounds=2, values=[1, 2])
    found = walked(definition, opened, *rounds, CompleteStep(step="build"), *done("rest"))
    require_steady(found)
    assert found[0] == Progress(done=0, total=6)
    assert all(not one.rounds and not one.in_rounds for one in found)


def test_rounds_that_are_not_known_at_the_start_are_shown_apart() -> None:
    definition = plan({"id": "list", "tool": "x.y"}, {"id": "build", "each": "steps.list.output", "steps": [MAKE]})
    begun = [*done("list"), OpenStep(step="build", rounds=3, values=[1, 2, 3])]
    rounds = [command for number in range(3) for command in done(f"build[{number}].make")]
    found = walked(definition, *begun, *rounds, CompleteStep(step="build"))
    require_steady(found)
    assert found[0] == Progress(done=0, total=2)
    run = after(fresh(definition), [*begun, *done("build[0].make")], definition)
    assert seen(run, definition) == {"done": 1, "total": 2, "rounds": {"build": "2 of 3"}, "in_rounds": 1}
    assert _round(definition, *begun) == "1 of 3"  # its first step is open, and nothing was journaled for it
    assert _round(definition, *begun, StartAttempt(step="build[0].make")) == "1 of 3"
    assert _round(definition, *begun, *rounds) == "3 of 3"
    assert found[-1] == Progress(done=2, total=2, in_rounds=3)


def _round(definition: Definition, *commands: Command) -> str:
    return progress_of(after(fresh(definition), commands, definition), definition).rounds["build"]


def test_the_rounds_of_a_repetition_are_shown_with_their_bound() -> None:
    definition = plan(
        {"id": "poll", "repeat": {"until": "1 == 2", "max": 5}, "steps": [{"id": "ask", "tool": "ci.ask"}]}
    )
    run = after(fresh(definition), [OpenStep(step="poll"), StartRound(step="poll", due=None)], definition)
    assert seen(run, definition) == {"done": 0, "total": 1, "rounds": {"poll": "1 of at most 5"}}


def test_the_steps_of_an_inlined_workflow_are_counted_from_the_start() -> None:
    definition = inlining({"id": "one", "tool": "x.y"}, {"id": "two", "tool": "x.y"})
    opened = OpenStep(step="call", values={})
    inner = [*done("call.one"), *done("call.two"), CompleteStep(step="call")]
    found = walked(definition, opened, *inner, *done("rest"))
    require_steady(found)
    assert found[0].total == 4


def test_what_is_inside_a_skipped_step_is_over_with_it() -> None:
    definition = inlining({"id": "one", "tool": "x.y"}, {"id": "two", "tool": "x.y"})
    (_, skipped) = walked(definition, SkipStep(step="call", reason="no"))
    assert skipped == Progress(done=3, total=4, skipped=1)


def test_a_loop_inside_a_counted_round_is_one_step() -> None:
    inner = {"id": "deep", "each": "[1]", "steps": [MAKE]}
    definition = plan({"id": "build", "each": "[1, 2]", "steps": [inner]}, REST)
    begun = [OpenStep(step="build", rounds=2, values=[1, 2]), OpenStep(step="build[0].deep", rounds=1, values=[1])]
    run = after(fresh(definition), [*begun, *done("build[0].deep[0].make")], definition)
    assert seen(run, definition) == {"done": 0, "total": 4, "in_rounds": 1}


def test_a_list_that_can_not_be_evaluated_counts_as_one_step() -> None:
    for items in ("inputs.names", "7"):
        definition = plan({"id": "build", "each": items, "steps": [MAKE]}, REST)
        assert progress_of(fresh(definition), definition) == Progress(done=0, total=2)


# --- what only becomes known while it runs, and what is undone ---------------------------------------------------


def full(run: Run, definition: Definition) -> Progress:
    return progress_of(run, definition, is_full=True)


def test_a_full_view_counts_the_rounds_that_became_known_and_says_the_same_at_every_step_from_then_on() -> None:
    items = {"id": "list", "tool": "x.y"}
    definition = plan(items, {"id": "all", "each": "steps.list.output", "steps": [MAKE]}, REST)
    run = after(
        fresh(definition), [*done("list"), OpenStep(step="all", rounds=500, values=list(range(500)))], definition
    )
    totals = set()
    for number in range(5):
        seen_now = full(run, definition)
        totals.add(seen_now.known_total)
        assert seen_now.known_done == 1 + number
        run = after(run, done(f"all[{number}].make"), definition)
    assert totals == {503}
    assert progress_of(run, definition).known_total == 0  # a short view does not count them


def test_a_run_that_is_undone_says_how_much_of_it_is_and_what_is_left() -> None:
    undo = {"tool": "x.undo"}
    definition = plan(
        {"id": "a", "tool": "x.do", "effect": "compensatable", "undo": undo},
        {"id": "b", "tool": "x.do", "effect": "irreversible"},
        {"id": "c", "tool": "x.do", "effect": "compensatable", "undo": undo},
    )
    steps = [
        command
        for name in ("a", "b", "c")
        for command in (StartAttempt(step=name, effect=Effect.COMPENSATABLE), CompleteStep(step=name))
    ]
    run = after(
        fresh(definition), [*steps[:4], SkipStep(step="c", reason="no"), StartCompensation(reason="x")], definition
    )
    assert seen(run, definition)["undone"] == {"done": 0, "of": 1, "not_undone": 1}
    run = after(run, [StartUndo(step="a"), CompensateStep(step="a", how=How.EXECUTED)], definition)
    run = after(run, [FinishCompensation()], definition)
    assert seen(run, definition)["undone"] == {"done": 1, "of": 1, "not_undone": 1}
