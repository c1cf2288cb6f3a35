"""Who skips the first step of an inlined workflow skips all of it, unless it has begun or asks a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from domain.facts import after, fresh, plan
from handrail.domain.definition.model import Category, Definition
from handrail.domain.journal.event import StepSkipped
from handrail.domain.policy.act import Act, act_of
from handrail.domain.run.command import CompleteStep, FailStep, HandOutStep, OpenStep, SkipStep
from handrail.domain.run.decide import decide
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus

FRAME = {"id": "frame", "prompt": "x"}
LOOK = {"id": "look", "prompt": "y"}
CHECKED = {**LOOK, "checks": [{"rule": "length", "min": 3}]}
MAP = {"id": "map", "repeat": {"times": 2}, "steps": [{"id": "draw", "prompt": "z"}]}
SKIP = SkipStep(step="context.frame", reason="it is small")


def calling(*routine: Mapping[str, Any], **said: Any) -> Definition:
    outer = plan({"id": "context", "workflow": "routine@1.0.0", **said}, {"id": "next", "prompt": "go"})
    return replace(outer, pinned={"routine@1.0.0": plan(*routine)})


def opened(definition: Definition) -> Run:
    """The first step of the routine was given to an agent."""
    return after(fresh(definition), [OpenStep(step="context"), HandOutStep(step="context.frame", until=0)], definition)


def test_the_rest_of_a_routine_is_skipped_with_its_first_step() -> None:
    definition = calling(FRAME, CHECKED, MAP)
    assert decide(opened(definition), SKIP, definition) == [
        StepSkipped(step="context.frame", reason="it is small"),
        StepSkipped(step="context.look", reason="skipped with context.frame: it is small", was_gated=True),
        StepSkipped(step="context.map", reason="skipped with context.frame: it is small"),
    ]


@pytest.mark.parametrize("first", ["look", "frame"])
def test_a_later_step_and_a_failed_one_are_skipped_alone(first: str) -> None:
    definition = calling(FRAME, LOOK, MAP)
    run = opened(definition)
    if first == "look":
        run = after(run, [CompleteStep(step="context.frame")], definition)
    else:
        run = after(
            run, [FailStep(step="context.frame", category=Category.TOOL_ERROR, message="could not")], definition
        )
    run = after(run, [SkipStep(step=f"context.{first}", reason="no")], definition)
    assert run.step("context.map").status is StepStatus.PENDING


def test_a_step_outside_of_a_routine_is_skipped_alone() -> None:
    definition = plan(FRAME, LOOK)
    run = after(fresh(definition), [SkipStep(step="frame", reason="no")], definition)
    assert run.step("look").status is StepStatus.PENDING


def test_a_person_in_the_routine_is_asked_all_the_same() -> None:
    definition = calling(FRAME, {"id": "ask", "approve": "Go?"})
    run = after(opened(definition), [SKIP], definition)
    assert run.step("context.ask").status is StepStatus.PENDING


@pytest.mark.parametrize(
    ("definition", "act"),
    [
        (calling(FRAME, LOOK), Act.SKIP),
        (calling(FRAME, CHECKED), Act.SKIP_CHECKS),
        (calling(FRAME, CHECKED, skippable="agent"), Act.SKIP),
        (calling(FRAME, {**LOOK, "skippable": "person"}, skippable="agent"), Act.SKIP_RESERVED),
        (calling(FRAME, CHECKED, skippable="nobody"), Act.SKIP_UNSKIPPABLE),
        (calling(FRAME, {"id": "ask", "approve": "Go?"}), Act.SKIP),
    ],
)
def test_skipping_a_routine_by_its_first_step_is_judged_as_skipping_the_routine(
    definition: Definition, act: Act
) -> None:
    assert act_of(opened(definition), definition, SKIP) is act
