"""The structure check: what is refused, where, the message, and the fix."""

from __future__ import annotations

import json
from pathlib import Path as File
from textwrap import dedent
from typing import Any

import pytest
from jsonschema_rs import Draft7Validator, meta

from handrail.domain.checks.finding import Finding, Severity
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.duration import DURATION_PATTERN
from handrail.domain.definition.model import (
    Approve,
    Call,
    Category,
    Each,
    Effect,
    Kind,
    OnFailure,
    Prompt,
    Repeat,
    Tool,
)
from handrail.domain.json import Json
from handrail.library.documents.document import FINDINGS_MAX, Document, document_of, read_document
from handrail.library.schemas.structure import check_structure, schema_text

SHIP_RELEASE = File(__file__).with_name("ship-release.yaml").read_text("utf-8")
SCHEMA: dict[str, Any] = json.loads(schema_text())
DEFINITIONS: dict[str, Any] = SCHEMA["definitions"]


def findings(text: str, *, merged: bool = False) -> list[Finding]:
    return check_structure(read_document(dedent(text), name="x.yaml"), merged=merged)


def line_of(finding: Finding) -> str:
    """A finding as one line: place, rule, message, and how to fix it."""
    assert finding.severity is Severity.CRITICAL
    assert finding.fix
    assert finding.at is not None
    return f"{finding.at.line}:{finding.at.column} {finding.rule}: {finding.message} ({finding.fix})"


def test_the_example_of_the_format_is_valid_as_yaml_as_json_and_as_data() -> None:
    document = read_document(SHIP_RELEASE, name="ship-release.yaml")
    assert check_structure(document) == []
    assert check_structure(document, merged=True) == []
    assert check_structure(read_document(json.dumps(document.value), name="ship-release.json")) == []
    assert check_structure(document_of(document.value, name="<plan>")) == []
    assert definition_from(document.value).id == "ship-release"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "{name: Tidy up, steps: [Look context., Clean.]}",
        "{id: acme/tidy-up-2, steps: [a]}",
        "{$schema: workflow.schema.json, id: a, version: 1.0.0-rc.1+b5, steps: [a]}",
        "{id: a, steps: [{id: b, prompt: c, when: false, confirm: len(vars) > 3, after: [], priority: -5}]}",
        "{id: a, steps: [{id: b, each: [1, {c: d}], steps: [e]}], outputs: {f: 1, g: null, h: i}}",
        "{id: a, steps: [{id: b, repeat: {times: 3}, steps: [c]}, {id: d, repeat: {while: true}, steps: [e]}]}",
        "{id: a, steps: [{id: b, tool: c.d, undo: {prompt: e, role: f}}]}",
        "{id: a, steps: [{id: b, prompt: c, undo: {workflow: d, with: {}}}]}",
        "{id: a, steps: [{id: b, workflow: ns/c@>=1.2 <2}, {id: d, approve: 'e?'}]}",
        "{id: a, steps: [{id: b, prompt: c, checks: [{rule: d, path: e, anything: [else]}]}]}",
        "{id: a, inputs: {b: {}, c: {$ref: '#/definitions/d', definitions: {d: {type: string}}}}, steps: [e]}",
        "{id: a, extends: b}",
        "{id: a, extends: b@^1, steps: [{id: c, timeout: 5s}, {id: d, prompt: e, insert_after: c}, {id: f, each: g}]}",
    ],
)
def test_what_the_format_allows_is_valid(text: str) -> None:
    assert findings(text) == []


