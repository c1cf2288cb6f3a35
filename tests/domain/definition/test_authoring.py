"""Reading a definition from data and printing it back loses nothing, and its hash speaks of its meaning alone."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.definitions import Data, patient, shaped, sound
from handrail.domain.definition.authoring import content_hash, definition_data, definition_from, slug
from handrail.domain.definition.model import Call, Each, Kind, Prompt, Repeat, Tool, title_of, walk

SHIP: Data = {
    "id": "ship",
    "inputs": {"version": {"type": "string"}},
    "steps": [
        {"id": "notes", "prompt": "Write.", "checks": [{"rule": "file_exists", "path": "a.md", "when": True}]},
        {"id": "tag", "tool": "git.tag", "args": {"name": "v1"}, "undo": {"tool": "git.untag", "args": {"name": "v1"}}},
        {"id": "build", "each": ["linux", "mac"], "as": "target", "steps": [{"id": "make", "tool": "ci.build"}]},
        {"id": "ready", "repeat": {"until": False, "max": 3}, "steps": ["Look."]},
        {"id": "tell", "workflow": "notify@^1", "with": {"text": "done"}, "after": [], "when": "inputs.version != ''"},
    ],
    "outputs": {"n": 1},
}


def test_a_step_without_after_follows_the_one_before_it_and_an_empty_after_depends_on_nothing() -> None:
    steps = definition_from(SHIP).steps
    assert [step.after for step in steps] == [(), ("notes",), ("tag",), ("build",), ()]


def test_each_kind_key_becomes_the_work_of_its_kind() -> None:
    steps = definition_from(SHIP).steps
    assert [step.kind for step in steps] == [Kind.PROMPT, Kind.TOOL, Kind.EACH, Kind.REPEAT, Kind.WORKFLOW]
    assert [type(step.work) for step in steps] == [Prompt, Tool, Each, Repeat, Call]


def test_an_expression_written_as_a_plain_value_is_kept_as_its_text() -> None:
    definition = definition_from(SHIP)
    each, repeat = definition.steps[2].work, definition.steps[3].work
    assert isinstance(each, Each)
    assert isinstance(repeat, Repeat)
    assert (each.items, repeat.repeat.until, definition.outputs["n"]) == ('["linux","mac"]', "false", "1")


def test_plain_texts_are_the_agents_steps_with_numbered_ids() -> None:
    definition = definition_from({"name": "Two Things!", "steps": ["First.", "Then."]})
    assert definition.id == "two-things"
    assert [(step.id, step.after) for step in definition.steps] == [("step-1", ()), ("step-2", ("step-1",))]


def test_every_step_is_met_with_its_path() -> None:
    paths = {step.id: path for path, step in walk(definition_from(SHIP).steps)}
    assert paths["make"] == ("steps", 2, "steps", 0)


@pytest.mark.parametrize(("title", "spoken"), [("Tag it", "Tag it"), ("", "Make the tag")])
def test_a_step_is_called_by_its_title_or_else_by_its_id(title: str, spoken: str) -> None:
    step = definition_from({"id": "a", "steps": [{"id": "make-the_tag", "title": title, "prompt": "x"}]}).steps[0]
    assert title_of(step) == spoken


@pytest.mark.parametrize(("name", "made"), [("Fix: bug #42", "fix-bug-42"), ("???", "plan"), ("a" * 99, "a" * 64)])
def test_an_id_is_made_of_a_name(name: str, made: str) -> None:
    assert slug(name) == made


@patient
@given(sound() | shaped())
def test_reading_what_was_printed_gives_the_same_definition(data: Data) -> None:
    definition = definition_from(data)
    assert definition_from(definition_data(definition)) == definition


@patient
@given(sound())
def test_printing_twice_gives_the_same_text(data: Data) -> None:
    printed = definition_data(definition_from(data))
    assert definition_data(definition_from(printed)) == printed


@patient
@given(sound(), st.randoms(use_true_random=False))
def test_the_hash_does_not_see_the_order_of_keys(data: Data, chance: random.Random) -> None:
    assert content_hash(definition_from(_shuffled(data, chance))) == content_hash(definition_from(data))


@patient
@given(sound(), sound())
def test_the_hash_differs_exactly_if_the_definition_does(one: Data, other: Data) -> None:
    first, second = definition_from(one), definition_from(other)
    assert (content_hash(first) == content_hash(second)) == (first == second)


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": {"version": {"type": "integer"}}},
        {"outputs": {"n": 2}},
        {"on_failure": "stop"},
        {"steps": [*SHIP["steps"][:-1], {**SHIP["steps"][-1], "after": ["ready"]}]},
        {"steps": [*SHIP["steps"][:-1], {**SHIP["steps"][-1], "with": {"text": "other"}}]},
        {"pinned": {"notify@1.0.0": {"id": "notify", "steps": ["Tell them."]}}},
    ],
)
def test_the_hash_sees_every_change_of_meaning(change: Data) -> None:
    assert content_hash(definition_from({**SHIP, **change})) != content_hash(definition_from(SHIP))


def test_the_hash_does_not_see_how_a_whole_number_is_written() -> None:
    one, other = ({**SHIP, "inputs": {"n": {"default": number}}} for number in (1, 1.0))
    assert content_hash(definition_from(one)) == content_hash(definition_from(other))


def test_the_hash_is_the_same_whether_order_is_implied_or_spelled_out() -> None:
    spelled = {**SHIP, "steps": [{**SHIP["steps"][0], "after": []}, *SHIP["steps"][1:]]}
    assert content_hash(definition_from(spelled)) == content_hash(definition_from(SHIP))


def _shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: _shuffled(value[key], chance) for key in keys}
    if isinstance(value, list):
        return [_shuffled(item, chance) for item in value]
    return value
