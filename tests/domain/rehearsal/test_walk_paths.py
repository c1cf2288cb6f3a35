"""All paths through a workflow: what is reached, what never is, what is missing, and what was not tried."""

from __future__ import annotations

import pytest

from domain.rehearsals import explored, workflow
from handrail.domain.rehearsal.paths import Paths


def unreached(found: Paths) -> set[str]:
    return {str(branch) for branch in found.unreached}


def test_both_sides_of_every_kind_of_condition_are_reached() -> None:
    found = explored(
        workflow("""
        id: forks
        inputs:
          fast: {type: boolean}
          price: {type: number, default: 3}
          limit: {type: number, default: 10}
          names: {type: array, items: {type: string}}
        steps:
          - id: look
            prompt: Look.
            output:
              type: object
              required: [kind, count, files, word, free]
              properties:
                kind: {enum: [a, b, c]}
                count: {type: integer, minimum: 0}
                files: {type: array, items: {type: object, required: [big], properties: {big: {type: boolean}}}}
                word: {type: string}
                free: {}
          - {id: one, when: inputs.fast, prompt: x}
          - {id: two, when: inputs.price > inputs.limit, prompt: x}
          - {id: three, when: 'steps.look.output.kind in ["b", "c"]', prompt: x}
          - {id: four, when: steps.look.output.count >= 7 and not inputs.fast, prompt: x}
          - {id: five, when: 'contains(steps.look.output.word, "odd")', prompt: x}
          - {id: six, when: 'steps.look.output.free.deep == "yes"', prompt: x}
          - {id: seven, when: '"x" in inputs.names', prompt: x}
          - id: each
            each: steps.look.output.files
            as: file
            steps: [{id: big, when: file.big, prompt: x}]
          - {id: go, approve: Go?, when: len(steps.look.output.files) > 1}
        """)
    )
    assert unreached(found) == set()
    assert not found.missing


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
def test_a_number_is_tried_on_both_sides_of_what_it_is_compared_with(sign: str) -> None:
    output = "{type: object, required: [n], properties: {n: {type: integer}}}"
    steps = f"{{id: a, prompt: x, output: {output}}}, {{id: b, when: steps.a.output.n {sign} 7, prompt: x}}"
    assert unreached(explored(workflow(f"{{id: numbers, steps: [{steps}]}}"))) == set()


def test_a_branch_that_nothing_leads_to_is_named() -> None:
    found = explored(
        workflow("""
        id: never
        steps:
          - {id: look, prompt: Look., output: {type: object, required: [kind], properties: {kind: {enum: [a, b]}}}}
          - {id: third, when: steps.look.output.kind == "c", prompt: x}
          - id: loop
            each: [1, 2]
            steps: [{id: body, prompt: x}]
        """)
    )
    assert unreached(found) == {
        "third: its condition is true",
        "third: it fails",
        "loop: no round",
        "loop: one round",
    }
    assert found.is_whole


def test_the_output_of_a_step_that_may_be_skipped_is_missing_where_it_is_read_without_a_default() -> None:
    text = """
        id: hole
        inputs: {deep: {type: boolean, default: false}}
        steps:
          - id: dig
            when: inputs.deep
            prompt: Dig.
            output: {type: object, required: [gold], properties: {gold: {type: string}}}
          - {id: sell, prompt: 'Sell READ.'}
          - {id: melt, tool: value.set, args: {value: 'READ'}}
        outputs: {gold: 'OUT'}
    """
    plain, careful = "steps.dig.output.gold", 'default(steps.dig.output.gold, "none")'

    def missing(read: str, out: str) -> dict[str, str]:
        written = text.replace("READ", "{{ " + read + " }}").replace("OUT", out)
        return {one.step: one.message for one in explored(workflow(written)).missing}

    found = missing(plain, careful)
    assert found.keys() == {"sell", "melt"}
    assert all("steps.dig.output is null" in message for message in found.values())
    assert missing(careful, plain).keys() == {"outputs"}
    assert not missing(careful, careful)


def test_a_property_that_is_optional_is_missing_where_it_is_read() -> None:
    found = explored(
        workflow("""
        id: optional
        steps:
          - {id: look, prompt: Look., output: {type: object, properties: {hint: {type: string}}}}
          - {id: use, prompt: 'Use {{ steps.look.output.hint }}.'}
        """)
    )
    assert [one.step for one in found.missing] == ["use"]