BAD_TOPS = {
    "5": "1:1 type: an object is expected here, not the number 5 (write `key: value` pairs)",
    "[a]": "1:1 type: an object is expected here, not a list (write `key: value` pairs)",
    "just text": "1:1 type: an object is expected here, not the text `just text` (write `key: value` pairs)",
    "name: a": "1:1 missing_key: `steps` is missing (add `steps`)",
    "steps: [a]": "1:1 missing_key: `id` or `name` is missing (add one of them)",
    "extends: b": "1:1 missing_key: `id` is missing (add `id`)",
    "{name: a, steps: []}": "1:18 length: the list is empty (at least 1 wanted)",
    "{name: a, steps: b}": "1:18 type: a list is expected here, not the text `b` (make it a list: [b])",
    "{name: a, steps: }": "1:18 type: a list is expected here, not nothing (write a value, or remove the key)",
    "{name: '', steps: [a]}": "1:8 length: the text is empty (at least 1 wanted)",
    f"{{name: {'x' * 201}, steps: [a]}}": "1:8 length: the text has 201 characters (at most 200 are allowed)",
    "{id: Ship It, steps: [a]}": "1:6 id: the text `Ship It` is not an id (write it like `ship-it`)",
    "{id: a_b, steps: [a]}": "1:6 id: the text `a_b` is not an id (write it like `a-b`)",
    "{id: a--b, steps: [a]}": "1:6 id: the text `a--b` is not an id (write it like `a-b`)",
    "{id: 5, steps: [a]}": '1:6 type: a string is expected here, not the number 5 (put it in quotes: "5")',
    f"{{id: {'x' * 101}, steps: [a]}}": "1:6 length: the text has 101 characters (at most 100 are allowed)",
    "{id: a, version: 1.2, steps: [b]}": (
        "1:18 type: a string is expected here, not the number 1.2 (write it like 1.2.0)"
    ),
    "{id: a, version: v1.2.0, steps: [b]}": "1:18 version: the text `v1.2.0` is not a version (write it like 1.2.0)",
    "{id: a, version: '01.2.0', steps: [b]}": "1:18 version: the text `01.2.0` is not a version (write it like 1.2.0)",
    "{id: a, steps: [b], step: []}": "1:21 unknown_key: `step` is not a key of a workflow (did you mean `steps`?)",
    "{id: a, steps: [b], title: c}": "1:21 unknown_key: `title` is not a key of a workflow (did you mean `name`?)",
    "{id: a, steps: [b], tests: []}": "1:21 unknown_key: `tests` is not a key of a workflow (did you mean `steps`?)",
    "{id: a, steps: [b], onFailure: ask}": (
        "1:21 unknown_key: `onFailure` is not a key of a workflow (did you mean `on_failure`?)"
    ),
    "{id: a, steps: [b], xyz: 1}": (
        "1:21 unknown_key: `xyz` is not a key of a workflow "
        "(known: id, name, version, description, category, tags, license, inputs, ...)"
    ),
    "{id: a, on_failure: compensat, steps: [b]}": (
        "1:21 choice: the text `compensat` is not a choice here "
        "(did you mean `compensate`? choose ask, compensate, continue or stop)"
    ),
    "{id: a, on_failure: true, steps: [b]}": (
        "1:21 choice: `true` is not a choice here (choose ask, compensate, continue or stop)"
    ),
    "{id: a, max_parallel: 0, steps: [b]}": (
        "1:23 range: the number 0 is out of range (write a number of at least 1 and at most 1000)"
    ),
    "{id: a, max_parallel: four, steps: [b]}": (
        "1:23 type: a whole number is expected here, not the text `four` (write a whole number)"
    ),
    "{id: a, max_parallel: '4', steps: [b]}": (
        "1:23 type: a whole number is expected here, not the text `4` (remove the quotes)"
    ),
    "{id: a, deadline: 2 hours, steps: [b]}": (
        "1:19 duration: the text `2 hours` is not a duration (write it like 250ms, 30s, 5m, 2h or 1d)"
    ),
    "{id: a, deadline: 90, steps: [b]}": (
        "1:19 type: a string is expected here, not the number 90 (write it like 250ms, 30s, 5m, 2h or 1d)"
    ),
    "{id: a, tags: [b, c, b], steps: [d]}": '1:15 duplicate: `"b"` appears twice (remove one of the two)',
    f"{{id: a, tags: [{','.join(f't{n}' for n in range(21))}], steps: [d]}}": (
        "1:15 length: the list has 21 items (at most 20 are allowed)"
    ),
    "{id: a, guidance: be kind, steps: [b]}": (
        "1:19 type: a list is expected here, not the text `be kind` (make it a list: [be kind])"
    ),
    "{id: a, clarify: [''], steps: [b]}": "1:19 length: the text is empty (at least 1 wanted)",
    "{id: a, inputs: {Dry Run: {}}, steps: [b]}": (
        "1:18 id: `Dry Run` is not a name that expressions can use (write it like `dry_run`)"
    ),
    "{id: a, inputs: {'1st': {}}, steps: [b]}": (
        "1:18 id: `1st` is not a name that expressions can use (write it like `x_1st`)"
    ),
    "{id: a, outputs: {Tag: b}, steps: [c]}": (
        "1:19 id: `Tag` is not a name that expressions can use (write it like `tag`)"
    ),
    "{id: a, outputs: {tag: [b]}, steps: [c]}": (
        "1:24 type: a string, a number, true, false or null is expected here, not a list "
        "(write a string, a number, true, false or null)"
    ),
    "{id: a, extends: Base One, steps: []}": (
        "1:18 id: the text `Base One` is not the id of a workflow (write it like notify-team or notify-team@^1)"
    ),
    "{id: a, extends: b, steps: [c]}": (
        "1:29 type: under `extends`, a step is an object, not the text `c` (write `id` and what to do)"
    ),
    "{id: a, extends: b, steps: [{prompt: c}]}": "1:29 missing_key: `id` is missing (add `id: c`)",
    "{id: a, extends: b, steps: [{id: c, promt: d}]}": (
        "1:37 unknown_key: `promt` is not a key of a step (did you mean `prompt`?)"
    ),
    "{id: a, extends: b, steps: [{id: c, tool: d.e, prompt: f}]}": (
        "1:37 kind: `prompt` and `tool` can't be used together: a step under `extends` has exactly one of "
        "prompt, tool, approve, workflow, each, repeat (keep one of them)"
    ),
}

