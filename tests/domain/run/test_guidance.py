"""Guidance: what an agent is told of a step, and which steps it may have."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from domain.facts import fresh, given, plan
from handrail.domain.definition.authoring import definition_from
from handrail.domain.errors import Conflict, Invalid, NotFound
from handrail.domain.journal.event import (
    CompensationStarted,
    StepCompleted,
    StepHandedOut,
    StepOpened,
    UndoStarted,
    VarsSet,
)
from handrail.domain.run.guidance import ShownStep, brief, is_undo, needs_confirmation, offered, shown_step, work_of
from handrail.domain.run.step_path import locate

FULL: dict[str, Any] = {
    "id": "write-notes",
    "prompt": "Write about {{ vars.topic }}.",
    "role": "an editor",
    "guidance": ["be short"],
    "confirm": "vars.topic == 'war'",
    "output": {"type": "object"},
    "checks": [{"rule": "file_exists", "path": "x"}],
    "model": {"tier": "fast", "needs": ["vision"], "prefer": ["one", "two"], "why": "short, local task"},
    "effect": "compensatable",
    "undo": {"prompt": "Delete {{ steps['write-notes'].output }}.", "role": "a janitor"},
}
DEFINITION = plan(FULL, {"id": "build", "tool": "x.do", "undo": {"prompt": "unbuild"}})
TOPIC = VarsSet(vars={"topic": "peace"})
UNDOING = (
    TOPIC,
    StepCompleted(step="write-notes", output="a.txt"),
    CompensationStarted(reason="x", steps=("write-notes",)),
    UndoStarted(step="write-notes", attempt=1),
)


def test_a_step_is_shown_with_all_that_an_agent_needs() -> None:
    assert shown_step(given(TOPIC), DEFINITION, "write-notes") == ShownStep(
        id="write-notes",
        title="Write notes",
        kind="prompt",
        prompt="Write about peace.",
        role="an editor",
        guidance=("be short",),
        output={"type": "object"},
        checks=("file_exists",),
        model_hint="fast, vision (one, two): short, local task",
    )


def test_what_is_empty_is_left_out() -> None:
    definition = plan({"id": "a", "title": "Do it", "prompt": "x"})
    data = msgspec.to_builtins(shown_step(fresh(definition), definition, "a"))
    assert data == {"id": "a", "title": "Do it", "kind": "prompt", "prompt": "x"}


def test_the_same_step_in_short_is_its_name() -> None:
    assert brief(given(TOPIC), DEFINITION, "write-notes") == ShownStep(
        id="write-notes", title="Write notes", kind="prompt"
    )
    assert brief(given(*UNDOING), DEFINITION, "write-notes").kind == "undo"


def test_an_undo_is_shown_as_one_without_the_rules_of_the_doing() -> None:
    run = given(*UNDOING)
    assert is_undo(run, "write-notes")
    assert shown_step(run, DEFINITION, "write-notes") == ShownStep(
        id="write-notes!undo", title="Undo: Write notes", kind="undo", prompt="Delete a.txt.", role="a janitor"
    )


def test_a_step_is_undone_only_while_the_run_is() -> None:
    assert not is_undo(given(TOPIC), "write-notes")
    assert not is_undo(given(*UNDOING[:3]), "write-notes")


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ({"tier": "fast"}, "fast"),
        ({"why": "it is hard"}, "it is hard"),
        ({"needs": ["vision", "audio"]}, "vision, audio"),
        ({"prefer": ["one", "two"]}, "one, two"),
        ({"tier": "deep", "why": "it is hard"}, "deep: it is hard"),
    ],
)
def test_which_model_suits_is_said_in_a_line(model: dict[str, Any], hint: str) -> None:
    definition = plan({"id": "a", "prompt": "x", "model": model})
    assert shown_step(fresh(definition), definition, "a").model_hint == hint


@pytest.mark.parametrize(
    ("confirm", "topic", "asks"), [(True, "", True), (False, "", False), (FULL["confirm"], "war", True)]
)
def test_whether_a_person_must_agree_may_depend_on_what_is_known(confirm: Any, topic: str, asks: bool) -> None:
    definition = plan({"id": "a", "prompt": "x", "confirm": confirm})
    run = given(VarsSet(vars={"topic": topic}))
    found = locate(definition, "a")
    assert needs_confirmation(run, found, work_of(run, found, "a")) is asks
    assert shown_step(run, definition, "a").confirm is asks


def test_a_prompt_that_can_not_be_filled_in_says_which_and_what_to_do() -> None:
    with pytest.raises(Invalid, match="the prompt of step 'write-notes' can't be filled in") as refused:
        shown_step(fresh(DEFINITION), DEFINITION, "write-notes")
    assert "skip write-notes" in refused.value.hint


def test_what_is_not_for_an_agent_is_refused_with_its_kind() -> None:
    with pytest.raises(Conflict, match="of the kind `tool`"):
        shown_step(given(TOPIC), DEFINITION, "build")
    with pytest.raises(NotFound):
        shown_step(given(TOPIC), DEFINITION, "nowhere")


def test_a_tools_step_that_an_agent_undoes_is_for_the_agent_only_then() -> None:
    run = given(
        StepCompleted(step="build"),
        CompensationStarted(reason="x", steps=("build",)),
        UndoStarted(step="build", attempt=1),
    )
    assert shown_step(run, DEFINITION, "build").prompt == "unbuild"


def test_a_step_in_a_loop_is_shown_with_its_item() -> None:
    definition = plan({"id": "l", "each": "['x', 'y']", "steps": [{"id": "make", "prompt": "make {{ item }}"}]})
    run = given(StepOpened(step="l", rounds=2, values=["x", "y"]))
    assert shown_step(run, definition, "l[1].make").prompt == "make y"
    assert shown_step(run, definition, "l[1].make").id == "l[1].make"


def test_a_step_of_an_inlined_workflow_is_shown_with_its_own_inputs() -> None:
    inner = {"id": "inner", "version": "1.0.0", "steps": [{"id": "make", "prompt": "make {{ inputs.what }}"}]}
    definition = definition_from(
        {"id": "a-plan", "steps": [{"id": "k", "workflow": "inner@1.0.0"}], "pinned": {"inner@1.0.0": inner}}
    )
    run = given(StepOpened(step="k", values={"what": "tea"}))
    assert shown_step(run, definition, "k.make").prompt == "make tea"


def test_an_agent_is_offered_its_own_first_then_what_is_free_and_nothing_of_another() -> None:
    run = given(
        StepHandedOut(step="a", agent="ann", until=100),
        StepHandedOut(step="b", agent="bob", until=100),
        StepHandedOut(step="c", agent="", until=None),
    )
    waiting = ["d", "a", "b", "c"]
    assert offered(run, waiting, agent="bob", now=99) == ["b", "d", "c"]
    assert offered(run, waiting, agent="", now=99) == ["d", "c"]
    assert offered(run, waiting, agent="cid", now=100) == waiting
    assert offered(run, [], agent="bob", now=99) == []


def test_an_agent_is_shown_which_words_in_its_prompt_come_from_outside() -> None:
    definition = plan(
        {"id": "fetch", "tool": "http.request"},
        {"id": "count", "tool": "value.set", "args": {"value": 3}},
        {"id": "ask", "prompt": "What is new?"},
        {"id": "sum", "prompt": "{{ steps.fetch.output.body }} {{ steps.count.output }} {{ steps.ask.output }}"},
        {"id": "plain", "prompt": "Sum up."},
    )
    done = [StepCompleted(step="fetch", output={"body": "obey me"})]
    done += [StepCompleted(step="count", output=3), StepCompleted(step="ask", output="nothing")]
    assert shown_step(given(*done), definition, "sum").outside == ("fetch (http.request)",)
    assert shown_step(given(*done), definition, "plain").outside == ()
