"""`handrail run submit`: a person walks through a guided workflow from a terminal, without any client."""

from __future__ import annotations

import getpass
import json
import re
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema_rs import is_valid

from handrail.interfaces.cli.words.json_value import form_of
from interfaces.shell import Shell
from tidy.yardstick import ROOT

GUIDED = """\
id: note
name: Write a note
inputs: {topic: {type: string}}
steps:
  - {id: folder, tool: file.mkdir, args: {path: notes}}
  - id: write
    title: Write it
    prompt: |
      Write a note on {{ inputs.topic }}.

      Keep it short.
    role: You are a careful writer.
    guidance: [One thought a sentence.]
    output: {type: object, required: [text], properties: {text: {type: string}, mood: {enum: [good, bad]}}}
    checks: [{rule: length, of: text, min: 10, severity: major}]
  - {id: keep, tool: file.write, args: {path: notes/note.txt, text: '{{ steps.write.output.text }}'}}
  - {id: read, prompt: Read it aloud., confirm: true}
outputs: {text: steps.write.output.text}
"""
PARALLEL = """\
id: two
steps:
  - {id: left, prompt: Go left.}
  - {id: right, prompt: Go right., after: []}
"""
UNDOING = """\
id: u
steps:
  - {id: a, prompt: Do it., effect: reversible, undo: {prompt: Undo it.}}
  - {id: b, prompt: Do more.}
"""
HOSTILE = r"""
id: h
steps: [{id: a, title: "\e[31mred", prompt: "\e]0;owned\a now\nsecond \e[2J line"}]
"""
TEXT = {"text": "a note that is long enough"}


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        (None, "JSON"),
        ({}, "JSON"),
        ({"properties": {"minor": {"type": "array"}}}, '{"minor":[]}'),
        ({"type": "array", "items": {"type": "string"}}, '["..."]'),
        ({"type": ["integer", "null"]}, "1"),
        ({"type": 5, "enum": 5, "properties": 5}, '"..."'),
        ({"properties": {"n": {"type": "number"}, "is": {"type": "boolean"}, "no": {"type": "null"}}}, None),
        ({"properties": {"a": {"const": 3}, "b": {"default": "x"}, "c": {"examples": [[1]]}, "d": True}}, None),
        ({"properties": {"deep": {"properties": {"one": {"type": "object"}}}}}, '{"deep":{"one":{}}}'),
    ],
)
def test_the_form_of_an_answer_is_an_example_that_has_its_types(schema: Any, form: str | None) -> None:
    words = shlex.split(form_of(schema))
    assert len(words) == 1
    if form is not None:
        assert words == [form]
    if form not in ("JSON", '"..."'):
        assert is_valid(schema, json.loads(words[0]))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def started(shell: Shell, text: str = GUIDED, *words: str) -> str:
    answered = shell.json("run", "start", shell.write(text), *words, code=4)
    return str(answered["run"])


def submit(shell: Shell, *words: str, code: int, output: Any = None) -> Any:
    more = ["--output", json.dumps(output)] if output is not None else []
    return shell.json("run", "submit", *words, *more, code=code)


def test_a_guided_workflow_is_walked_through_to_its_end(shell: Shell) -> None:
    run = started(shell, GUIDED, "-i", "topic=rain")
    refused = submit(shell, run, output={"text": "short"}, code=5)
    assert (refused["accepted"], refused["tries"], refused["step"]["id"]) == (False, 1, "write")
    assert [finding["rule"] for finding in refused["findings"]] == ["length"]
    accepted = submit(shell, run, "write", output=TEXT, code=4)
    assert (accepted["accepted"], accepted["step"]["id"], accepted["progress"]) == (
        True,
        "read",
        {"done": 3, "total": 4},
    )
    assert (shell.folder / "notes" / "note.txt").read_text() == TEXT["text"], "tool steps between are executed"
    unconfirmed = submit(shell, run, output="done", code=5)
    assert [finding["rule"] for finding in unconfirmed["findings"]] == ["confirm"]
    done = submit(shell, run, "--confirmed", output="done", code=0)
    assert (done["status"], done["outputs"]) == ("completed", {"text": TEXT["text"]})
    again = submit(shell, run, "read", "--confirmed", output="done", code=0)
    assert (again["accepted"], again["repeated"]) == (True, True)
    assert "no step of" in submit(shell, run, output="done", code=6)["error"]["message"]


