"""Prompts: placeholders, braces, and all that a step says in one text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.definitions import patient
from handrail.domain.language.shape import ANY, NUMBER
from handrail.domain.language.template import compile_template
from handrail.library.workrail.naming import Counter, Names
from handrail.library.workrail.texts import filled, verbatim
from library.workrail.garden import faults, first, loop, notes, ours, step, workflow

NAMES = Names(items={"bed": "item"}, counters={"pass": Counter(1)})


def rendered(text: str, **values: Any) -> str:
    known = {"vars": {}, "item": {}, "index": 0, **values}
    return str(compile_template(text, {"vars": ANY, "item": ANY, "index": NUMBER}).render(known))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Dig {{depth}} cm.", "Dig 20 cm."),
        ("Dig {{ depth }} cm.", "Dig 20 cm."),
        ("{{depth}}", "20"),
        ("{{bed.name}}, {{ bed }}", 'Roses, {"name":"Roses"}'),
        ("Round {{pass}}", "Round 2 (counted from 0)"),
        ("{{missing}} {{my-var}} {{a.b.c}}", "<missing> <my-var> <a.b.c>"),
        ("{{class}} {{_x}}", "<class> <_x>"),
        ("{{wr.bindings.cake}}", "{{wr.bindings.cake}}"),
        ("{{#each beds}}{{/each}} {{ }} {{", "{{#each beds}}{{/each}} {{ }} {{"),
        ("{% if x %} {# note #} {%", "{% if x %} {# note #} {%"),
        ("${{{depth}}} {{{{ {{'a'}}", "${{{depth}}} {{{{ {{'a'}}"),
        ('{"a": {"b": 1}} }} %}', '{"a": {"b": 1}} }} %}'),
    ],
)
def test_placeholders_are_filled_in_and_other_braces_stay(text: str, shown: str) -> None:
    values = {"vars": {"depth": 20}, "item": {"name": "Roses"}, "index": 2}
    assert rendered(filled(text, NAMES), **values) == shown


@patient
@given(st.text("{}%#ab \n\"'-.[]", max_size=40))
def test_any_text_can_be_shown_as_it_is(text: str) -> None:
    assert rendered(verbatim(text)) == text
    rendered(filled(text, NAMES))


def test_the_blocks_of_a_prompt_come_in_a_fixed_order() -> None:
    blocks = {
        "verify": ["It grows."],
        "procedure": ["Dig.", [{"kind": "text", "text": "Wa"}, {"kind": "text", "text": "ter."}]],
        "outputRequired": {"height": "in cm"},
        "constraints": ["No frost."],
        "goal": "A tree.",
    }
    prompt = first(workflow({"id": "dig", "title": "Dig", "promptBlocks": blocks}))["prompt"]
    assert prompt == (
        "## Goal\nA tree.\n\n## Constraints\n- No frost.\n\n## Procedure\n1. Dig.\n2. Water.\n\n"
        "## What to submit\n- height: in cm\n\n## Verify\n- It grows."
    )


def test_a_fragment_is_there_only_if_its_condition_holds() -> None:
    fragments = [{"id": "rain", "when": {"var": "wet", "equals": True}, "text": "Take boots, {{name}}."}]
    prompt = first(workflow(step(promptFragments=fragments)))["prompt"]
    assert "Take boots, Ada." in rendered(prompt, vars={"wet": "yes", "name": "Ada"})
    assert "boots" not in rendered(prompt)


def test_a_step_is_reported_the_functions_it_mentions_and_the_run_is_reported_the_rest() -> None:
    functions = [
        {"name": "water", "definition": "Slowly.", "parameters": [{"name": "litres", "type": "number"}]},
        {"name": "prune", "definition": "In winter."},
        {"name": "weed", "definition": "By hand."},
    ]
    data = workflow(
        step("a", prompt="Then water (5)."),
        step("b", functionReferences=["prune()"], functionCalls=[{"name": "prune", "args": {"deep": True}}]),
        functionDefinitions=functions,
    )
    a, b = ours(data)["steps"]
    assert "water(litres: number): Slowly." in a["prompt"]
    assert "prune" not in a["prompt"]
    assert "prune(): In winter." in b["prompt"]
    assert "prune(deep: true)" in b["prompt"]
    assert ours(data)["guidance"] == ["WorkRailFunction weed(): By hand."]


def test_a_text_that_the_file_has_a_reference_for_is_shown_with_it() -> None:
    parts = [{"kind": "text", "text": "Use it"}, {"kind": "ref", "refId": "map"}]
    references = [{"id": "map", "title": "The map", "source": "./map.md", "purpose": "where things grow"}]
    data = workflow(step(promptBlocks={"goal": parts}), references=references)
    assert "Use it (see The map, ./map.md, where things grow)" in first(data)["prompt"]
    assert "steps[0].promptBlocks.goal" not in " ".join(notes(data))
    assert "./map.md" in ours(data)["guidance"][0]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"templateCall": {"templateId": "letter", "args": {"tone": "warm"}}}, ["`letter`", "tone: warm"]),
        ({"outputContract": {"contractRef": "garden.soil"}}, ["contractRef: garden.soil"]),
        ({"audit": {"prompt": "Safe?", "rubric": ["paths"]}}, ["## Audit", "Safe?", "paths"]),
        ({"verification": {"command": "walk"}}, ["## Verification", "command: walk"]),
        ({"assessmentRefs": ["soil"]}, ["`soil`"]),
    ],
)
def test_what_has_no_counterpart_is_reported_and_noted(more: Any, words: list[str]) -> None:
    data = workflow(step(**more))
    assert all(word in first(data)["prompt"] for word in words), first(data)["prompt"]
    assert notes(data)


def test_small_things_become_sentences() -> None:
    prompt = first(workflow(step(askForFiles=True, notesOptional=True)))["prompt"]
    assert "Ask the user for the files" in prompt
    assert "Notes are optional" in prompt


def test_guidance_that_shows_a_variable_stands_in_the_prompt_where_it_is_filled_in() -> None:
    found = first(workflow(step(guidance=["Slowly.", "For {{name}}.", "x " * 1500])))
    assert found["guidance"][0] == "Slowly."
    assert all(len(one) <= 2_000 for one in found["guidance"])
    assert "".join(found["guidance"][1:]).count("x") == 1500
    assert "For Ada." in rendered(found["prompt"], vars={"name": "Ada"})


def test_a_step_without_words_is_reported_by_its_title() -> None:
    assert first(workflow({"id": "dig", "title": "Dig {{deep}}", "askForFiles": False}))["prompt"].startswith(
        'Dig {{ "{{"'
    )


def test_role_and_model_come_from_the_step_or_from_what_is_around_it() -> None:
    found = ours(workflow(step("a", agentRole="You are calm.", modelTier="strong"), step("b"), modelTier="fast"))
    assert found["steps"][0]["role"] == "You are calm."
    assert [one["model"] for one in found["steps"]] == [{"tier": "strong"}, {"tier": "fast"}]


def test_variables_are_asked_of_the_steps_that_mention_them() -> None:
    found = ours(
        workflow(
            step("a", prompt="Say the size."),
            step("b"),
            step("c", prompt="It is {{size}}.", runCondition={"var": "size", "equals": "Large"}),
            step("d", runCondition={"var": "weather", "in": ["sun", "rain"]}),
        )
    )
    a, b, c, d = (one["prompt"] for one in found["steps"])
    assert '- `size` (expected: "Large")' in a
    assert "`vars`" not in b
    assert '- `weather` (expected: "sun" or "rain")' in c
    assert "`vars`" not in d


def test_what_a_step_is_confirmed_or_checked_by_may_be_submitted_with_it() -> None:
    rule = {"type": "contains", "value": "x", "message": "m", "condition": {"var": "risk", "equals": "high"}}
    found = ours(workflow(step(requireConfirmation={"var": "size", "equals": "Large"}, validationCriteria=[rule])))
    assert '- `size` (expected: "Large")' in found["steps"][0]["prompt"]
    assert '- `risk` (expected: "high")' in found["steps"][0]["prompt"]
    assert "preconditions" not in found


def test_what_no_step_can_set_before_is_a_precondition() -> None:
    found = ours(workflow(step(runCondition={"var": "size", "gt": 3}), preconditions=["A garden."]))
    assert found["preconditions"] == ["A garden.", "in `vars`, given at the start: `size` (expected: > 3)"]


def test_a_loops_condition_is_asked_before_it_and_in_each_round() -> None:
    found = ours(workflow(step("a"), loop("while", step("b"), step("c"), condition={"var": "dry"}), step("d")))
    a, rounds, d = found["steps"]
    b, c = rounds["steps"]
    assert ["`dry`" in one["prompt"] for one in (a, b, c, d)] == [True, False, True, False]


@pytest.mark.parametrize(
    ("value", "confirm"),
    [
        (True, True),
        (False, None),
        ({"kind": "human_approval"}, True),
        ({"kind": "coordinator_eval"}, True),
        ({"var": "n", "gt": 3}, "exists(vars.n) and is_number(vars.n) and vars.n > 3"),
        (
            {"kind": "human_approval", "condition": {"var": "n", "gt": 3}},
            "exists(vars.n) and is_number(vars.n) and vars.n > 3",
        ),
    ],
)
def test_the_user_is_asked_when_they_would_ask(value: Any, confirm: Any) -> None:
    assert first(workflow(step(requireConfirmation=value))).get("confirm") == confirm


@pytest.mark.parametrize("value", ["yes", 3, [], {"kind": "nobody"}])
def test_a_confirmation_that_nobody_understands_is_a_fault(value: Any) -> None:
    assert faults(workflow(step(requireConfirmation=value)))


def test_a_parallel_step_is_reported_as_one() -> None:
    delegations = [
        {"workflowId": "bake", "goal": "Bake {{n}} cakes"},
        {"workflowId": "sweep", "goal": "Sweep", "runCondition": {"var": "n", "gt": 3}},
    ]
    data = workflow(
        {
            "id": "both",
            "title": "Both",
            "type": "parallel",
            "parallelDelegations": delegations,
            "synthesis": {"prompt": "Say what is ready."},
        }
    )
    prompt = first(data)["prompt"]
    few, many = rendered(prompt, vars={"n": 2}), rendered(prompt, vars={"n": 4})
    assert "Bake 2 cakes" in few
    assert "Sweep" not in few
    assert "Sweep" in many
    assert "Say what is ready." in many
    assert "nothing is delegated" in notes(data)["steps[0]"]
