"""What tools.json says about undoing becomes a call, with the arguments of the call that is undone and its output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from handrail.domain.checks.finding import Path as Place
from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolCall
from handrail.tools.mcp.declaration import UndoRule
from handrail.tools.mcp.values.undo_map import Undo, captured, undo_call, undo_of
from tools.calls import Fails


def undone(
    templates: Mapping[str, Any],
    args: Mapping[str, Any],
    output: Any = None,
    references: tuple[Place, ...] = (),
) -> ToolCall:
    call = ToolCall(tool="git.make", args=args, key="undo-key", run="run_1", step="a", references=references)
    rule = UndoRule(tool="take.away", args=templates)
    capture = msgspec.json.decode(msgspec.json.encode(captured(rule, "git", idempotent=True)))
    undo = undo_of(capture, "git")
    assert undo is not None
    return undo_call(call, undo, server="git", output=output)


def test_arguments_come_from_the_call_and_from_what_it_came_to() -> None:
    templates = {"name": "{{ args.name }}", "sha": "{{ output.sha }}", "all": ["x-{{ args.n }}", 1], "force": True}
    made = undone(templates, {"name": {"deep": 1}, "n": 2}, {"sha": "abc"})
    assert made.args == {"name": {"deep": 1}, "sha": "abc", "all": ["x-2", 1], "force": True}
    assert (made.tool, made.key, made.run, made.capture, made.output) == (
        "git.take.away",
        "undo-key",
        "run_1",
        None,
        None,
    )


def test_what_tools_said_is_data_and_not_a_template() -> None:
    made = undone({"a": "{{ output }}", "b": "{{ args.b }}"}, {"b": "{{ output }}"}, "{{ args.b }} ${secret:X}")
    assert made.args == {"a": "{{ args.b }} ${secret:X}", "b": "{{ output }}"}
    assert made.references == ()


def test_an_output_that_is_not_known_is_missed_only_where_it_is_needed() -> None:
    assert undone({"name": "{{ args.name }}"}, {"name": "a"}).args == {"name": "a"}
    with Fails(Category.INVALID_INPUT, "needs the output of git.make, which is not known"):
        undone({"sha": "{{ output.sha }}"}, {"name": "a"})
    with Fails(Category.INVALID_INPUT, "can't be determined"):
        undone({"sha": "{{ output.sha }}"}, {"name": "a"}, {"other": 1})


def test_references_to_secrets_stay_where_an_author_wrote_them() -> None:
    templates = {
        "own": "Bearer ${secret:OWN}",
        "passed": "{{ args.token }}",
        "whole": "{{args.deep}}",
        "mixed": "x {{ args.token }}",
        "data": "{{ args.data }}",
        "list": ["{{ args.deep.inner }}"],
        "answered": "{{ output.token }}",
    }
    args = {"token": "${secret:A}", "deep": {"inner": "${secret:B}", "data": "${secret:C}"}, "data": "${secret:D}"}
    made = undone(templates, args, {"token": "${secret:E}"}, references=(("token",), ("deep", "inner")))
    assert set(made.references) == {("own",), ("passed",), ("whole", "inner"), ("list", 0)}


def test_a_secret_that_is_no_longer_known_is_not_passed_on() -> None:
    with Fails(Category.INVALID_INPUT, "needs a secret"):
        undone({"a": [{"b": "{{ args.token }}"}]}, {"token": "[redacted]"})


@pytest.mark.parametrize(
    "capture",
    [
        None,
        "text",
        {},
        {"undo": None},
        {"undo": {"tool": "other.take", "args": {}}},
        {"undo": {"tool": "git.take"}},
        {"undo": {"tool": 1, "args": {}}},
    ],
)
def test_a_capture_of_another_kind_is_no_undo(capture: Any) -> None:
    assert undo_of(capture, "git") is None


def test_a_template_that_does_not_hold_any_more_is_reported() -> None:
    call = ToolCall(tool="git.make", args={}, key="k", run="run_1", step="a")
    with Fails(Category.INVALID_INPUT, "can't be determined"):
        undo_call(call, Undo("take", {"a": "{{ steps.b }}"}), server="git", output=None)
