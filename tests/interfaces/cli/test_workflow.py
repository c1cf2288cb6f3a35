"""`handrail workflow` as authors meet it: new, list, show, test, diff."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from handrail.library.schemas.structure import schema_text
from interfaces.shell import Shell
from tidy.yardstick import ROOT

WORKFLOW = """\
id: greet
name: Greet
version: 1.0.0
description: Say hello to somebody.
category: delivery
tags: [hello]
inputs: {who: {type: string}, loud: {type: boolean, default: false}}
steps:
  - id: say
    prompt: Say hello to {{ inputs.who }}.
    output: {type: object, required: [text], properties: {text: {type: string}}}
    checks: [{rule: contains, of: text, text: hello, severity: major}]
  - {id: shout, when: inputs.loud, prompt: Shout it.}
outputs: {text: steps.say.output.text}
"""
TESTS = """\
workflow: greet
tests:
  - name: a quiet hello
    inputs: {who: Ann}
    outputs: {say: {text: hello}}
    expect: {end: completed, path: [say], skipped: [shout], outputs: {text: hello}}
  - name: a bad word is refused, then a loud hello
    inputs: {who: Ann, loud: true}
    outputs: {say: {try: [{text: bye}, {text: hello}]}}
    expect: {end: completed, path: [say, shout], findings: {say: [contains]}}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


# --- test -------------------------------------------------------------------------------------------


def test_tests_that_pass_are_listed_and_nothing_is_written(shell: Shell) -> None:
    file = shell.write(WORKFLOW, "greet.yaml")
    shell.write(TESTS, "greet.tests.yaml")
    result = shell.run("workflow", "test", file)
    assert result.exit_code == 0, result.output
    assert "passed  a quiet hello" in result.stdout
    assert "tests cover 2 of 2 branches" in result.stdout
    assert "2 of 2 tests passed in 1 workflow" in result.stdout
    assert not shell.home.exists()


def test_a_test_that_fails_is_explained_by_its_first_difference(shell: Shell) -> None:
    file = shell.write(WORKFLOW, "greet.yaml")
    shell.write(TESTS.replace("path: [say, shout]", "path: [shout, say]"), "greet.tests.yaml")
    result = shell.run("workflow", "test", file)
    assert result.exit_code == 1
    assert "FAILED  a bad word is refused" in result.stdout
    assert "expected: shout, say; there is no say after shout" in result.stdout
    assert "got:      say, shout" in result.stdout
    assert "path: say, shout -> completed" in result.stdout
    (reply,) = shell.json("workflow", "test", file, code=1)["workflows"]
    assert [test["passed"] for test in reply["tests"]] == [True, False]
    assert reply["tests"][1]["differences"][0]["what"] == "path"


@pytest.mark.parametrize("target", ["greet.yaml", "greet.tests.yaml", ".", "greet", "greet@^1"])
def test_workflows_are_named_by_file_by_their_tests_by_folder_or_by_id(shell: Shell, target: str) -> None:
    shell.write(WORKFLOW, ".handrail/workflows/greet.yaml")
    shell.write(TESTS, ".handrail/workflows/greet.tests.yaml")
    shell.at = shell.folder / ".handrail" / "workflows"
    (reply,) = shell.json("workflow", "test", target)["workflows"]
    assert (reply["workflow"], reply["passed"]) == ("greet", True)


def test_a_workflow_without_tests_or_with_faults_does_not_pass(shell: Shell) -> None:
    bare = shell.write(WORKFLOW, "greet.yaml")
    assert "there are no tests beside it" in shell.run("workflow", "test", bare).stdout
    assert shell.run("workflow", "test", bare).exit_code == 1
    broken = shell.write(WORKFLOW.replace("inputs.loud", "inputs.lod"), "broken.yaml")
    result = shell.run("workflow", "test", broken)
    assert (result.exit_code, "not valid" in result.stdout, "did you mean" in result.stdout) == (1, True, True)