def test_a_variable_that_is_not_set_is_missing_where_it_is_read() -> None:
    found = explored(
        workflow("""
        id: variables
        steps:
          - {id: push, prompt: 'Push to {{ vars.branch }}.'}
          - {id: tell, when: 'default(vars.loud, false)', prompt: Shout.}
        """)
    )
    assert [(one.step, "branch" in one.message) for one in found.missing] == [("push", True)]
    assert unreached(found) == set()


def test_values_are_followed_into_and_out_of_inlined_workflows() -> None:
    inner = """
        id: inner
        version: 1.0.0
        inputs: {mode: {type: string}}
        steps:
          - {id: think, when: 'inputs.mode == "deep"', prompt: Think.}
          - id: judge
            prompt: Judge.
            output: {type: object, required: [verdict], properties: {verdict: {enum: [good, bad]}}}
        outputs: {verdict: steps.judge.output.verdict}
    """
    found = explored(
        workflow(
            """
            id: outer
            steps:
              - id: choose
                prompt: Choose.
                output: {type: object, required: [mode], properties: {mode: {type: string}}}
              - {id: call, workflow: inner@^1, with: {mode: '{{ steps.choose.output.mode }}'}}
              - {id: mend, when: 'steps.call.output.verdict == "bad"', prompt: Mend.}
            """,
            inner,
        )
    )
    assert unreached(found) == set()
    assert found.longest == ("choose", "call.think", "call.judge", "mend")


def test_the_longest_path_counts_rounds_and_not_those_who_hold_them() -> None:
    found = explored(
        workflow("""
        id: rounds
        steps:
          - id: loop
            repeat: {until: steps.loop.turn.output.ok, max: 3}
            steps:
              - {id: turn, prompt: Try., output: {type: object, required: [ok], properties: {ok: {type: boolean}}}}
          - {id: end, prompt: End.}
        """)
    )
    assert found.longest == ("loop[0].turn", "loop[1].turn", "loop[2].turn", "end")
    assert found.ends == {"completed", "waiting"}
    assert unreached(found) == set()


def test_effects_that_nothing_takes_back_are_named_and_failures_are_followed_into_their_undo() -> None:
    found = explored(
        workflow("""
        id: saga
        on_failure: compensate
        steps:
          - id: tag
            tool: git.tag
            effect: compensatable
            undo: {tool: git.untag, args: {name: '{{ steps.tag.output.name }}'}}
          - {id: file, tool: file.write, args: {path: a, text: b}}
          - {id: publish, tool: ci.publish, effect: irreversible}
        """)
    )
    assert found.without_undo == ("publish",)
    assert found.ends == {"completed", "compensated"}


def test_what_was_not_tried_is_said() -> None:
    names = [f"s{number}" for number in range(12)]
    output = "{type: object, required: [ok], properties: {ok: {type: boolean}}}"
    steps = ", ".join(f"{{id: {name}, prompt: x, output: {output}}}" for name in names)
    uses = " and ".join(f"steps.{name}.output.ok" for name in names)
    definition = workflow(f"{{id: many, steps: [{steps}, {{id: last, when: {uses}, prompt: x}}]}}")
    found = explored(definition, most=50)
    assert not found.is_whole
    assert any("stopped after 50 states" in one for one in found.not_tried)
    assert "last: its condition is true" not in unreached(found), "what is usual is tried first"


def test_a_hole_that_a_check_rules_out_is_not_reported_as_one() -> None:
    found = explored(
        workflow("""
        id: ruled-out
        steps:
          - id: rate
            prompt: Rate.
            output:
              type: object
              required: [bad, findings]
              properties: {bad: {type: boolean}, findings: {type: array, items: {type: string}}}
            checks: [{rule: expression, that: 'not output.bad or len(output.findings) > 0', severity: critical}]
          - {id: mend, when: steps.rate.output.bad, prompt: 'Mend {{ steps.rate.output.findings[0] }}.'}
          - {id: list, when: len(steps.rate.output.findings) > 0, prompt: x}
        """)
    )
    assert not found.missing
    assert any("unless the checks of rate rule it out" in one for one in found.not_tried)