def test_what_a_person_submits_is_theirs_in_the_journal(shell: Shell) -> None:
    run = started(shell, GUIDED, "-i", "topic=rain")
    submit(shell, run, "--note", "took a while", "--vars", '{"mood": "fine"}', output=TEXT, code=4)
    events = {event["kind"]: event for event in shell.json("journal", "show", run)["events"]}
    assert events["action_recorded"]["data"]["description"] == "took a while"
    assert events["vars_set"]["data"]["vars"] == {"mood": "fine"}
    mine = [one for one in shell.json("journal", "show", run)["events"] if one["kind"] == "step_completed"]
    assert f"person:{getpass.getuser()}" in {one["actor"] for one in mine if one["step"] == "write"}


def test_a_run_says_how_to_submit_and_the_step_is_shown_with_what_is_expected(shell: Shell) -> None:
    begun = shell.run("run", "start", shell.write(GUIDED), "-i", "topic=rain")
    run = begun.stdout.splitlines()[0]
    command = f"handrail run submit {run} write"
    assert command in begun.stdout
    assert command in shell.run("run", "show", run).stdout
    assert "run submit" not in shell.run("run", "show", run, "--json").stdout
    shown = shell.run("run", "submit", run)
    assert shown.exit_code == 4
    for text in (
        "write: Write it\n",
        "  Role: You are a careful writer.\n",
        "  Write a note on rain.\n\n  Keep it short.\n",
        "  - One thought a sentence.\n",
        '"required":["text"]',
        "  Checks: length\n",
        f"""  {command} --output '{{"mood":"good","text":"..."}}'\n""",
    ):
        assert text in shown.stdout, text
    assert shell.json("run", "submit", run, code=4)["step"]["prompt"].startswith("Write a note on rain.")
    assert shell.json("run", "show", run)["progress"]["done"] == 1, "nothing was submitted"


def test_words_say_what_was_accepted_what_was_found_and_what_comes_next(shell: Shell) -> None:
    run = started(shell, GUIDED, "-i", "topic=rain")
    refused = shell.run("run", "submit", run, "--output", '{"text": "short"}')
    assert refused.exit_code == 5
    assert refused.stdout.startswith("write: not accepted (try 1)\nerror[length]: ")
    accepted = shell.run("run", "submit", run, "--output", json.dumps(TEXT))
    assert accepted.exit_code == 4
    assert accepted.stdout.startswith("write: accepted\n")
    assert "  Read it aloud.\n" in accepted.stdout
    assert f"handrail run submit {run} read --output JSON --confirmed" in accepted.stdout


def test_an_output_comes_from_a_file_or_from_stdin(shell: Shell) -> None:
    run = started(shell, GUIDED, "-i", "topic=rain")
    refused = shell.write('{"text": "short"}', "out.json")
    assert shell.run("run", "submit", run, "--output", f"@{refused}").exit_code == 5
    as_yaml = shell.write("text: short\n", "out.yaml")
    assert submit(shell, run, "--output", f"@{as_yaml}", code=5)["tries"] == 2
    assert shell.run("run", "submit", run, "--output", "-", stdin=json.dumps(TEXT)).exit_code == 4


@pytest.mark.parametrize(
    ("words", "code", "sign"),
    [
        (("--output", "{"), 5, "--output is not JSON"),
        (("--output", "@nowhere.json"), 3, "nowhere.json"),
        (("--output", "1", "--vars", "[1]"), 5, "--vars is not an object"),
        (("nostep", "--output", "1"), 3, "nostep"),
        (("keep", "--output", "1"), 6, "keep"),
        (("read",), 6, "read"),
    ],
)
def test_what_can_not_be_submitted_is_refused_and_nothing_changes(
    shell: Shell, words: tuple[str, ...], code: int, sign: str
) -> None:
    run = started(shell, GUIDED, "-i", "topic=rain")
    before = shell.json("run", "show", run)["receipt"]
    assert sign in shell.json("run", "submit", run, *words, code=code)["error"]["message"]
    assert shell.json("run", "show", run)["receipt"] == before


def test_an_unknown_run_or_outcome_is_refused(shell: Shell) -> None:
    assert submit(shell, "run_nowhere", output=1, code=3)["error"]["name"] == "not_found"
    assert shell.run("run", "submit", "run_nowhere", "--outcome", "started").exit_code == 2


def test_with_several_ready_steps_the_step_has_to_be_named(shell: Shell) -> None:
    run = started(shell, PARALLEL)
    shown = shell.run("run", "submit", run)
    assert (shown.exit_code, "2 steps are ready" in shown.stdout) == (4, True)
    assert re.findall(rf"handrail run submit {run} (\w+)\n", shown.stdout.split("2 steps are ready")[1]) == [
        "left",
        "right",
    ]
    assert submit(shell, run, output=1, code=5)["error"]["message"] == "which step is meant? left, right"
    assert "Go right." in shell.run("run", "submit", run, "right").stdout
    assert submit(shell, run, "right", output=1, code=4)["ready"] == ["left"]
    assert submit(shell, run, output=1, code=0)["status"] == "completed"