def test_tests_that_can_not_be_read_are_reported_with_their_place(shell: Shell) -> None:
    file = shell.write(WORKFLOW, "greet.yaml")
    tests = shell.write(TESTS.replace("outputs: {say: {text:", "outputs: {sai: {text:"), "greet.tests.yaml")
    result = shell.run("workflow", "test", file)
    assert result.exit_code == 1
    assert f"{tests}:5:" in result.stdout
    assert "did you mean `say`?" in result.stdout


def test_all_paths_are_reported_beside_what_tests_take(shell: Shell) -> None:
    hole = WORKFLOW + "  loud: steps.shout.output.text\n"
    hole = hole.replace("outputs: {text: steps.say.output.text}\n", "outputs:\n  text: steps.say.output.text\n")
    file = shell.write(hole, "greet.yaml")
    tests = TESTS.split("  - name: a bad word")[0].replace("end: completed", "end: failed")
    shell.write(tests.replace(", outputs: {text: hello}}", "}"), "greet.tests.yaml")
    result = shell.run("workflow", "test", file, "--paths")
    assert result.exit_code == 0, result.output
    assert "shout: its condition is true" in result.stdout
    assert "missing on some path" in result.stdout
    (reply,) = shell.json("workflow", "test", file, "--paths")["workflows"]
    assert reply["paths"]["missing"][0]["step"] == "outputs"
    assert reply["paths"]["untested"] == [{"step": "shout", "way": "its condition is true"}]
    assert (reply["paths"]["whole"], reply["paths"]["longest"]) == (True, ["say", "shout"])


def test_a_target_that_is_not_there_is_not_found(shell: Shell) -> None:
    assert shell.json("workflow", "test", "nothing.yaml", code=3)["error"]["name"] == "not_found"
    assert shell.json("workflow", "test", "nothing-of-that-name", code=3)["error"]["name"] == "not_found"
    (shell.folder / "empty").mkdir()
    assert "no workflow in" in shell.json("workflow", "test", str(shell.folder / "empty"), code=3)["error"]["message"]


# --- new --------------------------------------------------------------------------------------------


def test_a_new_workflow_is_valid_passes_its_tests_and_is_completed_by_editors(shell: Shell) -> None:
    reply = shell.json("workflow", "new", "rename-thing")
    file = Path(reply["file"])
    assert file == shell.folder / ".handrail" / "workflows" / "rename-thing.yaml"
    first = file.read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=../workflow.schema.json"
    assert (file.parent / "../workflow.schema.json").read_text(encoding="utf-8") == schema_text()
    checked = shell.json("workflow", "validate", str(file))
    assert (checked["valid"], checked["findings"]) == (True, [])
    (tested,) = shell.json("workflow", "test", "rename-thing", "--paths")["workflows"]
    assert tested["passed"]
    assert (tested["paths"]["untested"], tested["paths"]["missing"], tested["paths"]["unreached"]) == ([], [], [])


def test_a_new_workflow_overwrites_nothing(shell: Shell) -> None:
    file = shell.write("mine", "mine.yaml")
    assert shell.json("workflow", "new", "mine", "-o", file, code=6)["error"]["name"] == "conflict"
    shell.write("mine", "other.tests.yaml")
    other = shell.folder / "other.yaml"
    assert shell.json("workflow", "new", "other", "-o", str(other), code=6)["error"]["name"] == "conflict"
    assert not other.exists(), "all files or none"
    assert Path(file).read_text(encoding="utf-8") == "mine"


def test_a_new_workflow_may_start_as_another_one_with_its_comments_and_tests(shell: Shell) -> None:
    source = shell.write("# why it is so\n" + WORKFLOW, "greet.yaml")
    shell.write(TESTS, "greet.tests.yaml")
    reply = shell.json("workflow", "new", "welcome", "--from", source)
    text = Path(reply["file"]).read_text(encoding="utf-8")
    assert "# why it is so" in text
    assert "\nid: welcome\n" in text
    assert "\nversion: 0.1.0\n" in text
    assert shell.json("workflow", "test", "welcome")["workflows"][0]["passed"]


def test_a_new_workflow_may_start_as_json_and_ends_as_yaml(shell: Shell) -> None:
    source = shell.write(json.dumps({"id": "greet", "steps": ["wave", "smile"]}), "greet.json")
    reply = shell.json("workflow", "new", "welcome", "--from", source)
    assert shell.json("workflow", "validate", reply["file"])["id"] == "welcome"


