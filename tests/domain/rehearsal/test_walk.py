"""Walks through workflows with a script: what is done, in which order, and how it ends."""

from __future__ import annotations

import pytest

from domain.rehearsals import differing, walked, workflow
from handrail.domain.rehearsal.branches import Branch, Way
from handrail.domain.rehearsal.script import Expected

REVIEW = workflow("""
    id: review
    inputs: {change: {type: string}, deep: {type: boolean, default: false}}
    steps:
      - id: scope
        prompt: Look at {{ inputs.change }}.
        output:
          type: object
          required: [files]
          properties: {files: {type: array, items: {type: string}}, risk: {type: string}}
      - id: read
        each: steps.scope.output.files
        as: file
        steps:
          - id: note
            prompt: Read {{ file }}.
            output: {type: object, required: [bad], properties: {bad: {type: boolean}}}
      - {id: deep-dive, when: inputs.deep, prompt: Look deeper.}
      - id: verdict
        prompt: Decide.
        confirm: true
        output: {type: object, required: [text], properties: {text: {type: string}}}
        checks: [{rule: contains, of: text, text: because, severity: major}]
    outputs: {verdict: steps.verdict.output.text}
""")
SAID = {"scope": {"files": ["a.py"]}, "read.note": {"bad": False}, "verdict": {"text": "yes, because"}}
SAGA = workflow("""
    id: saga
    on_failure: compensate
    steps:
      - {id: notes, prompt: Write., effect: reversible, undo: {prompt: Take it back.}}
      - {id: tag, tool: git.tag, effect: compensatable, undo: {tool: git.untag}}
      - {id: file, tool: file.write, args: {path: a, text: b}}
      - {id: go, approve: Publish?, expires: 1h}
      - {id: publish, tool: ci.publish, effect: irreversible, retry: {attempts: 3, first: 1s}}
""")


def test_a_walk_does_every_step_in_order_and_hands_out_the_outputs() -> None:
    reported = walked(REVIEW, inputs={"change": "x"}, outputs=SAID)
    assert (reported.end, reported.trouble) == ("completed", ())
    assert reported.path == ("scope", "read[0].note", "read", "verdict")
    assert reported.skipped == ("deep-dive",)
    assert reported.outputs == {"verdict": "yes, because"}
    assert Branch("deep-dive", Way.FALSE) in reported.branches
    assert Branch("read", Way.ONE_ROUND) in reported.branches


def test_each_round_of_a_loop_takes_its_own_output() -> None:
    said = {**SAID, "scope": {"files": ["a", "b"]}, "read.note": {"each": [{"bad": False}, {"bad": True}]}}
    reported = walked(REVIEW, inputs={"change": "x"}, outputs=said)
    assert reported.end == "completed"
    assert reported.path[1:3] == ("read[0].note", "read[1].note")
    short = walked(REVIEW, inputs={"change": "x"}, outputs={**said, "read.note": {"each": [{"bad": False}]}})
    assert short.end == "waiting"
    assert "read[1].note" in short.trouble[0]


def test_a_refused_try_names_its_rules_and_the_next_one_is_accepted() -> None:
    tries = {"try": [{"no": 1}, {"text": "yes"}, {"text": "yes, because"}]}
    reported = walked(REVIEW, inputs={"change": "x"}, outputs={**SAID, "verdict": tries})
    assert (reported.end, reported.trouble) == ("completed", ())
    assert {"schema", "contains"} <= set(reported.findings["verdict"])


def test_a_last_try_that_is_refused_leaves_the_run_waiting_for_the_agent() -> None:
    reported = walked(REVIEW, inputs={"change": "x"}, outputs={**SAID, "verdict": {"text": "yes"}})
    assert (reported.end, reported.waits_for, reported.trouble) == ("waiting", "agent: verdict", ())


def test_a_check_that_looks_at_the_project_fails_no_script_also_inside_another() -> None:
    definition = workflow("""
        id: mixed
        steps:
          - id: write
            prompt: Write it.
            checks: [{rule: all_of, checks: [{rule: file_exists, path: a.md}, {rule: contains, text: done}]}]
        """)
    assert walked(definition, outputs={"write": "done"}).end == "completed"
    assert walked(definition, outputs={"write": "no"}).findings == {"write": ("contains",)}


