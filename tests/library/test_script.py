"""Reading the tests beside a workflow: errors are reported with their place and a suggestion."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from handrail.domain.definition.model import Definition
from handrail.domain.rehearsal.script import Expected
from handrail.library.loading import load_definition, valid
from handrail.library.test_script import Suite, read_tests, suite_file

WORKFLOW = valid(
    load_definition(
        dedent("""
        id: ship
        inputs: {version: {type: string}}
        steps:
          - {id: notes, prompt: Write., checks: [{rule: length, min: 3, severity: major}], undo: {prompt: Undo.}}
          - {id: tag, tool: git.tag, effect: compensatable, undo: {tool: git.untag}}
          - {id: read, each: [1, 2], steps: [{id: page, prompt: Read.}]}
          - {id: go, approve: Go?}
        outputs: {tag: steps.tag.output}
        """),
        name="ship.yaml",
    ),
    "ship.yaml",
)


def read(text: str, definition: Definition | None = WORKFLOW) -> Suite:
    return read_tests(dedent(text), name="ship.tests.yaml", definition=definition)


def test_a_whole_script_is_read() -> None:
    reply = read("""
        workflow: ship
        tests:
          - name: everything at once
            inputs: {version: v1}
            outputs: {notes: {try: ['', fine]}, read.page: {each: [1, 2]}, 'notes!undo': done}
            outcomes: {read.page: {each: [done, failed]}}
            tools: {tag: {try: [{fail: transient}, {name: v1}]}, 'tag!undo': {fail: permission}}
            approvals: {go: reject}
            vars: {notes: {branch: main}}
            confirmed: {notes: false}
            expect:
              end: compensated
              path: [notes, tag, 'read[0].page']
              skipped: []
              findings: {notes: [length]}
              undone: [tag]
              outputs: {tag: v1}
    """)
    assert reply.findings == ()
    (script,) = reply.scripts
    assert (script.name, script.inputs, script.approvals) == ("everything at once", {"version": "v1"}, {"go": "reject"})
    assert script.expect == Expected(
        end="compensated",
        path=("notes", "tag", "read[0].page"),
        skipped=(),
        findings={"notes": ("length",)},
        undone=("tag",),
        outputs={"tag": "v1"},
    )


@pytest.mark.parametrize(
    ("line", "message", "fix"),
    [
        ("output: {}", "there is no key `output` here", "did you mean `outputs`?"),
        ("inputs: {vesion: v1}", "no input `vesion`", "did you mean `version`?"),
        ("outputs: {note: x}", "there is no step `note`", "did you mean `notes`?"),
        ("outputs: {tag: x}", "`tag` is of the kind `tool`", "write it under `tools`"),
        ("outputs: {page: x}", "there is no step `page`", "did you mean"),
        ("outputs: {read: x}", "`read` is of the kind `each`", "read.page"),
        ("outcomes: {notes: fail}", "`fail` is not allowed here", "did you mean `failed`?"),
        ("tools: {notes: {}}", "`notes` is of the kind `prompt`", "write it under `outputs`"),
        ("tools: {tag: {try: [{fail: permision}]}}", "`permision`", "did you mean `permission`?"),
        ("approvals: {go: rejekt}", "`rejekt`", "did you mean `reject`?"),
        ("approvals: {'go!undo': approve}", "`go` has no undo", "leave this out"),
        ("confirmed: perhaps", "`confirmed` is true, false", "confirmed: false"),
        ("confirmed: {notes: perhaps}", "not true or false", ""),
        ("inputs: [v1]", "this is not an object", "write an object"),
    ],
)
def test_a_wrong_line_is_reported_with_its_place_and_what_was_meant(line: str, message: str, fix: str) -> None:
    reply = read(f"workflow: ship\ntests:\n  - name: a test\n    {line}\n    expect: {{end: completed}}\n")
    (finding,) = reply.findings
    assert message in finding.message
    assert fix in finding.fix
    assert finding.at is not None
    assert (finding.at.file, finding.at.line) == ("ship.tests.yaml", 4)
    assert reply.scripts == ()


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ("{ends: completed}", "there is no key `ends`"),
        ("{end: complete}", "`complete` is not allowed"),
        ("{path: notes}", "this is not a list"),
        ("{path: [nots]}", "there is no step `nots`"),
        ("{skipped: [1]}", "named by its id"),
        ("{findings: {notes: [lenght]}}", "has no check `lenght`"),
        ("{findings: {notes: length}}", "this is not a list"),
        ("{outputs: {tg: 1}}", "no output `tg`"),
    ],
)
def test_a_wrong_expectation_is_reported(expect: str, message: str) -> None:
    reply = read(f"workflow: ship\ntests:\n  - name: a test\n    expect: {expect}\n")
    assert [message in finding.message for finding in reply.findings] == [True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "tests are an object"),
        ("workflow: sail\ntests: [{name: a, expect: {end: completed}}]", "`sail` is not the workflow beside it"),
        ("tests: [{name: a, expect: {end: completed}}]", "the workflow's id is missing"),
        ("workflow: ship\ntests: []", "there is no test"),
        ("workflow: ship\ntests: [a]", "a test is an object"),
        ("workflow: ship\ntests: [{name: a}]", "the test has no `expect`"),
        (
            "workflow: ship\ntests: [{name: a, expect: {end: failed}}, {name: a, expect: {end: failed}}]",
            "two tests are called 'a'",
        ),
        ("workflow: [", "no value can start here"),
    ],
)
def test_a_file_that_holds_no_tests_is_reported(text: str, message: str) -> None:
    reply = read(text)
    assert any(message in finding.message for finding in reply.findings), reply.findings


def test_a_test_that_is_wrong_does_not_hide_the_others() -> None:
    reply = read("workflow: ship\ntests: [{name: a}, {name: b, expect: {end: completed}}]")
    assert [script.name for script in reply.scripts] == ["b"]


def test_without_a_definition_names_are_taken_as_they_are() -> None:
    reply = read("workflow: ship\ntests: [{name: a, outputs: {any: 1}, expect: {path: [thing]}}]", definition=None)
    assert (reply.findings, reply.scripts[0].outputs) == ((), {"any": 1})


def test_tests_stand_beside_their_workflow() -> None:
    assert suite_file(Path("a") / "ship.yaml") == Path("a") / "ship.tests.yaml"
    assert suite_file("ship.v2.json") == Path("ship.v2.tests.yaml")
