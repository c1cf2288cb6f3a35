"""Loops: four kinds, with bodies that are written there or named, and names that mean something inside."""

from __future__ import annotations

from typing import Any

import pytest

from library.workrail.garden import Data, converted, faults, first, holds, loop, notes, ours, step, workflow

DRY: Data = {"var": "dry", "equals": True}


def test_a_while_loop_goes_on_as_long_as_its_condition_holds() -> None:
    found = first(workflow(loop("while", condition=DRY, maxIterations=7)))
    assert found["repeat"]["max"] == 7
    assert holds(found["repeat"]["while"], {"dry": True})
    assert not holds(found["repeat"]["while"], {})
    assert [one["id"] for one in found["steps"]] == ["dig"]


def test_an_until_loop_is_asked_before_its_first_round_too() -> None:
    found = first(workflow(loop("until", condition=DRY)))
    assert not holds(found["repeat"]["while"], {"dry": "yes"})
    assert holds(found["repeat"]["while"], {})


@pytest.mark.parametrize(("count", "times"), [(3, 3), (1, 1), (2.5, 3), (9, 5)])
def test_a_for_loop_makes_so_many_rounds_and_no_more_than_it_may(count: float, times: int) -> None:
    assert first(workflow(loop("for", count=count)))["repeat"] == {"times": times}


def test_a_for_loop_of_no_rounds_makes_none() -> None:
    assert first(workflow(loop("for", count=0)))["repeat"] == {"while": False}


def test_a_for_loop_counts_up_to_a_variable_and_skips_the_round_too_far() -> None:
    found = first(workflow(loop("for", step(runCondition=DRY), count="cans")))
    made = []
    for index in range(-1, 5):
        if not holds(found["repeat"]["while"], {"cans": 3, "dry": True}, index=index):
            break
        made.append(holds(found["steps"][0]["when"], {"cans": 3, "dry": True}, index=index + 1))
    assert made == [True, True, True, False]
    assert found["repeat"]["max"] == 6, "the round too far counts"
    assert not holds(found["repeat"]["while"], {}, index=-1)
    assert not holds(found["steps"][0]["when"], {"cans": 3, "dry": False}, index=0)


def test_a_for_each_loop_goes_over_a_variable_with_names_for_item_and_index() -> None:
    body = step(
        prompt="Bed {{bedNo}} of {{currentBed.name}}, pass {{currentIteration}}, {{other}}.",
        runCondition={"and": [{"var": "bedNo", "lt": 2}, {"var": "currentBed.kind", "equals": "Roses"}]},
    )
    found = first(workflow(loop("forEach", body, items="beds", itemVar="currentBed", indexVar="bedNo")))
    assert (found["each"], found["as"], found["max"]) == ("default(vars.beds, [])", "current_bed", 5)
    inner = found["steps"][0]
    assert inner["when"] == '(index < 2) and (word(default(current_bed.kind, "")) == "roses")'
    assert inner["prompt"].startswith(
        'Bed {{ index }} of {{ default(current_bed.name, "<currentBed.name>") }}, '
        'pass {{ index }} (counted from 0), {{ default(vars.other, "<other>") }}.'
    )


@pytest.mark.parametrize("name", ["inputs", "index", "class", "true", "loop", "_", "9", "Ünlaut", "x" * 90])
def test_an_item_whose_name_means_something_in_ours_gets_another(name: str) -> None:
    body = step(prompt=f"Look at {{{{{name}}}}}.", runCondition={"var": name, "equals": "x"})
    ours(workflow(loop("forEach", body, items="beds", itemVar=name)))


