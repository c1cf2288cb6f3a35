"""What the analysis finds in a definition, family by family, and that it can be trusted with any nonsense."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given

from domain.definitions import Data, patient, shaped, sound
from domain.places import place_with
from handrail.domain.analysis.local import NOWHERE
from handrail.domain.analysis.loop_findings import LOOP_STEPS_MAX
from handrail.domain.analysis.whole import FLAWS_MAX, analyse
from handrail.domain.checks.finding import Flaw, Severity
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Effect


def flaws(*steps: Data | str, tools: Mapping[str, Effect] | None = None, **more: Any) -> list[Flaw]:
    local = NOWHERE if tools is None else place_with(tools)
    return analyse(definition_from({"id": "plan", "steps": list(steps), **more}), local)


def only(found: list[Flaw], rule: str) -> Flaw:
    matching = [flaw for flaw in found if flaw.rule == rule]
    assert len(matching) == 1, found
    return matching[0]


def rules(found: list[Flaw]) -> set[str]:
    return {flaw.rule for flaw in found}


def prompt(name: str, text: str = "Do it.", **more: Any) -> Data:
    return {"id": name, "prompt": text, **more}


def each(name: str, *steps: Data, items: Any = "inputs.names", **more: Any) -> Data:
    return {"id": name, "each": items, "steps": list(steps), **more}


def repeat(name: str, *steps: Data, **rounds: Any) -> Data:
    return {"id": name, "repeat": rounds, "steps": list(steps)}


NAMES: Data = {"names": {"type": "array", "items": {"type": "string"}}}


# Order


def test_a_cycle_is_named_in_order_at_the_after_that_closes_it() -> None:
    flaw = only(flaws(prompt("a", after=["c"]), prompt("b", after=["a"]), prompt("c", after=["b"])), "cycle")
    assert flaw.severity is Severity.CRITICAL
    assert "a -> b -> c -> a" in flaw.message
    assert flaw.path == ("steps", 0, "after", 0)


def test_a_very_long_cycle_is_named_by_its_beginning_and_end() -> None:
    flaw = only(flaws(*(prompt(f"s{number}", after=[f"s{(number - 1) % 500}"]) for number in range(500))), "cycle")
    assert "s0 -> s1 -> " in flaw.message
    assert flaw.message.endswith("-> s499 -> s0")
    assert len(flaw.message) < 300


def test_a_cycle_inside_a_loop_is_found_too() -> None:
    body = [prompt("a", after=["b"]), prompt("b", after=["a"])]
    flaw = only(flaws(each("all", *body), inputs=NAMES), "cycle")
    assert flaw.path == ("steps", 0, "steps", 0, "after", 0)


def test_every_cycle_of_a_list_is_reported() -> None:
    found = flaws(*(prompt(name, after=[other]) for name, other in [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]))
    assert [flaw.message.rpartition(": ")[2] for flaw in found] == ["a -> b -> a", "c -> d -> c"]


def test_an_unknown_step_in_after_is_reported_with_the_nearest_name() -> None:
    flaw = only(flaws(prompt("build"), prompt("test", after=["biuld"])), "unknown_step")
    assert flaw.path == ("steps", 1, "after", 0)
    assert flaw.fix == "did you mean `build`?"


def test_an_unknown_step_without_a_near_name_is_reported_with_the_known_ones() -> None:
    assert only(flaws(prompt("build", after=["xyz"])), "unknown_step").fix == "known: build"
    many = [prompt(f"step-{number}", after=[]) for number in range(9)]
    assert only(flaws(*many, prompt("last", after=["?"])), "unknown_step").fix.endswith("step-7, ...")


def test_a_step_after_itself_is_reported_once() -> None:
    found = flaws(prompt("a"), prompt("b", after=["b"]))
    assert rules(found) == {"after_itself"}


def test_an_id_used_twice_in_one_list_is_reported_with_its_first_place() -> None:
    found = flaws(prompt("a"), prompt("b"), prompt("a"), prompt("c"))
    assert rules(found) == {"duplicate_id"}
    assert "steps[0]" in found[0].message
    assert found[0].path == ("steps", 2, "id")


def test_with_an_id_used_twice_nobody_is_blamed_for_the_order_that_follows_from_it() -> None:
    assert rules(flaws(prompt("a"), prompt("b"), prompt("b"))) == {"duplicate_id"}
    assert rules(flaws(prompt("a"), prompt("a"), prompt("b", "{{ steps.a.output }}", after=[]))) == {"duplicate_id"}


def test_one_id_in_two_lists_is_fine() -> None:
    assert flaws(prompt("a"), each("all", prompt("a")), inputs=NAMES) == []


# Names


def test_an_unknown_input_in_a_template_is_reported_at_its_line_and_column() -> None:
    flaw = only(
        flaws(prompt("a", "First\nthen {{ inputs.versoin }}"), inputs={"version": {"type": "string"}}), "template"
    )
    assert flaw.path == ("steps", 0, "prompt")
    assert (flaw.line, flaw.column) == (2, 16)
    assert "versoin" in flaw.message
    assert "version" in flaw.message


def test_templates_deep_in_arguments_are_read_where_they_stand() -> None:
    step = {"id": "a", "tool": "http.request", "args": {"headers": [{"X": "ok"}, {"X": "{{ nobody }}"}]}}
    assert only(flaws(step), "template").path == ("steps", 0, "args", "headers", 1, "X")


def test_a_value_nested_too_deeply_is_refused() -> None:
    value: Any = "x"
    for _ in range(45):
        value = [value]
    assert "nested" in only(flaws({"id": "a", "tool": "value.set", "args": {"value": value}}), "template").message


@pytest.mark.parametrize(
    ("key", "step"),
    [
        ("when", prompt("a", when="inputs.count == (")),
        ("confirm", prompt("a", confirm="nobody")),
        ("each", each("a", prompt("b"), items="inputs.nothing")),
    ],
)
def test_a_broken_expression_is_reported_under_its_key(key: str, step: Data) -> None:
    flaw = only(flaws(step, inputs={"count": {"type": "integer"}}), "expression")
    assert flaw.path == ("steps", 0, key)
    assert flaw.severity is Severity.CRITICAL


def test_a_condition_that_is_no_condition_is_a_type_clash_with_its_column() -> None:
    flaw = only(flaws(prompt("a", when='  inputs.count > "3"'), inputs={"count": {"type": "integer"}}), "expression")
    assert flaw.column > 1
    assert rules(flaws(prompt("a", when="inputs.count"), inputs={"count": {"type": "integer"}})) == {"expression"}


def test_outputs_see_every_step_of_the_top_list() -> None:
    steps = [prompt("a"), prompt("b", after=[])]
    assert flaws(*steps, outputs={"both": "[steps.a.output, steps.b.status]"}) == []
    assert only(flaws(*steps, outputs={"other": "steps.c.output"}), "expression").path == ("outputs", "other")


def test_a_step_sees_what_stands_before_it_directly_or_not() -> None:
    assert (
        flaws(prompt("a"), prompt("b"), prompt("c", "{{ steps.a.output }}", when='steps.b.status == "completed"')) == []
    )


def test_all_steps_at_once_can_be_spoken_of() -> None:
    assert flaws(prompt("a", when="len(steps) > 1"), prompt("b")) == []


def test_a_step_that_is_not_before_this_one_is_reported_with_what_to_add() -> None:
    flaw = only(flaws(prompt("a"), prompt("b", "{{ steps.a.output }}", after=[])), "not_before")
    assert flaw.path == ("steps", 1, "prompt")
    assert "add `after: [a]`" in flaw.fix


def test_a_step_that_comes_later_is_reported_as_such() -> None:
    flaw = only(flaws(prompt("a", when="exists(steps.b.output)"), prompt("b")), "not_before")
    assert "comes after" in flaw.message


def test_a_step_cannot_read_its_own_result_except_in_its_undo() -> None:
    undo = {"tool": "value.set", "args": {"value": "{{ steps.a.output }}"}}
    assert flaws({"id": "a", "tool": "value.set", "args": {"value": 1}, "undo": undo}) == []
    own = only(flaws({"id": "a", "tool": "value.set", "args": {"value": "{{ steps.a.output }}"}}), "not_before")
    assert "own result" in own.message


def test_an_undo_does_not_see_what_comes_after_its_step() -> None:
    undo = {"prompt": "Take back {{ steps.b.output }}"}
    assert only(flaws(prompt("a", undo=undo), prompt("b")), "not_before").path == ("steps", 0, "undo", "prompt")


def test_output_is_known_in_checks_and_in_confirm_and_nowhere_else() -> None:
    schema = {"type": "object", "properties": {"file": {"type": "string"}}}
    check = {"rule": "file_exists", "path": "{{ output.file }}", "when": 'output.file != ""'}
    assert flaws(prompt("a", output=schema, checks=[check], confirm='output.file == "x"')) == []
    assert only(flaws(prompt("a", "{{ output.file }}", output=schema)), "template").path == ("steps", 0, "prompt")
    late = [{"rule": "file_exists", "path": "x", "when": "output.fiel"}]
    assert only(flaws(prompt("a", output=schema, checks=late)), "expression").path == ("steps", 0, "checks", 0, "when")
    wrong = [{"rule": "file_exists", "path": "{{ output.fiel }}"}]
    tool = {"id": "a", "tool": "file.read", "output": schema, "checks": wrong}
    assert only(flaws(tool), "template").path == ("steps", 0, "checks", 0, "path")


def test_the_shape_of_an_earlier_output_is_known() -> None:
    first = prompt("a", output={"type": "object", "properties": {"n": {"type": "integer"}}})
    assert flaws(first, prompt("b", when="steps.a.output.n > 3")) == []
    assert rules(flaws(first, prompt("b", when='steps.a.output.n == "x" and steps.a.output.m'))) == {"expression"}


def test_vars_hold_anything_and_run_holds_its_id() -> None:
    assert flaws(prompt("a", "{{ vars.anything.at.all }} in {{ run.id }}")) == []
    assert rules(flaws(prompt("a", "{{ run.status }}"))) == {"template"}


# Names in loops


def test_inside_a_loop_the_item_and_the_index_are_known() -> None:
    step = prompt("b", "{{ target }} {{ index }}", when='target != "x"')
    assert flaws(each("a", step, **{"as": "target"}), inputs=NAMES) == []
    assert rules(flaws(each("a", prompt("b", when="item > 3")), inputs=NAMES)) == {"expression"}
    assert rules(flaws(each("a", prompt("b")), prompt("c", "{{ item }}"), inputs=NAMES)) == {"template"}


def test_inside_a_loop_this_rounds_steps_stand_under_its_name() -> None:
    body = [prompt("one"), prompt("two", "{{ steps.loop.one.output }} {{ steps.first.output }}")]
    assert flaws(prompt("first"), each("loop", *body), inputs=NAMES) == []


def test_inside_a_loop_a_step_of_this_round_that_is_not_before_is_reported() -> None:
    body = [prompt("one", "{{ steps.loop.two.output }}"), prompt("two")]
    flaw = only(flaws(each("loop", *body), inputs=NAMES), "not_before")
    assert "`two` comes after `one`" in flaw.message


def test_inside_a_loop_steps_around_it_are_judged_from_the_loops_place() -> None:
    flaw = only(flaws(each("loop", prompt("b", "{{ steps.late.output }}")), prompt("late"), inputs=NAMES), "not_before")
    assert "`late` comes after `loop`" in flaw.message


def test_a_loops_own_result_is_known_only_after_it() -> None:
    assert flaws(each("loop", prompt("b")), prompt("c", "{{ steps.loop.output[0] }}"), inputs=NAMES) == []
    for inside in ("{{ steps.loop.output }}", "{{ steps.loop.status }}", "{{ steps.loop }}"):
        flaw = only(flaws(each("loop", prompt("b", inside)), inputs=NAMES), "not_before")
        assert "when it has ended" in flaw.message


def test_outside_a_loop_its_steps_are_not_known() -> None:
    assert rules(flaws(each("loop", prompt("b")), prompt("c", "{{ steps.loop.b.output }}"), inputs=NAMES)) == {
        "template"
    }


def test_until_and_while_see_all_of_the_round() -> None:
    body = [prompt("one"), prompt("two", after=[])]
    until = "exists(steps.r.one.output) and exists(steps.r.two.output) and index < 3"
    assert flaws(repeat("r", *body, until=until, max=5)) == []
    assert flaws(repeat("r", *body, max=5, **{"while": until})) == []
    flaw = only(flaws(repeat("r", *body, until="steps.r.three.output", max=5)), "expression")
    assert flaw.path == ("steps", 0, "repeat", "until")


def test_loops_nest_and_so_do_their_names() -> None:
    inner = each("inner", prompt("x"), prompt("y", "{{ steps.outer.inner.x.output }} {{ steps.outer.a.output }}"))
    assert flaws(each("outer", prompt("a"), inner), inputs=NAMES, max_parallel=1) == []
    late = each("inner", prompt("x", "{{ steps.outer.z.output }}"))
    assert rules(flaws(each("outer", late, prompt("z")), inputs=NAMES)) == {"not_before"}


def test_each_over_something_that_is_no_list_is_refused() -> None:
    flaw = only(
        flaws(each("a", prompt("b"), items="inputs.text"), inputs={"text": {"type": "string"}}), "each_not_list"
    )
    assert "string" in flaw.message
    assert flaw.path == ("steps", 0, "each")
    assert rules(flaws(each("a", prompt("b"), items="5"))) == {"each_not_list"}


def test_the_loop_sees_what_is_before_it_but_not_what_is_after() -> None:
    assert flaws(prompt("a"), each("b", prompt("c", "{{ item.anything }}"), items="steps.a.output")) == []
    assert rules(flaws(prompt("a"), each("b", prompt("c"), items="steps.a.output", after=[]))) == {"not_before"}


def test_the_item_cannot_take_a_name_that_has_a_meaning() -> None:
    assert rules(flaws(each("a", prompt("b"), **{"as": "steps"}), inputs=NAMES)) >= {"reserved_name"}


# Calls


CALLED: Data = {
    "notify@1.0.0": {
        "id": "notify",
        "inputs": {"text": {"type": "string"}, "channel": {"type": "string", "default": "dev"}},
        "steps": [prompt("tell")],
        "outputs": {"link": "steps.tell.output"},
    }
}


def call(name: str, **given: Any) -> Data:
    return {"id": name, "workflow": "notify@1.0.0", "with": given}


def test_a_call_that_gives_what_is_needed_is_fine_and_its_outputs_are_known() -> None:
    assert flaws(call("a", text="x"), prompt("b", "{{ steps.a.output.link }}"), pinned=CALLED) == []
    assert rules(flaws(call("a", text="x"), prompt("b", "{{ steps.a.output.lnik }}"), pinned=CALLED)) == {"template"}


def test_a_call_that_is_not_pinned_is_not_judged() -> None:
    assert flaws(call("a", anything="x"), prompt("b", "{{ steps.a.output.anything }}")) == []


def test_a_call_with_an_input_that_the_workflow_does_not_have_is_refused() -> None:
    flaw = only(flaws(call("a", text="x", chanel="y"), pinned=CALLED), "call_inputs")
    assert flaw.path == ("steps", 0, "with", "chanel")
    assert flaw.on_key
    assert "channel" in flaw.fix


def test_a_call_of_a_workflow_without_inputs_is_reported_so() -> None:
    pinned = {"notify@1.0.0": {"id": "notify", "steps": ["Tell."]}}
    assert "no inputs" in only(flaws(call("a", text="x"), pinned=pinned), "call_inputs").fix


def test_a_call_without_a_needed_input_is_refused_also_in_an_undo() -> None:
    step = prompt("a", undo={"workflow": "notify@1.0.0"})
    flaw = only(flaws(step, pinned=CALLED), "call_inputs")
    assert flaw.path == ("steps", 0, "undo", "workflow")
    assert "`text`" in flaw.message


def test_templates_in_a_call_and_in_a_question_are_read() -> None:
    assert rules(flaws(call("a", text="{{ nobody }}"), pinned=CALLED)) == {"template"}
    assert rules(flaws({"id": "a", "approve": "Go, {{ nobody }}?"})) == {"template"}


# Tools and effects


def test_an_unknown_tool_is_refused_only_where_the_tools_are_known() -> None:
    step = {"id": "a", "tool": "git.creat_tag", "effect": "none"}
    assert flaws(step) == []
    flaw = only(flaws(step, tools={"git.create_tag": Effect.COMPENSATABLE}), "unknown_tool")
    assert flaw.path == ("steps", 0, "tool")
    assert "git.create_tag" in flaw.fix


def test_an_unknown_tool_in_an_undo_is_refused_and_built_in_tools_are_always_known() -> None:
    step = {"id": "a", "tool": "file.write", "args": {"path": "x", "text": "y"}, "undo": {"tool": "nobody.knows"}}
    assert only(flaws(step, prompt("b"), tools={}), "unknown_tool").path == ("steps", 0, "undo", "tool")


def test_a_tool_whose_effect_nobody_knows_is_noted() -> None:
    flaw = only(flaws({"id": "a", "tool": "git.log"}), "unknown_effect")
    assert flaw.severity is Severity.MINOR
    assert flaws({"id": "a", "tool": "git.log"}, tools={"git.log": Effect.NONE}) == []
    assert flaws({"id": "a", "tool": "git.log", "effect": "none"}) == []


@pytest.mark.parametrize(
    "step",
    [
        {"tool": "file.write"},
        {"tool": "file.read"},
        {"tool": "wait.for"},
        {"tool": "http.request", "args": {"url": "x"}},
        {"tool": "http.request", "args": {"url": "x", "method": "head"}},
        {"tool": "shell.run", "effect": "none"},
        {"tool": "shell.run", "undo": {"prompt": "Take it back."}},
        {"tool": "git.create_tag", "undo": {"tool": "git.delete_tag"}},
        {"prompt": "Look."},
        {"prompt": "Buy.", "effect": "compensatable", "undo": {"prompt": "Return it."}},
        {"approve": "Go?"},
    ],
)
def test_a_step_without_an_effect_or_with_an_undo_is_not_noted(step: Data) -> None:
    assert flaws({"id": "a", **step}) == []


@pytest.mark.parametrize(
    "step",
    [
        {"tool": "shell.run"},
        {"tool": "http.request", "args": {"url": "x", "method": "POST"}},
        {"tool": "http.request", "args": {"url": "x", "method": "{{ vars.method }}"}},
        {"tool": "git.create_tag", "effect": "reversible"},
        {"prompt": "Buy.", "effect": "compensatable"},
    ],
)
def test_an_effect_without_an_undo_is_noted(step: Data) -> None:
    assert only(flaws({"id": "a", **step}), "no_undo").severity is Severity.MINOR


def final(name: str, **more: Any) -> Data:
    return {"id": name, "tool": "shell.run", "undo": {"prompt": "Say sorry."}, "effect": "irreversible", **more}


def test_what_cannot_be_taken_back_is_noted_before_a_step_that_can_fail() -> None:
    flaw = only(flaws(final("send"), {"id": "ok", "approve": "Fine?"}, prompt("check")), "irreversible_early")
    assert "`check`" in flaw.message
    assert flaw.path == ("steps", 0)


def test_a_tool_that_cannot_be_taken_back_stays_so_although_its_step_has_an_undo() -> None:
    step = {"id": "send", "tool": "shell.run", "undo": {"prompt": "Say sorry."}}
    assert rules(flaws(step, prompt("check"))) == {"irreversible_early"}


def test_what_cannot_be_taken_back_is_fine_last_or_beside_or_right_after_an_approval() -> None:
    assert flaws(prompt("check"), final("send")) == []
    assert flaws(final("send"), prompt("check", after=[])) == []
    assert flaws(final("send"), {"id": "ok", "approve": "Fine?"}) == []
    assert flaws({"id": "ok", "approve": "Send?"}, final("send"), prompt("check")) == []


def test_inside_a_loop_what_fails_after_the_loop_counts_too() -> None:
    found = flaws(each("all", prompt("a"), final("send")), prompt("check"), inputs=NAMES)
    assert only(found, "irreversible_early").path == ("steps", 0, "steps", 1)


# Loops and constants


def test_loops_that_multiply_beyond_the_limit_are_refused_at_the_one_that_passes_it() -> None:
    inner = each("inner", prompt("x"), max=400)
    flaw = only(flaws(each("outer", inner, max=300), inputs=NAMES), "loop_bound")
    assert flaw.severity is Severity.CRITICAL
    assert flaw.path == ("steps", 0)
    assert "120,300" in flaw.message
    assert flaws(each("outer", inner, max=200), inputs=NAMES) == []


def test_the_steps_of_called_workflows_count_in_loops() -> None:
    pinned = {"notify@1.0.0": {"id": "notify", "steps": [repeat("r", prompt("x"), times=2000)]}}
    found = flaws(each("all", call("tell"), call("again"), max=100), inputs=NAMES, pinned=pinned)
    assert f"{LOOP_STEPS_MAX:,}" in only(found, "loop_bound").fix


def test_even_a_workflow_that_calls_itself_can_be_counted() -> None:
    pinned = {"notify@1.0.0": {"id": "notify", "steps": [call("again")]}}
    assert flaws(each("all", call("tell"), max=100), inputs=NAMES, pinned=pinned) == []


def test_written_items_count_as_many_rounds_as_there_are() -> None:
    inner = each("inner", prompt("x"), items=[1, 2, 3], max=10000)
    assert flaws(each("outer", inner, max=100), inputs=NAMES) == []


@pytest.mark.parametrize(
    "step", [repeat("r", prompt("a"), times=5, max=3), each("r", prompt("a"), items=[1, 2], max=1)]
)
def test_a_loop_that_must_pass_its_own_bound_is_refused(step: Data) -> None:
    assert only(flaws(step), "loop_bound").severity is Severity.MAJOR


@pytest.mark.parametrize(
    ("step", "key"),
    [
        (prompt("a", when=False), "when"),
        (prompt("a", when="1 > 2"), "when"),
        (each("a", prompt("b"), items=[]), "each"),
        (repeat("a", prompt("b"), max=3, **{"while": False}), "repeat"),
    ],
)
def test_what_is_never_reached_is_noted(step: Data, key: str) -> None:
    flaw = only(flaws(step), "unreachable")
    assert flaw.severity is Severity.MINOR
    assert flaw.path == ("steps", 0, key)


def test_a_step_after_an_unreachable_one_is_reached() -> None:
    assert len(flaws(prompt("a", when=False), prompt("b"))) == 1


@pytest.mark.parametrize("rounds", [{"while": True, "max": 3}, {"until": "1 > 2"}])
def test_a_loop_that_never_ends_by_itself_is_noted(rounds: Data) -> None:
    assert rules(flaws(repeat("a", prompt("b"), **rounds))) == {"endless_loop"}


def test_a_loop_that_is_bounded_by_the_default_is_reported_so() -> None:
    flaw = only(flaws(repeat("a", prompt("b"), until='steps.a.b.output == "x"')), "default_bound")
    assert "100" in flaw.message
    assert flaws(repeat("a", prompt("b"), times=3)) == []


# Secrets


def test_a_secret_in_a_definition_is_refused_wherever_it_stands() -> None:
    key = "AKIA" + "ABCDEFGH12345678"
    step = {"id": "a", "tool": "http.request", "args": {"url": "x", "headers": {"key": key}}}
    flaw = only(flaws(step), "secret")
    assert flaw.severity is Severity.MAJOR
    assert flaw.path == ("steps", 0, "args", "headers", "key")
    assert key not in flaw.message
    assert "${secret:" in flaw.fix
    assert only(flaws(prompt("a"), guidance=["ok", f"Use {key}."]), "secret").path == ("guidance", 1)


# The whole


@patient
@given(shaped())
def test_the_analysis_copes_with_any_definition_of_the_right_structure(data: Data) -> None:
    definition = definition_from(data)
    for found in (analyse(definition), analyse(definition, place_with())):
        assert all(flaw.message and flaw.rule for flaw in found)


@patient
@given(sound())
def test_a_sound_definition_has_notes_at_most(data: Data) -> None:
    blocking = [flaw for flaw in analyse(definition_from(data)) if flaw.severity is not Severity.MINOR]
    assert blocking == []


def test_what_blocks_comes_before_notes_and_the_list_is_bounded() -> None:
    steps = [
        {"id": f"s{number}", "tool": "shell.run", "args": {"argv": ["{{ x }}"]}} for number in range(FLAWS_MAX + 9)
    ]
    found = flaws(*steps)
    assert len(found) == FLAWS_MAX
    assert rules(found) == {"template"}


def test_2_000_steps_that_speak_of_each_other_are_judged_in_seconds() -> None:
    steps: list[Data | str] = [prompt("s0")]
    for number in range(1, 2_000):
        text = f'{{{{ steps["s{number - 1}"].output }}}} and {{{{ steps["s{number // 2}"].status }}}}'
        step = prompt(f"s{number}", text, when=f'steps["s{number - 1}"].status == "completed"')
        steps.append(each(f"s{number}", step) if number % 4 == 0 else step)
    began = time.process_time()
    found = flaws(*steps, inputs=NAMES)
    assert time.process_time() - began < 4
    assert found == []
