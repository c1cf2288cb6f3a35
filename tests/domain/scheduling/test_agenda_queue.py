"""The agenda's queue: however often a step comes up in it, it is begun once."""

from __future__ import annotations

from domain.facts import after, fresh, plan
from handrail.domain.definition.model import Category, Effect
from handrail.domain.run.command import Command, CompleteStep, DeferStep, FailStep, OpenStep, RetryStep, StartAttempt
from handrail.domain.scheduling.agenda import Agenda


def test_a_step_whose_time_came_while_nobody_was_there_is_started_once() -> None:
    definition = plan({"id": "first", "tool": "x.y"}, {"id": "nap", "tool": "wait.for"})
    begun: list[Command] = [
        StartAttempt(step="first"),
        CompleteStep(step="first"),
        StartAttempt(step="nap", effect=Effect.NONE),
    ]
    run = after(fresh(definition), [*begun, DeferStep(step="nap", due=5)], definition)
    agenda = Agenda(definition, run)
    agenda.keep_up(10)
    agenda.update(run, ["nap"])
    agenda.keep_up(11)
    assert list(agenda.ready_steps.calls) == ["nap"]


def test_a_loop_that_is_to_be_retried_after_a_restart_is_started_once() -> None:
    definition = plan(
        {"id": "first", "tool": "x.y"}, {"id": "loop", "each": "[1]", "steps": [{"id": "in", "tool": "x.y"}]}
    )
    begun: list[Command] = [StartAttempt(step="first"), CompleteStep(step="first"), OpenStep(step="loop", rounds=0)]
    failed = FailStep(step="loop", category=Category.INVALID_INPUT, message="no list")
    run = after(fresh(definition), [*begun, failed, RetryStep(step="loop", reason="fixed")], definition)
    assert list(Agenda(definition, run).ready_steps.others) == ["loop"]