@pytest.mark.parametrize("name", ["Not An Id", "-x", "a b"])
def test_what_can_be_no_id_is_refused_before_anything_is_written(shell: Shell, name: str) -> None:
    result = shell.run("workflow", "new", "--json", "--", name)
    assert result.exit_code == 5, result.output
    assert not (shell.folder / ".handrail").exists()


# --- list and show ----------------------------------------------------------------------------------


def test_the_library_is_listed_and_searched(shell: Shell) -> None:
    shell.write(WORKFLOW, ".handrail/workflows/greet.yaml")
    shell.write("id: [", ".handrail/workflows/broken.yaml")
    reply = shell.json("workflow", "list", "--tag", "hello")
    (own,) = reply["workflows"]
    assert (own["id"], own["source"], own["steps"]) == ("greet", "project", 2)
    assert reply["broken"][0]["file"].endswith("broken.yaml")
    assert shell.json("workflow", "list", "--query", "say hello to somebody")["workflows"][0]["id"] == "greet"
    assert shell.json("workflow", "list", "hello", "--category", "knowledge", "--tag", "hello")["workflows"] == []
    words = shell.run("workflow", "list", "--tag", "hello")
    assert "Say hello to somebody." in words.stdout
    assert "broken.yaml can't be read" in words.stderr


def test_a_workflow_that_shadows_one_that_is_built_in_says_so(shell: Shell) -> None:
    shell.write(WORKFLOW.replace("id: greet", "id: code-review"), ".handrail/workflows/code-review.yaml")
    shown = shell.json("workflow", "show", "code-review")
    assert (shown["source"], shown["shadows"]) == ("project", ["built in"])
    assert "shadows: built in" in shell.run("workflow", "show", "code-review").stdout


def test_a_workflow_is_shown_by_id_or_file_in_words_and_as_yaml(shell: Shell) -> None:
    file = shell.write(WORKFLOW, "greet.yaml")
    words = shell.run("workflow", "show", file).stdout
    assert "greet@1.0.0  Greet" in words
    assert "shout: Shout (prompt, when inputs.loud)" in words
    assert "loud: boolean (default: False)" in words
    text = shell.run("workflow", "show", file, "--yaml").stdout
    again = shell.write(text, "again.yaml")
    assert shell.json("workflow", "validate", again)["hash"] == shell.json("workflow", "validate", file)["hash"]
    assert shell.json("workflow", "show", "no-such-thing", code=3)["error"]["name"] == "not_found"


# --- diff -------------------------------------------------------------------------------------------


def test_a_breaking_change_is_reported_with_the_version_that_it_asks_for(shell: Shell) -> None:
    old = shell.write(WORKFLOW, "old.yaml")
    new = shell.write(WORKFLOW.replace("{who:", "{whom:").replace("inputs.who", "inputs.whom"), "new.yaml")
    reply = shell.json("workflow", "diff", old, new)
    assert (reply["breaking"], reply["version_wanted"], reply["version_is_enough"]) == (True, "2.0.0", False)
    assert {one["where"] for one in reply["changes"] if one["weight"] == "breaking"} == {"inputs.who", "inputs.whom"}
    words = shell.run("workflow", "diff", old, new, "--fail-on-breaking")
    assert words.exit_code == 1
    assert "at least version 2.0.0, and it is 1.0.0" in words.stdout


def test_other_words_are_a_patch_and_nothing_is_nothing(shell: Shell) -> None:
    old = shell.write(WORKFLOW, "old.yaml")
    new = shell.write(WORKFLOW.replace("Shout it.", "Shout it well.").replace("1.0.0", "1.0.1"), "new.yaml")
    reply = shell.json("workflow", "diff", old, new, "--fail-on-breaking")
    assert (reply["bump"], reply["version_is_enough"], len(reply["changes"])) == ("patch", True, 1)
    assert "no changes" in shell.run("workflow", "diff", old, old).stdout