@pytest.mark.parametrize(
    ("condition", "rounds"),
    [
        ({"equals": 1}, [0]),
        ({"not_equals": 1}, [1, 2, 3, 4]),
        ({"gt": 2}, [2, 3, 4]),
        ({"gte": 2.5}, [2, 3, 4]),
        ({"lt": 2.5}, [0, 1]),
        ({"lte": "2"}, [0, 1]),
        ({"in": [1, "4", "x"]}, [0, 3]),
        ({"equals": "x"}, []),
        ({}, [0, 1, 2, 3, 4]),
    ],
)
def test_a_loops_counter_starts_with_one_there_and_with_zero_here(condition: Data, rounds: list[int]) -> None:
    body = step(runCondition={"var": "pass", **condition})
    found = first(workflow(loop("for", body, count=5, iterationVar="pass")))["steps"][0]
    assert [index for index in range(5) if holds(found["when"], {}, index=index)] == rounds


def test_between_two_rounds_the_counter_is_that_of_the_next_one() -> None:
    found = first(workflow(loop("while", condition={"var": "currentIteration", "lte": 3})))
    assert [index + 2 for index in range(-1, 5) if holds(found["repeat"]["while"], {}, index=index)] == [1, 2, 3]


def test_a_body_that_is_named_is_done_in_the_loop_and_nowhere_else() -> None:
    data = workflow(step("a"), step("b"), {**loop("while", condition=DRY), "body": "b"}, step("c"))
    found = ours(data)["steps"]
    assert [one["id"] for one in found] == ["a", "rounds", "c"]
    assert [one["id"] for one in found[1]["steps"]] == ["b"]


def test_a_loop_inside_a_loop_is_one_here_too() -> None:
    inner = loop("for", step("deep", prompt="{{currentItem}} {{currentIteration}}"), count=2, identity="inner")
    found = first(workflow(loop("forEach", inner, items="beds")))["steps"][0]
    assert found["repeat"] == {"times": 2}
    assert found["steps"][0]["prompt"].startswith('{{ default(current_item, "<currentItem>") }} {{ index }}')


def test_a_step_that_submits_a_decision_ends_the_loop() -> None:
    decide = step("decide", outputContract={"contractRef": "wr.contracts.loop_control"})
    data = workflow(loop("while", step(), decide, condition=DRY))
    found = first(data)
    assert found["repeat"] == {
        "until": 'not exists(steps["rounds"]["decide"].output.decision)'
        ' or steps["rounds"]["decide"].output.decision != "continue"',
        "max": 5,
        "at_max": "leave",
    }
    assert found["steps"][1]["output"]["properties"] == {"decision": {"enum": ["continue", "stop"]}}
    assert '"continue" for a round' in found["steps"][1]["prompt"]
    assert "at most 5 rounds" in found["steps"][1]["prompt"]
    assert "decides" in notes(data)["steps[0].loop.condition"]


def test_a_round_ends_with_the_decision_to_stop() -> None:
    decide = step("decide", outputContract={"contractRef": "wr.contracts.loop_control"})
    found = first(workflow(loop("while", decide, step("after"), conditionSource={"kind": "artifact_contract"})))
    assert "when" not in found["steps"][0]
    assert found["steps"][1]["when"] == 'default(steps["rounds"]["decide"].output.decision, "continue") == "continue"'


@pytest.mark.parametrize(("kind", "word"), [("while", "while"), ("until", "until")])
def test_a_loop_whose_condition_is_a_text_goes_to_its_bound_and_shows_it(kind: str, word: str) -> None:
    data = workflow(loop(kind, step("in"), condition="the bed is dry"))
    assert first(data)["repeat"] == {"while": True, "max": 5, "at_max": "leave"}
    assert f"Repeat {word}: the bed is dry" in first(data)["steps"][0]["prompt"]
    assert "counts as true" in notes(data)["steps[0].loop.condition"]


def test_a_step_before_a_loop_may_decide_that_it_is_not_started() -> None:
    contract = {"outputContract": {"contractRef": "wr.contracts.loop_control"}}
    rounds = loop("while", step("decide", **contract), conditionSource={"kind": "artifact_contract"})
    again = loop("while", step("decide", **contract), identity="again", condition=DRY)
    found = ours(workflow(step("init", **contract), step("between"), rounds, again, step("last", **contract)))
    init, between, first_loop, second_loop, last = found["steps"]
    assert first_loop["when"] == 'default(steps["init"].output.decision, "continue") == "continue"'
    assert "when" not in second_loop
    assert ["output" in one for one in (init, between, last)] == [True, False, False]
    assert "contractRef" in last["prompt"]


