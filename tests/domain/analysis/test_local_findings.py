"""What the place where a definition is to run has against it: tools, servers, arguments, fields, and rules."""

from __future__ import annotations

from typing import Any

import pytest

from domain.places import place_with
from handrail.domain.analysis.local import KnownTool
from handrail.domain.analysis.whole import analyse
from handrail.domain.checks.finding import Flaw, Severity, place
from handrail.domain.checks.rule import RuleCard
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Effect

TAG = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "force": {"type": "boolean"}},
    "required": ["name"],
    "additionalProperties": False,
}
MADE = {"type": "object", "properties": {"commit": {"type": "string"}}}
GIT = ("git.tag", KnownTool(effect=Effect.NONE, args=TAG, output=MADE))
ACME = RuleCard(name="acme_licence", summary="x", parameters={"spdx": {"type": "string"}}, required=("spdx",))


def found(*steps: dict[str, Any], **more: Any) -> list[Flaw]:
    definition = definition_from({"id": "plan", "inputs": {"v": {"type": "string"}}, "steps": list(steps)})
    return analyse(definition, place_with(None, GIT, **more))


def call(tool: str = "git.tag", **args: Any) -> dict[str, Any]:
    return {"id": "a", "tool": tool, "args": args}


def said(flaws: list[Flaw]) -> list[tuple[str, str, str, str]]:
    return [(one.rule, place(one.path), one.message, one.fix) for one in flaws]


def test_arguments_that_fit_or_are_not_known_yet_are_left_alone() -> None:
    assert found(call(name="v1", force=True)) == []
    assert found(call(name="{{ inputs.v }}", force="{{ inputs.v == 'x' }}")) == []
    assert found(call(name="${secret:TAG}")) == []


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"nmae": "x", "name": "y"}, ("steps[0].args.nmae", "takes no argument `nmae`", "did you mean `name`?")),
        ({"force": True}, ("steps[0].args", "`git.tag`: `name` is missing", "add `name`")),
        ({}, ("steps[0].tool", "`git.tag`: `name` is missing", "add `name`")),
        ({"name": 3}, ("steps[0].args.name", "a string is expected here", "put it in quotes")),
        ({"name": "{{ inputs.v }}", "force": "no"}, ("steps[0].args.force", "", "")),
    ],
)
def test_wrong_and_missing_arguments_are_errors_with_place_and_fix(
    args: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    [(rule, where, message, fix)] = said(found(call(**args)))
    assert (rule, where) == ("arguments", expected[0])
    assert expected[1] in message
    assert expected[2] in fix


def test_a_field_that_the_tools_output_does_not_have_is_an_error_unless_the_step_says_otherwise() -> None:
    reads = {"id": "b", "prompt": "{{ steps.a.output.comit }}"}
    [flaw] = found(call(name="x"), reads)
    assert (flaw.severity, place(flaw.path)) == (Severity.CRITICAL, "steps[1].prompt")
    assert "commit" in flaw.message + flaw.fix
    assert found(call(name="x"), {**reads, "prompt": "{{ steps.a.output.commit }}"}) == []
    own = {"type": "object", "properties": {"comit": {"type": "string"}}}
    assert found({**call(name="x"), "output": own}, reads) == []


def test_in_a_loop_too_the_tools_output_is_known() -> None:
    body = [call(name="x"), {"id": "b", "prompt": "{{ steps.each.a.output.comit }}"}]
    [flaw] = found({"id": "each", "each": "[1, 2]", "steps": body})
    assert place(flaw.path) == "steps[0].steps[1].prompt"


def test_a_server_that_is_not_configured_is_named_as_such() -> None:
    [flaw] = [one for one in found(call("gitlab.tag")) if one.rule == "unknown_tool"]
    assert flaw.severity is Severity.CRITICAL
    assert "no tool server `gitlab` is configured here" in flaw.message
    assert ".handrail/tools.json" in flaw.fix
    [flaw] = [one for one in found(call("git.tga")) if one.rule == "unknown_tool"]
    assert (flaw.message, flaw.fix) == ("there is no tool `git.tga`", "did you mean `git.tag`?")


def test_a_server_that_was_never_asked_leaves_a_note_and_one_that_was_an_error() -> None:
    unasked = [one for one in found(call("hub.x"), unasked=frozenset({"hub"})) if one.rule == "unasked_server"]
    assert [one.severity for one in unasked] == [Severity.MINOR]
    assert "handrail tools check hub" in unasked[0].fix
    [flaw] = [one for one in found(call("git.tga"), remembered=frozenset({"git"})) if one.rule == "unknown_tool"]
    assert "when it was last asked" in flaw.message
    assert flaw.fix == "did you mean `git.tag`? Or ask it again: handrail tools check git"


def checked(*checks: dict[str, Any], **more: Any) -> list[tuple[str, str, str, str]]:
    return said(found({"id": "a", "prompt": "x", "checks": list(checks)}, **more))


def test_rules_of_packages_are_checked_like_ours() -> None:
    rules = {"acme_licence": ACME}
    assert checked({"rule": "acme_licence", "spdx": "MIT"}, rules=rules) == []
    assert checked({"rule": "acme_licence", "spdx": "{{ output.licence }}"}, rules=rules) == []
    [missing] = checked({"rule": "acme_licence"}, rules=rules)
    assert missing == ("parameters", "steps[0].checks[0]", "`acme_licence`: `spdx` is missing", "add `spdx`")
    inside = {"rule": "all_of", "checks": [{"rule": "acme_licence", "spdx": 3}]}
    [(rule, where, message, _)] = checked(inside, rules=rules)
    assert (rule, where) == ("parameters", "steps[0].checks[0].checks[0].spdx")
    assert "a string is expected" in message
    [unknown] = checked({"rule": "acme_licence", "spdx": "MIT", "sdpx": "x"}, rules=rules)
    assert unknown[1:3] == ("steps[0].checks[0].sdpx", "`acme_licence` takes no `sdpx`")
    assert unknown[3] == "did you mean `spdx`?"


def test_a_rule_whose_card_is_not_known_yet_is_there_and_nothing_more_is_said() -> None:
    assert checked({"rule": "acme_licence", "anything": 1}, rules={"acme_licence": None}) == []


def test_a_rule_that_is_not_there_is_an_error_where_it_is_to_run() -> None:
    [flaw] = found({"id": "a", "prompt": "x", "checks": [{"rule": "nobody_knows"}]})
    assert (flaw.rule, flaw.severity, place(flaw.path)) == ("unknown_rule", Severity.MAJOR, "steps[0].checks[0].rule")
