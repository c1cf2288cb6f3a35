"""The turn: what a run does next is found by looking alone, and is offered until it has happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from domain.facts import after, fresh, plan
from handrail.domain.definition.model import Category, Definition
from handrail.domain.run.command import (
    Command,
    CompleteStep,
    ExpireApproval,
    FailAttempt,
    FinishRun,
    HandOutStep,
    LoseAttempt,
    OpenStep,
    RequestApproval,
    SetVars,
    SkipStep,
    StartAttempt,
    StartRound,
)
from handrail.domain.scheduling.agenda import Agenda
from handrail.domain.scheduling.turn import NOTHING, Turn, next_turn, ready_for_agent

DONE: list[Command] = [StartAttempt(step="a"), CompleteStep(step="a")]
LATER = FailAttempt(step="a", category=Category.TRANSIENT, message="not now", due=50)


def unchecked(_: Definition, given: Any) -> tuple[Any, Sequence[str]]:
    return given, ()


def agenda_after(definition: Definition, *commands: Command, now: int = 10) -> Agenda:
    agenda = Agenda(definition, after(fresh(definition), list(commands), definition))
    agenda.keep_up(now)
    return agenda


def turn_of(agenda: Agenda, **more: Any) -> Turn:
    return next_turn(agenda, check=unchecked, **more)


TOOL = {"id": "a", "tool": "x.y"}
LOOP = {"id": "loop", "each": "[1, 2]", "steps": [{"id": "in", "tool": "x.y"}]}
STATES: dict[str, tuple[Definition, list[Command], Turn]] = {
    "a step to call": (plan(TOOL), [], Turn(calls=("a",))),
    "an attempt that was lost": (plan(TOOL), [StartAttempt(step="a")], Turn((LoseAttempt(step="a"),))),
    "a run that is done": (plan(TOOL), DONE, Turn((FinishRun(),))),
    "a loop to open": (plan(LOOP), [], Turn((OpenStep(step="loop", rounds=2, values=[1, 2]),))),
    "a round to call": (
        plan(LOOP),
        [OpenStep(step="loop", rounds=2, values=[1, 2])],
        Turn(calls=("loop[0].in",)),
    ),
    "a loop that is over": (
        plan(LOOP),
        [OpenStep(step="loop", rounds=0, values=[])],
        Turn((CompleteStep(step="loop"),)),
    ),
    "a next round": (
        plan({"id": "loop", "repeat": {"times": 2}, "steps": [{"id": "in", "tool": "x.y"}]}),
        [OpenStep(step="loop")],
        Turn((StartRound(step="loop"),)),
    ),
    "a question that expired": (
        plan({"id": "ask", "approve": "?"}),
        [RequestApproval(step="ask", expires=5)],
        Turn((ExpireApproval(step="ask"),)),
    ),
    "a retry whose time has not come": (plan(TOOL), [StartAttempt(step="a"), LATER], NOTHING),
    "a step for an agent": (plan({"id": "p", "prompt": "do"}), [], NOTHING),
}


@pytest.mark.parametrize("name", STATES)
def test_what_comes_next_is_offered_at_every_look_until_it_has_happened(name: str) -> None:
    definition, commands, wanted = STATES[name]
    agenda = agenda_after(definition, *commands)
    assert [turn_of(agenda) for _ in range(3)] == [wanted] * 3


def test_a_call_that_is_under_way_is_not_offered_again() -> None:
    definition = plan(TOOL, {"id": "b", "tool": "x.y", "after": []})
    agenda = agenda_after(definition)
    assert turn_of(agenda).calls == ("a", "b")
    assert turn_of(agenda, under_way={"a"}).calls == ("b",)
    assert turn_of(agenda, under_way={"a"}, at_most=0) == NOTHING


def test_an_attempt_that_somebody_works_on_is_not_lost_and_the_run_not_over() -> None:
    agenda = agenda_after(plan(TOOL), StartAttempt(step="a"))
    assert turn_of(agenda, under_way={"a"}) == NOTHING
    assert turn_of(agenda_after(plan(TOOL), *DONE), under_way={"a"}) == NOTHING


def test_a_time_that_a_reader_has_taken_in_is_not_lost_for_the_next() -> None:
    agenda = agenda_after(plan(TOOL), StartAttempt(step="a"), LATER)
    assert (agenda.next_due, agenda.waits_for_time) == (50, True)
    for now in (50, 60, 40):  # also one whose clock is behind
        agenda.keep_up(now)
        assert turn_of(agenda).calls == ("a",)
    assert agenda.next_due is None


def test_the_end_of_an_agents_claim_is_no_time_that_handrail_waits_for() -> None:
    agenda = agenda_after(plan({"id": "p", "prompt": "do"}), HandOutStep(step="p", agent="bo", until=90, at=1))
    assert (agenda.next_due, agenda.waits_for_time) == (None, False)


def test_a_prompt_whose_condition_does_not_hold_any_more_is_skipped_and_no_agent_is_asked() -> None:
    definition = plan({"id": "p", "prompt": "do", "when": "vars.go"})
    before = agenda_after(definition, SetVars(vars={"go": True}))
    assert (turn_of(before), ready_for_agent(before, check=unchecked)) == (NOTHING, ["p"])
    later = agenda_after(definition, SetVars(vars={"go": True}), SetVars(vars={"go": False}))
    assert [type(command) for command in turn_of(later).commands] == [SkipStep]
    assert ready_for_agent(later, check=unchecked) == []