def test_two_versions_in_the_library_are_compared_by_id(shell: Shell) -> None:
    shell.write(WORKFLOW, ".handrail/workflows/greet-1.yaml")
    shell.write(WORKFLOW.replace("1.0.0", "1.1.0"), ".handrail/workflows/greet-2.yaml")
    reply = shell.json("workflow", "diff", "greet@1.0.0", "greet@1.1.0")
    assert (reply["old"]["version"], reply["new"]["version"], reply["changes"]) == ("1.0.0", "1.1.0", [])


# --- hostile files ----------------------------------------------------------------------------------


BELL = r"\a\e]0;owned\a"
HOSTILE = f"""\
id: greet
name: "Greet{BELL}"
description: "Say{BELL} hello.\\nTwice."
category: "deliv{BELL}ery"
clarify: ["Who{BELL}?"]
inputs: {{who: {{type: string, description: "x{BELL}"}}}}
steps:
  - {{id: say, title: "Say{BELL}", prompt: Say hello., output: {{type: object}}}}
outputs: {{text: steps.say.output.text}}
"""
HOSTILE_TESTS = f"""\
workflow: greet
tests:
  - name: "a quiet{BELL} hello"
    inputs: {{who: Ann}}
    outputs: {{say: {{text: "hi{BELL}"}}}}
    expect: {{end: completed, outputs: {{text: "ho{BELL}"}}}}
"""


def test_nothing_that_a_workflow_says_acts_on_the_terminal(shell: Shell) -> None:
    old = shell.write(HOSTILE, ".handrail/workflows/greet.yaml")
    shell.write(HOSTILE_TESTS, ".handrail/workflows/greet.tests.yaml")
    new = shell.write(HOSTILE.replace("Say hello.", "Say hi."), "new.yaml")
    graphs = [("graph", "greet", *form) for form in ((), ("--ascii",), ("--mermaid",), ("--svg",))]
    broken = ("graph", shell.write("steps: [", "no\x1b[31m\a\u202e.yaml"))
    reading = (("show", "greet"), ("show", "greet", "--yaml"), ("list",), ("test", "greet", "--paths"))
    for words in (*reading, ("diff", old, new), *graphs, broken):
        shown = shell.run("workflow", *words).output
        assert "Traceback" not in shown
        assert not [char for char in shown if char != "\n" and not char.isprintable()], words
    assert "  Twice." not in shell.run("workflow", "show", "greet").stdout
    assert "\nTwice.\n" in shell.run("workflow", "show", "greet").stdout, "lines stay lines"


# --- the guide --------------------------------------------------------------------------------------


def test_the_example_of_the_guide_is_valid_tested_and_has_no_holes(shell: Shell) -> None:
    guide = (ROOT / "docs" / "guides" / "writing-a-workflow.md").read_text(encoding="utf-8")
    texts = re.findall(r"```yaml\n# (\S+)\n(.*?)```", guide, re.DOTALL)
    assert [name for name, _ in texts] == ["tidy-up.yaml", "tidy-up.tests.yaml"]
    file, _ = (shell.write(text, name) for name, text in texts)
    assert shell.json("workflow", "validate", file)["findings"] == []
    (reply,) = shell.json("workflow", "test", file, "--paths")["workflows"]
    assert [test["name"] for test in reply["tests"] if not test["passed"]] == []
    assert (reply["paths"]["missing"], reply["paths"]["untested"], reply["paths"]["without_undo"]) == ([], [], [])


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_workflow_folder_that_links_to_itself_is_reported_and_everything_else_works(shell: Shell) -> None:
    own = shell.folder / ".handrail" / "workflows"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.symlink_to("workflows")
    listed = shell.run("workflow", "list")
    assert (listed.exit_code, "code-review" in listed.stdout) == (0, True)
    assert "leads back to itself" in listed.stderr
    for words in (("show",), ("validate",), ("graph",)):
        assert shell.run("workflow", *words, "code-review").exit_code == 0
        assert shell.run("workflow", *words, "no-such").exit_code == 3
    assert shell.run("run", "start", "no-such").exit_code == 3
    assert shell.run("workflow", "validate", str(own)).exit_code == 3