def test_a_decision_that_no_step_names_is_asked_of_the_last_one() -> None:
    source = {"kind": "artifact_contract", "contractRef": "wr.contracts.loop_control", "loopId": "rounds"}
    found = first(workflow(loop("while", step("a"), step("b"), conditionSource=source)))
    assert ["output" in one for one in found["steps"]] == [False, True]


def test_a_condition_may_stand_under_its_source() -> None:
    found = first(workflow(loop("while", conditionSource={"kind": "context_variable", "condition": DRY})))
    assert holds(found["repeat"]["while"], {"dry": True})


def test_what_a_loop_says_is_reported_with_its_first_step_and_asked_for_once() -> None:
    said = {
        "prompt": "Go round.",
        "guidance": ["Gently."],
        "agentRole": "You are gentle.",
        "modelTier": "fast",
        "requireConfirmation": {"var": "late"},
        "functionDefinitions": [
            {"name": "rest", "definition": "Sit down."},
            {"name": "dig", "definition": "Use a spade."},
        ],
    }
    data = workflow({**loop("for", step("a", prompt="Call dig() now."), step("b"), count=2), **said})
    a, b = first(data)["steps"]
    for part in ("Go round.", "Gently.", "dig(): Use a spade.", "rest(): Sit down."):
        assert part in a["prompt"]
        assert part not in b["prompt"]
    assert a["confirm"] == '(index == 0) and (exists(vars.late) and not (vars.late in [false, 0, "", null]))'
    assert "confirm" not in b
    assert (a["role"], b["model"]) == ("You are gentle.", {"tier": "fast"})


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (loop("while"), "steps[0].loop"),
        (loop("for", count=True), "steps[0].loop.count"),
        (loop("for", count=-1), "steps[0].loop.count"),
        (loop("forEach"), "steps[0].loop"),
        (loop("forever"), "steps[0].loop.type"),
        (loop("for", count=2, maxIterations=0), "steps[0].loop.maxIterations"),
        (loop("for", count=2, maxIterations="many"), "steps[0].loop.maxIterations"),
        ({**loop("for", count=2), "body": []}, "steps[0].body"),
        ({**loop("for", count=2), "body": "nobody"}, "steps[0].body"),
        ({**loop("for", count=2), "body": 3}, "steps[0].body"),
        ({"id": "rounds", "type": "loop", "title": "R", "body": [step()]}, "steps[0]"),
        ({**loop("for", count=2), "loop": 3}, "steps[0].loop"),
    ],
)
def test_a_loop_of_which_nobody_knows_how_it_goes_round_is_a_fault(data: Any, where: str) -> None:
    assert [found for found, _ in faults(workflow(data, step("z")))] == [where]


def test_loops_that_contain_each_other_are_a_fault_and_not_the_end() -> None:
    a = {**loop("for", count=2, identity="a"), "body": "b"}
    b = {**loop("for", count=2, identity="b"), "body": "a"}
    c = {**loop("for", count=2, identity="c"), "body": "a"}
    assert faults(workflow(a, b))
    assert faults(workflow(step(), a, b))
    assert any("contains itself" in why for _, why in faults(workflow(c, a, b)))
    assert faults(workflow(step(), {**loop("for", count=2, identity="a"), "body": "a"}))


def test_loops_that_multiply_are_stopped() -> None:
    names = [f"l{number}" for number in range(9)]
    chained = [
        {**loop("for", count=2, identity=name), "body": [after] * 9}
        for name, after in zip(names, [*names[1:], "end"], strict=True)
    ]
    found = converted(workflow(*chained, step("end")))
    assert any("more than 5,000 steps" in flaw.message for flaw in found.flaws)
    deep = [{**loop("for", count=2, identity=f"d{number}"), "body": f"d{number + 1}"} for number in range(400)]
    assert any("are nested" in flaw.message for flaw in converted(workflow(*deep, step("d400"))).flaws)