KINDS = "prompt, tool, approve, workflow, each, repeat"
BAD_STEPS = {
    "5": "2:10 type: a step is an object or a string, not the number 5 (write `id` and what to do)",
    "''": "2:10 length: the text is empty (at least 1 wanted)",
    "{prompt: Write the notes for all}": "2:10 missing_key: `id` is missing (add `id: write-the-notes-for`)",
    "{tool: git.tag}": "2:10 missing_key: `id` is missing (add `id: git-tag`)",
    "{each: [1], steps: [x]}": "2:10 missing_key: `id` is missing (add `id: step`)",
    "{id: a}": f"2:10 kind: a step needs exactly one of {KINDS} (add one of them)",
    "{id: a, promt: b}": "2:18 unknown_key: `promt` is not a key of a step (did you mean `prompt`?)",
    "{id: a, instructions: b}": "2:18 unknown_key: `instructions` is not a key of a step (did you mean `prompt`?)",
    "{id: a, prompt: b, tool: c.d, args: {}}": (
        f"2:29 kind: `prompt` and `tool` can't be used together: a step has exactly one of {KINDS} (keep one of them)"
    ),
    "{id: a, prompt: b, args: {}}": (
        "2:29 unknown_key: `args` belongs to a tool step; this is a prompt step (remove it, or move it to a tool step)"
    ),
    "{id: a, tool: b.c, role: d}": (
        "2:29 unknown_key: `role` belongs to a prompt step; this is a tool step "
        "(remove it, or move it to a prompt step)"
    ),
    "{id: a, approve: b, output: {}}": (
        "2:30 unknown_key: `output` belongs to a prompt step or a tool step; this is an approve step "
        "(remove it, or move it to a prompt step or a tool step)"
    ),
    "{id: a, workflow: b, args: {}}": (
        "2:31 unknown_key: `args` belongs to a tool step; this is a workflow step "
        "(remove it, or move it to a tool step)"
    ),
    "{id: a, prompt: b, steps: [c]}": (
        "2:29 unknown_key: `steps` belongs to an each step or a repeat step; this is a prompt step "
        "(remove it, or move it to an each step or a repeat step)"
    ),
    "{id: a, prompt: b, depends_on: [c]}": (
        "2:29 unknown_key: `depends_on` is not a key of a step (did you mean `after`?)"
    ),
    "{id: a, prompt: b, name: c}": "2:29 unknown_key: `name` is not a key of a step (did you mean `title`?)",
    "{id: a, prompt: b, timeouts: 5s}": (
        "2:29 unknown_key: `timeouts` is not a key of a step "
        "(known: id, title, after, when, priority, on_failure, skippable, guidance, ...)"
    ),
    "{id: a, tool: b.c, timeouts: 5s}": "2:29 unknown_key: `timeouts` is not a key of a step (did you mean `timeout`?)",
    "{id: a, prompt: b, insert_after: c}": (
        "2:29 unknown_key: `insert_after` is only for the steps of a workflow that `extends` another (use `after`)"
    ),
    "{id: A b, prompt: c}": "2:15 id: the text `A b` is not the id of a step (write it like `a-b`)",
    "{id: 2nd, prompt: c}": "2:15 id: the text `2nd` is not the id of a step (write it like `step-2nd`)",
    "{id: output, prompt: c}": (
        "2:15 id: `output` can't be the id of a step: in expressions it is a field of one (choose another word)"
    ),
    f"{{id: {'x' * 65}, prompt: c}}": "2:15 length: the text has 65 characters (at most 64 are allowed)",
    "{id: a, prompt: }": "2:26 type: a string is expected here, not nothing (write a value, or remove the key)",
    f"{{id: a, prompt: {'x' * 20_001}}}": "2:26 length: the text has 20,001 characters (at most 20,000 are allowed)",
    "{id: a, prompt: b, after: c}": "2:36 type: a list is expected here, not the text `c` (make it a list: [c])",
    "{id: a, prompt: b, after: [1]}": '2:37 type: a string is expected here, not the number 1 (put it in quotes: "1")',
    "{id: a, prompt: b, when: 3}": (
        '2:35 type: a string, true or false is expected here, not the number 3 (put it in quotes: "3")'
    ),
    "{id: a, prompt: b, priority: 1.5}": (
        "2:39 type: a whole number is expected here, not the number 1.5 (write a whole number)"
    ),
    "{id: a, prompt: b, priority: 5000}": (
        "2:39 range: the number 5000 is out of range (write a number of at least -1000 and at most 1000)"
    ),
    "{id: a, prompt: b, effect: some}": (
        "2:37 choice: the text `some` is not a choice here (choose none, reversible, compensatable or irreversible)"
    ),
    "{id: a, prompt: b, output: string}": (
        '2:37 type: an object is expected here, not the text `string` (write it like {"type": "string"})'
    ),
    "{id: a, prompt: b, checks: [{path: c}]}": (
        "2:38 missing_key: `rule` is missing (add `rule`; write it like file_exists)"
    ),
    "{id: a, prompt: b, checks: [{rule: c, severity: bad}]}": (
        "2:58 choice: the text `bad` is not a choice here (choose critical, major or minor)"
    ),
    "{id: a, prompt: b, model: {teir: fast}}": (
        "2:37 unknown_key: `teir` is not a key of a model hint (did you mean `tier`?)"
    ),
    "{id: a, tool: b}": (
        "2:24 tool: the text `b` is not the name of a tool (write it like git.create_tag or http.request)"
    ),
    "{id: a, tool: b.c, args: [1]}": (
        '2:35 type: an object is expected here, not a list (write it like {"name": "v{{ inputs.version }}"})'
    ),
    "{id: a, tool: b.c, idempotent: yes}": (
        "2:41 type: true or false is expected here, not the text `yes` (write true or false, without quotes)"
    ),
    "{id: a, tool: b.c, timeout: soon}": (
        "2:38 duration: the text `soon` is not a duration (write it like 250ms, 30s, 5m, 2h or 1d)"
    ),
    "{id: a, tool: b.c, retry: 3}": (
        "2:36 type: an object is expected here, not the number 3 (write `key: value` pairs)"
    ),
    "{id: a, tool: b.c, retry: {attempts: 0}}": (
        "2:47 range: the number 0 is out of range (write a number of at least 1 and at most 100)"
    ),
    "{id: a, tool: b.c, retry: {tries: 3}}": (
        "2:37 unknown_key: `tries` is not a key of a retry policy (known: attempts, first, factor, max, jitter, on)"
    ),
    "{id: a, tool: b.c, retry: {on: [transent]}}": (
        "2:42 choice: the text `transent` is not a choice here (did you mean `transient`? choose transient, timeout, "
        "rate_limited, invalid_input, not_found, permission, conflict, tool_error, cancelled or internal)"
    ),
    "{id: a, tool: b.c, undo: {}}": "2:35 kind: an undo needs exactly one of tool, prompt, workflow (add one of them)",
    "{id: a, tool: b.c, undo: {tool: d.e, prompt: f}}": (
        "2:47 kind: `tool` and `prompt` can't be used together: an undo has exactly one of tool, prompt, workflow "
        "(keep one of them)"
    ),
    "{id: a, tool: b.c, undo: {prompt: d, args: {}}}": (
        "2:47 unknown_key: `args` belongs to a tool undo; this is a prompt undo (remove it, or move it to a tool undo)"
    ),
    "{id: a, tool: b.c, undo: {toool: d.e}}": (
        "2:36 unknown_key: `toool` is not a key of an undo (did you mean `tool`?)"
    ),
    "{id: a, approve: b, by: bob}": "2:34 type: a list is expected here, not the text `bob` (make it a list: [bob])",
    "{id: a, workflow: Notify Us}": (
        "2:28 id: the text `Notify Us` is not the id of a workflow (write it like notify-team or notify-team@^1)"
    ),
    "{id: a, each: b}": "2:10 missing_key: `steps` is missing (add `steps`)",
    "{id: a, each: 5, steps: [b]}": (
        '2:24 type: a string or a list is expected here, not the number 5 (put it in quotes: "5")'
    ),
    "{id: a, each: b, as: My Item, steps: [c]}": "2:31 id: the text `My Item` is not a name (write it like `my_item`)",
    "{id: a, each: b, max: 10001, steps: [c]}": (
        "2:32 range: the number 10001 is out of range (write a number of at least 1 and at most 10000)"
    ),
    "{id: a, each: b, steps: [{id: c}]}": f"2:35 kind: a step needs exactly one of {KINDS} (add one of them)",
    "{id: a, each: b, steps: [{id: c, prompt: d, insert_after: e}]}": (
        "2:54 unknown_key: `insert_after` is only for the steps of a workflow that `extends` another (use `after`)"
    ),
    "{id: a, repeat: {times: 3}}": "2:10 missing_key: `steps` is missing (add `steps`)",
    "{id: a, repeat: {max: 3}, steps: [b]}": (
        "2:26 kind: a repeat needs exactly one of until, while, times (add one of them)"
    ),
    "{id: a, repeat: {untill: x}, steps: [b]}": (
        "2:27 unknown_key: `untill` is not a key of a repeat (did you mean `until`?)"
    ),
    "{id: a, repeat: {until: x, times: 3}, steps: [b]}": (
        "2:37 kind: `until` and `times` can't be used together: a repeat has exactly one of until, while, times "
        "(keep one of them)"
    ),
}

