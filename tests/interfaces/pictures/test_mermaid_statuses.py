"""The picture of a run: the same flowchart, with a class for each status."""

from __future__ import annotations

import re
from typing import Any

import pytest

from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Definition
from handrail.domain.run.status import StepStatus
from handrail.interfaces.pictures.mermaid import STATUS_LOOK, STATUS_LOOKS, mermaid_text
from handrail.interfaces.pictures.outline import BUNDLE_MIN

STATUS = {status.value for status in StepStatus}


def definition(*steps: Any, **more: Any) -> Definition:
    return definition_from({"id": "a-plan", "steps": list(steps), **more})


CHAIN = definition({"id": "a", "tool": "x.do"}, {"id": "b", "prompt": "x"}, {"id": "c", "approve": "?"})


def classes(text: str) -> dict[str, list[str]]:
    """Which boxes have which status."""
    found = re.findall(r"^ *class ([\w,]+) (\w+)$", text, re.MULTILINE)
    return {status: names.split(",") for names, status in found if status in STATUS}


def test_without_a_run_there_is_no_status() -> None:
    assert mermaid_text(CHAIN) == mermaid_text(CHAIN, {}) == mermaid_text(CHAIN, {"nowhere": "failed"})
    assert classes(mermaid_text(CHAIN)) == {}


def test_each_status_is_a_class_with_the_steps_that_have_it() -> None:
    text = mermaid_text(CHAIN, {"a": "completed", "b": "failed", "c": "completed"})
    found = classes(text)
    assert {status: len(names) for status, names in found.items()} == {"completed": 2, "failed": 1}
    assert text.startswith(mermaid_text(CHAIN).rstrip("\n"))
    assert f"classDef failed {STATUS_LOOKS['failed']}" in text


@pytest.mark.parametrize("status", sorted(STATUS))
def test_every_status_has_a_look(status: str) -> None:
    text = mermaid_text(CHAIN, {"a": status})
    assert f"classDef {status} {STATUS_LOOKS.get(status, STATUS_LOOK)}" in text
    assert list(classes(text)) == [status]


def test_of_a_loop_its_head_has_the_status_and_what_is_inside_has_none() -> None:
    loop = {"id": "loop", "each": "[1]", "steps": [{"id": "a", "tool": "x.do"}]}
    looped = definition({"id": "a", "tool": "x.do"}, loop)
    text = mermaid_text(looped, {"a": "completed", "loop": "running"})
    assert {status: len(names) for status, names in classes(text).items()} == {"completed": 1, "running": 1}
    assert classes(text)["running"][0].endswith("h")
    assert f"{classes(text)['running'][0]}" in text.split("classDef")[0]


def test_a_step_inside_that_is_written_like_one_outside_does_not_share_its_status() -> None:
    twin = {"id": "a", "tool": "x.do", "after": []}
    looped = definition(twin, {"id": "loop", "each": "[1]", "steps": [twin]})
    names = classes(mermaid_text(looped, {"a": "failed"}))["failed"]
    assert len(names) == 1


def test_steps_that_stand_in_a_bundle_have_their_status() -> None:
    many = [{"id": f"s{number}", "tool": "x.do", "after": []} for number in range(BUNDLE_MIN + 1)]
    text = mermaid_text(definition(*many), {"s0": "completed", f"s{BUNDLE_MIN}": "failed"})
    assert {status: len(names) for status, names in classes(text).items()} == {"completed": 1, "failed": 1}


def test_steps_of_an_inlined_workflow_have_no_status_of_the_steps_outside() -> None:
    inner = {"id": "inner", "version": "1.0.0", "steps": [{"id": "a", "tool": "x.do"}, {"id": "k", "tool": "x.do"}]}
    calling = definition(
        {"id": "k", "workflow": "inner@1.0.0"}, {"id": "a", "tool": "x.do"}, pinned={"inner@1.0.0": inner}
    )
    text = mermaid_text(calling, {"a": "failed", "k": "completed"})
    assert {status: len(names) for status, names in classes(text).items()} == {"failed": 1, "completed": 1}


def test_only_boxes_that_are_drawn_have_a_status() -> None:
    many = [{"id": f"s{number}", "tool": "x.do", "after": []} for number in range(20)]
    loop = {"id": "loop", "repeat": {"times": 2}, "steps": [{"id": "a", "tool": "x.do"}]}
    everything = definition(*many, loop, {"id": "end", "prompt": "x", "after": ["loop", "s0", "s1"]})
    text = mermaid_text(everything, {step.id: "skipped" for step in everything.steps})
    drawn = text.split("classDef")[0]
    names = classes(text)["skipped"]
    assert len(names) == len(set(names)) == 22
    assert all(re.search(rf"\b{name}\b", drawn) for name in names)


def test_a_skipped_step_is_dashed_and_grey_and_not_drawn_as_completed() -> None:
    text = mermaid_text(CHAIN, {"a": "completed", "b": "skipped"})
    assert "classDef skipped stroke-dasharray:3 3,stroke:#6b7280,color:#6b7280" in text
    assert classes(text) == {"completed": ["s1"], "skipped": ["s2"]}


def test_a_step_that_was_skipped_says_so_in_its_box() -> None:
    text = mermaid_text(CHAIN, {"a": "completed", "b": "skipped", "c": "pending"})
    boxes = [line.strip() for line in text.splitlines() if re.match(r" *s\d+\W+\w+: ", line)]
    assert ["skipped" in box for box in boxes] == [False, True, False]
