"""Who may skip a step: what it is, what its author says, and what it contains."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from domain.facts import plan
from handrail.domain.definition.model import Definition, Skippable
from handrail.domain.journal.event import About
from handrail.domain.policy.skipping import who_may_skip
from handrail.domain.run.step_state import StepState

CHECKED = {"prompt": "x", "checks": [{"rule": "length", "min": 3}]}
NOTED = {"prompt": "x", "checks": [{"rule": "length", "min": 3, "severity": "minor"}]}
ASKED = {"approve": "Go?"}
AGENT, PERSON, NOBODY = Skippable


def who(step: dict[str, Any], state: StepState | None = None, called: Definition | None = None) -> Skippable:
    definition = plan({"id": "s", **step})
    definition = replace(definition, pinned={"called@1.0.0": called} if called else {})
    return who_may_skip(definition, definition.steps[0], state or StepState())


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"prompt": "x"}, AGENT),
        ({"tool": "x.do"}, AGENT),
        (NOTED, AGENT),
        ({**NOTED, "bar": "minor"}, PERSON),
        (CHECKED, PERSON),
        ({"prompt": "x", "confirm": True}, PERSON),
        ({"prompt": "x", "confirm": "output.big"}, PERSON),
        ({"tool": "x.do", "checks": [{"rule": "json"}]}, PERSON),
        (ASKED, PERSON),
        ({**CHECKED, "skippable": "agent"}, AGENT),
        ({"prompt": "x", "skippable": "person"}, PERSON),
        ({"prompt": "x", "skippable": "nobody"}, NOBODY),
        ({**ASKED, "skippable": "nobody"}, NOBODY),
    ],
)
def test_a_gate_is_skipped_by_a_person_unless_its_author_says_otherwise(step: dict[str, Any], expected: Any) -> None:
    assert who(step) is expected


def test_an_author_can_not_let_an_agent_skip_an_approval() -> None:
    assert who({**ASKED, "skippable": "agent"}) is PERSON


@pytest.mark.parametrize(
    ("inner", "expected"),
    [({"prompt": "x"}, AGENT), (CHECKED, PERSON), (ASKED, PERSON), ({**ASKED, "skippable": "nobody"}, NOBODY)],
)
def test_a_step_that_contains_others_is_as_strict_as_the_strictest_of_them(inner: Any, expected: Any) -> None:
    inside = {"id": "inner", **inner}
    loop = {"repeat": {"times": 2}, "steps": [{"id": "deep", "each": "inputs.t", "steps": [inside]}]}
    assert who(loop) is expected
    assert who({"workflow": "called@1.0.0"}, called=plan(inside)) is expected


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (CHECKED, AGENT),
        (ASKED, PERSON),
        ({"prompt": "x", "skippable": "person"}, PERSON),
        ({**CHECKED, "skippable": "nobody"}, NOBODY),
    ],
)
def test_an_author_can_let_an_agent_skip_a_routine_with_its_checks_but_no_more(inner: Any, expected: Any) -> None:
    inside = {"id": "inner", **inner}
    assert who({"workflow": "called@1.0.0", "skippable": "agent"}, called=plan(inside)) is expected
    assert who({"each": "inputs.t", "steps": [inside], "skippable": "agent"}) is expected


def test_a_question_about_a_changed_tool_is_for_a_person() -> None:
    assert who({"tool": "x.do"}, StepState(about=About.TOOL)) is PERSON
    assert who({"tool": "x.do", "skippable": "nobody"}, StepState(about=About.TOOL)) is NOBODY