BAD_SCHEMAS = {
    "5": '2:13 type: an object is expected here, not the number 5 (write it like {"type": "string"})',
    "true": '2:13 type: an object is expected here, not `true` (write it like {"type": "string"})',
    "{type: strnig}": "2:20 schema: the text `strnig` is not a type of JSON Schema (did you mean `string`?)",
    "{type: 5}": (
        "2:20 schema: the number 5 is not a type of JSON Schema "
        "(choose string, integer, number, boolean, array, object or null)"
    ),
    "{properties: {a: {type: bool}}}": (
        "2:37 schema: the text `bool` is not a type of JSON Schema (did you mean `boolean`?)"
    ),
    "{type: string, required: true}": (
        "2:38 schema: a list is expected here, not `true` (remove it: an input is required unless it has a `default`)"
    ),
    "{minLength: -1}": "2:25 schema: the number -1 is out of range (write a number of at least 0)",
    "{pattern: '('}": (
        "2:23 schema: `(` is not a pattern that can be used (remove look-arounds and back-references, and repeat less)"
    ),
    "{items: {pattern: '(?=a)b'}}": (
        "2:31 schema: `(?=a)b` is not a pattern that can be used "
        "(remove look-arounds and back-references, and repeat less)"
    ),
    "{$ref: 'https://example.com/a.json'}": (
        "2:20 schema: `https://example.com/a.json` leads out of the schema "
        "(copy what it refers to under `definitions`, and write #/definitions/...)"
    ),
    "{$id: '^a'}": "2:19 schema: the text `^a` is not of the format `uri-reference` (write it as the format says)",
    "{$ref: '#/definitions/a'}": ("2:20 schema: `#/definitions/a` leads to nothing (refer to a part of this schema)"),
}


