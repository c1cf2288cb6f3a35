"""Lists whose steps are looked at again (`revisit`), and loops that are left at their bound (`at_max`)."""

from __future__ import annotations

from typing import Any

import pytest

from domain.facts import after, fresh
from handrail.domain.analysis.loop_findings import loop_flaws, loop_notes
from handrail.domain.analysis.order_findings import order_flaws
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Category, Definition
from handrail.domain.errors import Conflict
from handrail.domain.run.command import (
    Command,
    CompleteStep,
    FailStep,
    HandOutStep,
    OpenStep,
    SetVars,
    SkipStep,
    StartRound,
)
from handrail.domain.scheduling.agenda import Agenda
from handrail.domain.scheduling.turn import Turn, next_turn, ready_for_agent

FIRST = {"id": "first", "prompt": "do", "when": "exists(vars.go)"}
SECOND = {"id": "second", "prompt": "do"}
THIRD = {"id": "third", "prompt": "do"}
BROKEN = {"id": "broken", "prompt": "do", "when": "vars.never == 1"}


def revisited(*steps: dict[str, Any]) -> Definition:
    return definition_from({"id": "again", "revisit": True, "steps": list(steps)})


def done(step: str) -> list[Command]:
    return [HandOutStep(step=step, at=1), CompleteStep(step=step)]


def agenda_of(definition: Definition, *commands: Command) -> Agenda:
    agenda = Agenda(definition, after(fresh(definition), list(commands), definition))
    agenda.keep_up(10)
    return agenda


def turn_of(agenda: Agenda) -> Turn:
    return next_turn(agenda, check=lambda _, given: (given, ()))


def for_agent(agenda: Agenda) -> list[str]:
    return ready_for_agent(agenda, check=lambda _, given: (given, ()))


def test_a_step_whose_condition_is_false_is_passed_but_not_skipped() -> None:
    agenda = agenda_of(revisited(FIRST, SECOND, THIRD))
    assert for_agent(agenda) == ["second"]
    assert not turn_of(agenda).commands


def test_it_comes_next_as_soon_as_its_condition_is_true() -> None:
    agenda = agenda_of(revisited(FIRST, SECOND, THIRD), *done("second"), SetVars(vars={"go": 1}))
    assert for_agent(agenda) == ["first"]


def test_one_step_is_done_at_a_time() -> None:
    definition = revisited(FIRST, SECOND, THIRD)
    agenda = agenda_of(definition, HandOutStep(step="second", at=1), SetVars(vars={"go": 1}))
    assert not agenda.ready
    with pytest.raises(Conflict, match="it waits for 'second'"):
        agenda_of(definition, HandOutStep(step="second", at=1), HandOutStep(step="third", at=1))


def test_what_is_left_at_the_end_is_skipped() -> None:
    agenda = agenda_of(revisited(FIRST, SECOND, {**THIRD, "when": "false"}), *done("second"))
    reasons = [command.reason for command in turn_of(agenda).commands if isinstance(command, SkipStep)]
    assert reasons == ["`when: exists(vars.go)` is false", "`when: false` is false"]


def test_a_condition_that_cannot_be_evaluated_fails_its_step_and_is_not_passed() -> None:
    agenda = agenda_of(revisited(BROKEN, SECOND))
    assert agenda.ready == {"broken"}
    assert len(turn_of(agenda).commands) == 2


def test_a_failed_step_keeps_the_others_waiting_until_somebody_has_decided() -> None:
    failed: list[Command] = [
        HandOutStep(step="second", at=1),
        FailStep(step="second", category=Category.TOOL_ERROR, message="no"),
    ]
    agenda = agenda_of(revisited(SECOND, THIRD), *failed)
    assert not agenda.ready
    assert not agenda.is_stuck


def test_a_step_may_not_start_before_those_in_front_of_it() -> None:
    with pytest.raises(Conflict, match="it waits for 'second'"):
        agenda_of(revisited(FIRST, SECOND, THIRD), HandOutStep(step="third", at=1))


def test_an_order_of_its_own_is_a_finding() -> None:
    (flaw,) = order_flaws(revisited(SECOND, {**THIRD, "after": []}))
    assert (flaw.rule, flaw.path) == ("revisit_order", ("steps", 1, "after"))
    assert not list(order_flaws(revisited(FIRST, SECOND, THIRD)))


def repeat(**more: Any) -> Definition:
    rounds = {"while": "true", "max": 1, **more}
    return definition_from({"id": "loops", "steps": [{"id": "loop", "repeat": rounds, "steps": [SECOND]}]})


ROUND: list[Command] = [OpenStep(step="loop"), StartRound(step="loop"), *done("loop[0].second")]


def test_a_loop_fails_at_its_bound_unless_it_is_to_be_left() -> None:
    (failed,) = turn_of(agenda_of(repeat(), *ROUND)).commands
    assert isinstance(failed, FailStep)
    assert turn_of(agenda_of(repeat(at_max="leave"), *ROUND)).commands == (CompleteStep(step="loop"),)


def each(**more: Any) -> Definition:
    loop = {"id": "loop", "each": "[1, 2, 3]", "max": 2, "steps": [SECOND], **more}
    return definition_from({"id": "loops", "steps": [loop]})


def test_a_loop_over_too_many_items_fails_unless_it_is_to_be_left() -> None:
    assert any(isinstance(one, FailStep) for one in turn_of(agenda_of(each())).commands)
    left = turn_of(agenda_of(each(at_max="leave"))).commands
    assert left == (OpenStep(step="loop", rounds=2, values=[1, 2]),)


def test_findings_say_what_happens_at_the_bound() -> None:
    assert [flaw.rule for flaw in loop_flaws(each())] == ["loop_bound"]
    assert not list(loop_flaws(each(at_max="leave")))
    assert "it fails after 1 rounds" in next(loop_notes(repeat())).message
    assert "it is left after 1 rounds" in next(loop_notes(repeat(at_max="leave"))).message
