"""Rehearsal: what a run would do, with all that is known before it begins, and nothing guessed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Definition, Effect
from handrail.domain.rehearsal.dry_run import Rehearsed, rehearse
from handrail.domain.secrets.redaction import REDACTED

EFFECTS = {"x.do": Effect.COMPENSATABLE, "x.read": Effect.NONE}


def definition(*steps: Any) -> Definition:
    inner = {"id": "inner", "version": "1.0.0", "steps": [{"id": "i", "tool": "x.do"}]}
    return definition_from({"id": "a-plan", "steps": list(steps), "pinned": {"inner@1.0.0": inner}})


def rehearsed(*steps: Any, **inputs: Any) -> list[list[Rehearsed]]:
    return rehearse(definition(*steps), inputs, EFFECTS)


def alone(step: Any, **inputs: Any) -> Rehearsed:
    ((found,),) = rehearsed(step, **inputs)
    return found


def test_steps_come_in_waves() -> None:
    waves = rehearsed(
        {"id": "a", "tool": "x.do"},
        {"id": "b", "tool": "x.do", "after": []},
        {"id": "c", "tool": "x.do", "after": ["a", "b"]},
    )
    assert [[step.id for step in wave] for wave in waves] == [["a", "b"], ["c"]]


def test_every_kind_is_reported_with_what_matters_of_it() -> None:
    steps = [
        {"id": "t", "title": "Tag it", "tool": "x.do", "args": {"name": "v{{ inputs.v }}"}, "undo": {"tool": "x.undo"}},
        {
            "id": "p",
            "prompt": "Write {{ inputs.v }}",
            "when": "inputs.v != ''",
            "undo": {"prompt": "x"},
            "effect": "compensatable",
        },
        {"id": "g", "approve": "Ship {{ inputs.v }}?"},
        {"id": "w", "workflow": "inner@1.0.0", "with": {"v": "{{ inputs.v }}"}},
        {"id": "e", "each": "[1]", "steps": [{"id": "m", "tool": "x.do"}, {"id": "n", "tool": "x.do"}]},
        {"id": "r", "repeat": {"times": 2}, "steps": [{"id": "m", "tool": "x.do"}]},
    ]
    reported = [msgspec.to_builtins(step) for (step,) in rehearsed(*steps, v="1.0")]
    assert reported == [
        {
            "id": "t",
            "kind": "tool",
            "title": "Tag it",
            "tool": "x.do",
            "args": {"name": "v1.0"},
            "effect": "compensatable",
            "undo": "x.undo",
        },
        {
            "id": "p",
            "kind": "prompt",
            "title": "P",
            "prompt": "Write 1.0",
            "when": "inputs.v != ''",
            "undo": "by the agent",
        },
        {"id": "g", "kind": "approve", "title": "G", "approve": "Ship 1.0?"},
        {"id": "w", "kind": "workflow", "title": "W", "workflow": "inner@1.0.0", "args": {"v": "1.0"}},
        {"id": "e", "kind": "each", "title": "E", "steps": ("m", "n")},
        {"id": "r", "kind": "repeat", "title": "R", "steps": ("m",)},
    ]


@pytest.mark.parametrize(
    "text", ["{{ steps.a.output }}", "{{ inputs.v }} and {{ steps.a.output }}", "{{ vars.x }}", "{{ run.id }}"]
)
def test_what_only_the_run_will_know_stays_as_it_was_written(text: str) -> None:
    ((_,), (found,)) = rehearsed({"id": "a", "tool": "x.do"}, {"id": "b", "tool": "x.do", "args": {"x": text}}, v="1.0")
    assert found.args == {"x": text}


def test_values_keep_their_type_and_templates_are_filled_in_however_deep() -> None:
    args = {"n": "{{ inputs.n }}", "deep": [{"x": "{{ inputs.n }}!"}, 5, None, True], "plain": "text"}
    assert alone({"id": "a", "tool": "x.do", "args": args}, n=3).args == {
        "n": 3,
        "deep": [{"x": "3!"}, 5, None, True],
        "plain": "text",
    }


@pytest.mark.parametrize("inputs", [{}, {"v": REDACTED}])
def test_what_can_not_be_filled_in_stays_as_it_was_written(inputs: dict[str, Any]) -> None:
    assert alone({"id": "a", "tool": "x.do", "args": {"x": "{{ inputs.v }}"}}, **inputs).args == {"x": "{{ inputs.v }}"}


def test_the_effect_is_the_steps_word_or_else_the_tools() -> None:
    assert alone({"id": "a", "tool": "x.read"}).effect is Effect.NONE
    assert alone({"id": "a", "tool": "x.read", "effect": "irreversible"}).effect is Effect.IRREVERSIBLE
    assert alone({"id": "a", "tool": "nobody.knows"}).effect is None


def test_how_a_step_is_undone_is_reported_in_a_word() -> None:
    undo = {"workflow": "inner@1.0.0"}
    assert alone({"id": "a", "tool": "x.do", "undo": undo}).undo == "inner@1.0.0"
    assert alone({"id": "a", "tool": "x.do"}).undo == ""