@pytest.mark.parametrize("text", BAD_TOPS)
def test_a_fault_of_the_workflow_is_reported_once_with_its_place_and_how_to_fix_it(text: str) -> None:
    assert [line_of(finding) for finding in findings(text)] == [BAD_TOPS[text]]


@pytest.mark.parametrize("step", BAD_STEPS)
def test_a_fault_of_a_step_is_reported_once_with_its_place_and_how_to_fix_it(step: str) -> None:
    assert [line_of(finding) for finding in findings(f"name: x\nsteps: [ {step} ]")] == [BAD_STEPS[step]]


@pytest.mark.parametrize("schema", BAD_SCHEMAS)
def test_an_author_s_schema_is_checked_for_inputs_and_outputs_alike(schema: str) -> None:
    said = BAD_SCHEMAS[schema]
    assert [line_of(finding) for finding in findings(f"name: x\ninputs: {{a: {schema}}}\nsteps: [b]")] == [said]
    nested = f"name: x\nsteps: [{{id: a, each: b, steps: [{{id: c, prompt: d,\noutput:     {schema}}}]}}]"
    assert [line_of(finding).split(" ", 1)[1] for finding in findings(nested)] == [said.split(" ", 1)[1]]


def test_all_faults_are_reported_at_once_in_the_order_of_the_text() -> None:
    found = findings("""\
        id: Bad Id
        version: 1
        steps:
          - id: a
            tool: b.c
            retry: {attempts: 0, first: 1}
            promt: d
          - 7
        inputs: {a: {type: strnig}, b: {$ref: '#/x'}}
        colour: red
        """)
    assert [(str(finding.at).removeprefix("x.yaml:"), finding.rule, finding.where) for finding in found] == [
        ("1:5", "id", "id"),
        ("2:10", "type", "version"),
        ("6:23", "range", "steps[0].retry.attempts"),
        ("6:33", "type", "steps[0].retry.first"),
        ("7:5", "unknown_key", "steps[0].promt"),
        ("8:5", "type", "steps[1]"),
        ("9:20", "schema", "inputs.a.type"),
        ("9:39", "schema", "inputs.b.$ref"),
        ("10:1", "unknown_key", "colour"),
    ]