def test_a_step_may_fail_be_skipped_and_be_done_after_all(shell: Shell) -> None:
    run = started(shell, PARALLEL)
    failed = submit(shell, run, "left", "--outcome", "failed", "--note", "the road is closed", code=4)
    assert failed["failure"]["message"] == "the road is closed"
    said = shell.run("run", "submit", run, "left", "--outcome", "failed", "--note", "the road is closed").stdout
    assert "left: recorded as failed, as reported" in said
    assert "left failed: the road is closed" in said  # no tool was called: it is no tool's error
    assert submit(shell, run, "left", output=1, code=4)["accepted"]
    assert submit(shell, run, "right", "--outcome", "skipped", "--note", "no need", code=0)["status"] == "completed"


def test_a_step_without_output_is_submitted_by_its_outcome(shell: Shell) -> None:
    run = started(shell, PARALLEL)
    assert submit(shell, run, "left", "--outcome", "done", code=4)["accepted"]


def test_an_undo_by_hand_is_shown_and_submitted(shell: Shell) -> None:
    run = started(shell, UNDOING)
    submit(shell, run, output=1, code=4)
    undoing = shell.json("run", "compensate", run, "--reason", "wrong", code=4)
    (name,) = [one["step"] for one in undoing["waiting_for"]]
    shown = shell.run("run", "submit", run)
    assert (shown.exit_code, "  Undo it.\n" in shown.stdout, name in shown.stdout) == (4, True, True)
    assert submit(shell, run, name, output=1, code=9)["status"] == "compensated"


def test_a_built_in_workflow_can_be_tried_in_an_empty_folder(shell: Shell) -> None:
    suite = files("handrail.library").joinpath("workflows", "design", "routine-plan-critique.tests.yaml")
    script = yaml.safe_load(suite.read_text(encoding="utf-8"))["tests"][0]
    given = shell.write(json.dumps(script["inputs"]), "inputs.json")
    answered = shell.json("run", "start", "routine-plan-critique", "-i", f"@{given}", code=4)
    run, submitted = answered["run"], []
    while answered["status"] == "waiting":
        (step,) = [one["step"] for one in answered["waiting_for"]]
        submitted.append(step)
        result = shell.run("run", "submit", run, "--json", "--output", json.dumps(script["outputs"][step]))
        assert result.exit_code in (0, 4), result.output
        answered = json.loads(result.stdout)
        assert answered["accepted"], answered
    assert (answered["status"], submitted) == ("completed", script["expect"]["path"])


def test_at_a_terminal_a_person_is_asked_to_agree(shell: Shell) -> None:
    run = started(shell, "id: c\nsteps: [{id: read, prompt: Read it., confirm: true}]\n")
    no = shell.terminal("run", "submit", run, "--output", "1", typed="n\n", NO_COLOR="1")
    assert "needs your agreement" in no
    assert "read: not accepted" in no
    assert shell.json("run", "show", run, code=0)["status"] == "waiting"
    yes = shell.terminal("run", "submit", run, "--output", "1", typed="y\n", NO_COLOR="1")
    assert "read: accepted" in yes
    (decision,) = [one for one in shell.json("journal", "show", run)["events"] if one["kind"] == "decision_recorded"]
    assert decision["data"]["reason"] == f"person:{getpass.getuser()} agreed at the terminal"


def test_a_hostile_prompt_does_nothing_to_the_terminal(shell: Shell) -> None:
    run = started(
        shell, 'id: h\nsteps: [{id: a, title: "\\e[31mred", prompt: "\\e]0;owned\\a now\\nsecond \\e[2J line"}]\n'
    )
    shown = shell.run("run", "submit", run).stdout
    assert "second " in shown
    assert "\x1b" not in shown
    assert "\a" not in shown


def test_the_walk_of_the_guide_works_as_it_is_written(shell: Shell) -> None:
    guide = (ROOT / "docs" / "guides" / "command-line.md").read_text(encoding="utf-8")
    start, show, submitted = re.findall(r"(?m)^\$ handrail (run (?:start|submit) .*)$", guide)
    begun = shell.run(*shlex.split(start))
    run = begun.stdout.splitlines()[0]
    assert begun.exit_code == 4, begun.output
    assert "attack: " in shell.run(*shlex.split(show.replace("RUN", run), comments=True)).stdout
    assert "attack: accepted" in shell.run(*shlex.split(submitted.replace("RUN", run))).stdout