def test_a_try_that_was_to_be_refused_and_is_not_is_reported() -> None:
    tries = {"try": [{"text": "because"}, {"text": "because, too"}]}
    reported = walked(REVIEW, inputs={"change": "x"}, outputs={**SAID, "verdict": tries})
    assert "should have been refused" in reported.trouble[0]


@pytest.mark.parametrize("confirmed", [False, {"verdict": False}])
def test_without_a_word_of_the_user_nothing_is_confirmed(confirmed: object) -> None:
    reported = walked(REVIEW, inputs={"change": "x"}, outputs=SAID, confirmed=confirmed)
    assert (reported.end, reported.findings) == ("waiting", {"verdict": ("confirm",)})


def test_a_script_that_says_nothing_for_a_step_with_an_output_is_reported_so() -> None:
    reported = walked(REVIEW, inputs={"change": "x"}, outputs={"scope": {"files": []}})
    assert (reported.end, reported.waits_for) == ("waiting", "agent: verdict")
    assert "nothing under `outputs` for verdict" in reported.trouble[0]


def test_wrong_inputs_end_a_walk_before_it_begins() -> None:
    reported = walked(REVIEW, inputs={"chnge": "x"})
    assert reported.end == ""
    assert any("chnge" in one for one in reported.trouble)


def test_an_agent_may_fail_or_skip_a_step() -> None:
    failed = walked(REVIEW, inputs={"change": "x"}, outputs=SAID, outcomes={"scope": "failed"})
    assert (failed.end, failed.path) == ("waiting", ())
    skipped = walked(REVIEW, inputs={"change": "x", "deep": True}, outputs=SAID, outcomes={"deep-dive": "skipped"})
    assert (skipped.end, skipped.skipped) == ("completed", ("deep-dive",))
    assert Branch("deep-dive", Way.TRUE) in skipped.branches


def test_a_text_that_reads_a_step_that_the_agent_skipped_has_blanks_as_in_a_real_run() -> None:
    reads = """\
        id: reads
        name: Read what may be missing
        version: 1.0.0
        description: Two steps.
        steps:
          - {id: first, prompt: Do it.}
          - {id: then, prompt: 'Go on with {{ steps.first.output.file }}.'}
        """
    reported = walked(workflow(reads), outcomes={"first": "skipped"})
    assert (reported.end, reported.trouble) == ("completed", ())


def test_a_no_undoes_what_was_done_newest_first() -> None:
    reported = walked(SAGA, approvals={"go": "reject"})
    assert (reported.end, reported.path, reported.undone) == (
        "compensated",
        ("notes", "tag", "file"),
        ("file", "tag", "notes"),
    )
    assert Branch("go", Way.NO) in reported.branches


def test_a_question_that_is_not_answered_in_time_is_a_no() -> None:
    assert walked(SAGA, approvals={"go": "expire"}).end == "compensated"


def test_a_tool_that_fails_for_a_while_is_tried_again_without_waiting() -> None:
    reported = walked(SAGA, tools={"publish": {"try": [{"fail": "transient"}, {"fail": "timeout"}, {"ok": True}]}})
    assert (reported.end, reported.path[-1]) == ("completed", "publish")
    assert walked(SAGA, tools={"publish": {"fail": "transient"}}).end == "compensated"


def test_an_undo_that_fails_holds_back_what_came_before_it() -> None:
    reported = walked(SAGA, approvals={"go": "reject"}, tools={"tag!undo": {"fail": "permission"}})
    assert (reported.end, reported.undone) == ("compensation_failed", ("file",))
    by_agent = walked(SAGA, approvals={"go": "reject"}, outcomes={"notes!undo": "failed"})
    assert (by_agent.end, by_agent.undone) == ("compensation_failed", ("file", "tag"))


def test_an_undo_is_not_taken_for_another_try_of_its_step() -> None:
    saga = workflow("""
        id: saga
        on_failure: compensate
        steps:
          - {id: notes, prompt: Write., checks: [{rule: length, min: 3, severity: major}], undo: {prompt: Undo.}}
          - {id: go, approve: Publish?}
    """)
    reported = walked(saga, outputs={"notes": {"try": ["", "long"]}}, approvals={"go": "reject"})
    assert (reported.end, reported.undone, reported.trouble) == ("compensated", ("notes",), ())