def test_faults_of_form_and_of_reference_in_one_schema_are_both_reported() -> None:
    found = findings("{name: x, inputs: {a: {type: strnig, items: {$ref: '#/b'}}}, steps: [c]}")
    assert [finding.where for finding in found] == ["inputs.a.type", "inputs.a.items.$ref"]


def test_several_things_missing_at_one_place_are_all_reported() -> None:
    assert [finding.message for finding in findings("{}")] == ["`steps` is missing", "`id` or `name` is missing"]


def test_findings_without_a_text_come_in_the_order_of_paths() -> None:
    bad: list[Json] = [{"id": f"s{n}", "prompt": "x", "when": 3 if n in (2, 10) else True} for n in range(12)]
    data: Json = {"name": "x", "steps": bad, "inputs": {"a": {"$ref": "#/b"}}}
    found = check_structure(document_of(data, name="<plan>"))
    assert [finding.where for finding in found] == ["inputs.a.$ref", "steps[2].when", "steps[10].when"]
    assert {finding.at for finding in found} == {None}


def test_a_fault_in_an_alias_points_to_where_it_is_written() -> None:
    found = findings("""\
        name: x
        steps:
          - {id: a, tool: b.c, retry: &r {attempts: 0}}
          - {id: d, tool: e.f, retry: *r}
        """)
    assert [(finding.where, finding.at and finding.at.line) for finding in found] == [
        ("steps[0].retry.attempts", 3),
        ("steps[1].retry.attempts", 3),
    ]


def test_keys_that_look_like_numbers_are_found_in_the_text() -> None:
    for key in ("1", "01", "+1"):
        (name, schema) = findings(f"name: x\nsteps: [a]\ninputs:\n  '{key}': {{minLength: -1}}\n")
        assert (name.where, line_of(name).split()[0]) == (f"inputs.{key}", "4:3")
        assert schema.where == f"inputs.{key}.minLength"


def test_once_merged_every_step_must_be_whole() -> None:
    assert findings("{id: a, extends: b, steps: [{id: c, when: true}]}") == []
    assert [finding.rule for finding in findings("{id: a, steps: [{id: c, when: true}]}", merged=True)] == ["kind"]
    (left_over,) = findings("{id: a, extends: b, steps: [c]}", merged=True)
    assert (left_over.rule, left_over.where) == ("unknown_key", "extends")
    (inserted,) = findings("{id: a, steps: [{id: c, prompt: d, insert_after: e}]}", merged=True)
    assert inserted.where == "steps[0].insert_after"
    assert [finding.where for finding in findings("{name: a}", merged=True)] == ["the document"]


def test_findings_are_listed_up_to_a_bound() -> None:
    found = check_structure(document_of({"name": "x", "steps": [7] * (FINDINGS_MAX + 50)}, name="<plan>"))
    assert len(found) == FINDINGS_MAX + 1
    assert found[-1].message == f"no more errors are listed, of {FINDINGS_MAX + 50} or more"


def test_what_never_was_a_document_is_refused_and_breaks_nothing() -> None:
    deep: Any = "x"
    for _ in range(100_000):  # deep enough to end the process, if the validator were let in
        deep = {"id": "a", "each": "b", "steps": [deep]}
    (found,) = check_structure(Document("x", {"name": "x", "steps": [deep]}))
    assert (found.rule, found.fix) == ("type", "write plain JSON")


# The schema itself


def test_the_schema_is_a_draft_7_schema_that_says_so() -> None:
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    meta.validate(SCHEMA)


def test_every_key_an_author_can_write_is_described() -> None:
    def described(part: dict[str, Any]) -> bool:
        target = DEFINITIONS.get(str(part.get("$ref", "")).rpartition("/")[2], {})
        return bool(part.get("description") or target.get("description"))

    owners = {"workflow": SCHEMA, **{name: part for name, part in DEFINITIONS.items() if name != "whole_step"}}
    silent = [
        f"{owner}.{key}"
        for owner, part in owners.items()
        for key, own in part.get("properties", {}).items()
        if not described(own)
    ]
    assert silent == []


def test_every_object_of_ours_is_closed_but_for_the_parameters_of_rules() -> None:
    with_keys = {name for name, part in DEFINITIONS.items() if part.get("type") == "object" and "properties" in part}
    assert {name for name in with_keys if DEFINITIONS[name].get("additionalProperties") is not False} == {"check"}
    assert SCHEMA["additionalProperties"] is False


def test_every_example_in_the_schema_is_what_it_shows() -> None:
    owners = [SCHEMA, *DEFINITIONS.values()]
    inner = [part for owner in owners for part in owner.get("properties", {}).values() if part is not False]
    for part in [*DEFINITIONS.values(), *inner]:
        for shown in part.get("examples", ()):
            Draft7Validator({**part, "definitions": DEFINITIONS}).validate(shown)


def test_the_schema_and_the_domain_agree() -> None:
    keys = DEFINITIONS["step_keys"]["properties"]
    assert DEFINITIONS["duration"]["pattern"] == DURATION_PATTERN
    assert DEFINITIONS["on_failure"]["enum"] == [policy.value for policy in OnFailure]
    assert keys["effect"]["enum"] == [effect.value for effect in Effect]
    assert DEFINITIONS["retry"]["properties"]["on"]["items"]["enum"] == [category.value for category in Category]
    assert DEFINITIONS["check"]["properties"]["severity"]["enum"] == [severity.value for severity in Severity]
    assert [option["required"] for option in DEFINITIONS["whole_step"]["oneOf"]] == [[kind.value] for kind in Kind]
    for kind, work in zip(Kind, (Prompt, Tool, Approve, Call, Each, Repeat), strict=True):
        allowed = set(DEFINITIONS[f"{kind.value}_step"]["propertyNames"]["enum"])
        assert set(work.__struct_encode_fields__) <= allowed <= set(keys)