CALLED = """
    id: inner
    version: 1.0.0
    inputs: {n: {type: integer}}
    steps:
      - id: think
        prompt: Think of {{ inputs.n }}.
        output: {type: object, required: [good], properties: {good: {type: boolean}}}
    outputs: {good: steps.think.output.good}
"""
CALLER = workflow(
    """
    id: outer
    steps:
      - {id: ask, workflow: inner@^1, with: {n: 3}}
      - {id: praise, when: steps.ask.output.good, prompt: Say so.}
    """,
    CALLED,
)


def test_the_steps_of_an_inlined_workflow_are_named_behind_its_call() -> None:
    reported = walked(CALLER, outputs={"ask.think": {"good": False}})
    assert (reported.end, reported.path, reported.skipped) == ("completed", ("ask.think", "ask"), ("praise",))


def test_an_inlined_workflow_may_be_given_its_outputs_as_a_whole() -> None:
    reported = walked(CALLER, outputs={"ask": {"good": True}})
    assert (reported.end, reported.path) == ("completed", ("ask", "praise"))


def test_a_repeat_goes_round_until_it_is_done_and_jumps_over_the_time_between() -> None:
    poll = workflow("""
        id: poll
        steps:
          - id: ready
            repeat: {until: steps.ready.probe.output.ok, max: 3, every: 15m}
            steps: [{id: probe, tool: ci.probe, effect: none}]
    """)
    reported = walked(poll, tools={"ready.probe": {"each": [{"ok": False}, {"ok": True}]}})
    assert (reported.end, reported.path) == ("completed", ("ready[0].probe", "ready[1].probe", "ready"))
    never = walked(poll, tools={"ready.probe": {"ok": False}})
    assert (never.end, "its bound" in never.waits_for) == ("waiting", True)


def test_variables_that_an_agent_leaves_are_known_to_later_steps() -> None:
    leaving = workflow("""
        id: leaving
        steps:
          - {id: choose, prompt: Choose a branch.}
          - {id: push, tool: value.set, args: {value: '{{ vars.branch }}'}}
        outputs: {branch: steps.push.output}
    """)
    assert walked(leaving, vars={"choose": {"branch": "main"}}).outputs == {"branch": "main"}
    assert walked(leaving).end == "waiting"


def test_a_prompt_that_can_not_be_filled_in_is_reported_as_trouble() -> None:
    hole = workflow("""
        id: hole
        inputs: {deep: {type: boolean, default: false}}
        steps:
          - id: dig
            when: inputs.deep
            prompt: Dig.
            output: {type: object, required: [gold], properties: {gold: {type: string}}}
          - {id: sell, prompt: 'Sell {{ steps.dig.output.gold }}.'}
    """)
    reported = walked(hole)
    assert (reported.end, "can't be filled in" in reported.trouble[0]) == ("waiting", True)
    assert walked(hole, inputs={"deep": True}, outputs={"dig": {"gold": "a lump"}}).end == "completed"


@pytest.mark.parametrize(
    ("expect", "reported"),
    [
        (Expected(path=("scope", "verdict")), ""),
        (Expected(path=("verdict", "scope")), "there is no scope after verdict"),
        (Expected(path=()), "path: expected none, got scope"),
        (Expected(skipped=("deep-dive",)), ""),
        (Expected(skipped=()), "skipped: expected none, got deep-dive"),
        (Expected(end="failed"), "end: expected failed, got completed"),
        (Expected(findings={"verdict": ("contains",)}), "findings of verdict: expected contains, got none"),
        (Expected(findings={}), ""),
        (Expected(undone=("scope",)), "undone: expected scope; there is no scope, got none"),
        (Expected(outputs={"verdict": "no"}), 'outputs.verdict: expected "no", got "yes, because"'),
        (Expected(outputs={"other": 1}), "outputs.other: expected 1, got no output of that name"),
    ],
)
def test_a_difference_says_what_was_expected_and_what_came(expect: Expected, reported: str) -> None:
    found = differing(REVIEW, expect, inputs={"change": "x"}, outputs=SAID)
    assert bool(found) == bool(reported)
    assert not reported or reported in found[0]


def test_what_a_script_says_for_nothing_is_named() -> None:
    reported = walked(REVIEW, inputs={"change": "x"}, outputs={**SAID, "deep-dive": "never asked"})
    assert reported.unused == ("deep-dive",)
