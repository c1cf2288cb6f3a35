"""Rules from the command line: listed, shown, begun, checked by hand; and what is remembered of them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from handrail.assembly.checks import rule_memory_of, rules_of
from handrail.domain.checks.finding import Finding, Severity
from handrail.domain.checks.rule import CheckOutcome, Evidence
from handrail.rules.registry import RuleRegistry
from handrail.settings import read_settings
from interfaces.shell import Shell
from outside.debian import bubblewrap
from rules.guests import Said, door


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "project").mkdir()
    return Shell(tmp_path / "project")


@pytest.fixture
def sandboxed(shell: Shell) -> Shell:
    """A shell in a project whose commands have a sandbox; the test is left out where there is none."""
    shell.write(f"[shell]\nbubblewrap = {json.dumps(str(bubblewrap()))}\n", "home/config.toml")
    return shell


def test_rules_are_listed_with_what_they_say_of_themselves(shell: Shell) -> None:
    listed = shell.json("rules", "list")
    rules = {rule["name"]: rule for rule in listed["rules"]}
    assert rules["matches"]["reads"] == "output"
    assert (rules["matches"]["looks_at"], rules["tests_pass"]["looks_at"]) == ("words", "world")
    assert rules["matches"]["origin"] == "built in"
    assert rules["matches"]["required"] == ["pattern"]
    assert listed["broken"] == {}
    words = shell.run("rules", "list").stdout
    assert "any_of" in words
    assert "At least one of `checks` passes." in words


def test_a_rule_that_can_not_be_used_is_reported_with_its_reason(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RuleRegistry, "broken", {"acme": "acme 1.0: it can't be imported"})
    assert shell.json("rules", "list")["broken"] == {"acme": "acme 1.0: it can't be imported"}
    assert "rule acme can't be used: acme 1.0: it can't" in shell.run("rules", "list").stderr
    assert "it can't be imported" in shell.json("rules", "show", "acme", code=5)["error"]["message"]
    assert shell.json("rules", "check", "acme", code=5)["broken"] == {"acme": "acme 1.0: it can't be imported"}


def test_a_rule_is_shown_with_its_parameters_and_an_example(shell: Shell) -> None:
    assert shell.json("rules", "show", "length")["parameters"]["min"] == {"type": "number"}
    words = shell.run("rules", "show", "matches").stdout
    assert "built in; reads the output; looks at words; at most 60s" in words
    assert "required" in words
    assert "- rule: matches" in words
    error = shell.json("rules", "show", "match", code=3)["error"]
    assert error["hint"] == "did you mean `matches`?"


def test_a_new_rule_is_a_package_that_works(sandboxed: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    made = sandboxed.json("rules", "new", "no_todo", "--folder", str(folder))
    assert (made["rule"], len(made["files"])) == ("no_todo", 3)
    again = sandboxed.json("rules", "new", "no_todo", "--folder", str(folder), code=6)["error"]
    assert "already exists" in again["message"]

    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert tests.returncode == 0, tests.stdout

    words = ("rules", "check", str(folder))
    found = sandboxed.json(*words, "--output", '{"text": "TODO"}')
    (tried,) = found["rules"]
    assert tried["works"]
    assert tried["rule"]["origin"] == "no-todo-rule 0.1.0"
    assert tried["findings"][0]["message"] == "the output contains `TODO`"
    assert tried["evidence"][0]["tools"]["no-todo-rule"] == "0.1.0"
    assert "no findings: the check passes" in sandboxed.run(*words).stdout
    unfit = sandboxed.json(*words, "--parameters", '{"word": "a"}', code=5)
    assert not unfit["rules"][0]["works"]

    code = folder / "src" / "no_todo_rule" / "__init__.py"
    code.write_text(code.read_text() + "\nraise OSError('half done')\n")
    broken = sandboxed.run(*words)
    assert broken.exit_code == 5
    assert "half done" in broken.stderr


def test_words_are_reported_where_a_new_rule_is(shell: Shell) -> None:
    result = shell.run("rules", "new", "no_todo")
    assert result.exit_code == 0
    assert "wrote no_todo/pyproject.toml" in result.stdout.replace("\\", "/")
    assert "handrail rules check no_todo" in result.stdout
    assert shell.json("rules", "new", "No-Todo", code=5)["error"]["name"] == "invalid"
    (shell.folder / "file").write_text("")
    assert shell.json("rules", "new", "other", "--folder", "file/in", code=8)["error"]["name"] == "unavailable"


def test_a_rule_is_applied_by_hand(shell: Shell) -> None:
    words = ("rules", "check", "contains", "--parameters", '{"of": "text", "text": "tested"}')
    assert shell.json(*words, "--output", '{"text": "all tested"}')["rules"][0]["findings"] == []
    result = shell.run(*words, "--output", '{"text": "nothing"}')
    assert (result.exit_code, "  1 finding\n" in result.stdout) == (0, True)
    assert "`tested` is not in it" in result.stdout
    missing = shell.run("rules", "check", "matches", "--parameters", "{}")
    assert (missing.exit_code, "the rule does not work" in missing.stdout) == (5, True)


@pytest.mark.parametrize(
    ("words", "code", "sign"),
    [
        (("nobody",), 3, "there is no rule 'nobody', and no such folder"),
        (("contains", "--parameters", "{"), 5, "--parameters is not JSON"),
        (("contains", "--parameters", "[]"), 5, "--parameters is not a JSON object"),
        (("contains", "--output", "words"), 5, "--output is not JSON"),
        (("empty",), 3, "there is no pyproject.toml"),
        (("silent",), 5, "provides no rules"),
        (("odd",), 5, "provides no rules"),
        (("garbled",), 5, "can't be read"),
    ],
)
def test_what_can_not_be_checked_is_reported(shell: Shell, words: tuple[str, ...], code: int, sign: str) -> None:
    files = {"silent": '[project]\nname = "a"\n', "odd": 'project = "a"\n', "garbled": "= ="}
    for name, text in files.items():
        shell.write(text, f"{name}/pyproject.toml")
    (shell.folder / "empty").mkdir()
    assert sign in shell.json("rules", "check", *words, code=code)["error"]["message"]


def test_without_a_sandbox_a_package_is_reported_as_such(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.assembly.checks.sandbox_of", lambda *_, **__: Said(why_not="no sandbox here"))
    shell.write('[project.entry-points."handrail.rules"]\nmine = "mine:mine"\n', "mine/pyproject.toml")
    reply = shell.json("rules", "check", str(shell.folder / "mine"), code=5)
    assert "no sandbox here" in reply["broken"]["mine"]


async def test_rules_of_packages_stand_beside_those_built_in(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "handrail.rules.plugins.plugin_discovery.rule_entries",
        lambda: {"mine": door("mine"), "matches": door("matches")},
    )
    monkeypatch.setattr("handrail.assembly.checks.sandbox_of", lambda *_, **__: Said(why_not="no sandbox here"))
    shelf = rules_of(read_settings({"home": str(shell.home), "project": str(shell.folder)}, {}))
    assert {"mine", "matches"} <= set(shelf.names())
    assert "mine" not in [card.name for card in await shelf.cards()]
    assert "no sandbox here" in shelf.broken["mine"]
    assert "there is a rule matches already" in shelf.broken["matches"]
    found = await shelf.find("matches")
    assert found is not None
    assert found.card.origin == "built in"


def test_cached_results_can_be_listed_and_removed(shell: Shell) -> None:
    assert shell.json("rules", "cache") == {"results": [], "total": 0}
    assert shell.run("rules", "cache").stderr == "no cached results\n"
    memory = rule_memory_of(read_settings({"home": str(shell.home), "project": str(shell.folder)}, {}))
    finding = Finding(rule="tests_pass", severity=Severity.MAJOR, where="a.py:1", message="it fails")
    for key, findings in {"one": (), "two": (finding,)}.items():
        evidence = Evidence(rule="tests_pass", version="1.0.0", passed=not findings)
        asyncio.run(memory.keep(key, CheckOutcome(findings=findings, evidence=evidence)))
    remembered = shell.json("rules", "cache", "list")["results"]
    assert {(one["rule"], one["version"], one["passed"]) for one in remembered} == {
        ("tests_pass", "1.0.0", True),
        ("tests_pass", "1.0.0", False),
    }
    assert remembered[0]["when"].endswith("Z")
    assert "failed" in shell.run("rules", "cache").stdout
    assert shell.json("rules", "cache", "clear") == {"removed": 2}
    assert shell.json("rules", "cache") == {"results": [], "total": 0}


UNITTEST = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertTrue(RIGHT)\n"


def _refused(shell: Shell, *words: str) -> str:
    result = shell.run("rules", "try", *words)
    assert result.exit_code == 5, result.output
    return result.stdout


def test_a_rule_is_tried_and_says_what_it_runs_and_why(sandboxed: Shell) -> None:
    shell = sandboxed
    venv.create(shell.folder / ".venv", symlinks=True)
    shell.write(f"RIGHT = 1\n{UNITTEST}", "test_a.py")
    python = shell.folder / ".venv" / "bin" / "python3"
    words = shell.run("rules", "try", "tests_pass", "--dry-run").stdout
    assert f"$ {python} -B -" in words
    assert f"python3: {python} (the environment .venv of the project)" in words
    tried = shell.json("rules", "try", "tests_pass", "path=.")
    assert tried["passed"] is True
    assert tried["commands"][0]["argv"][0] == str(python)
    assert tried["evidence"][0]["chosen"]["python3"] == f"{python} (the environment .venv of the project)"
    words = shell.run("rules", "try", "tests_pass").stdout
    assert "1 tests, 1 passed" in words
    assert words.endswith("the check passes\n")
    shell.write(f"RIGHT = 0\n{UNITTEST}", "test_a.py")
    words = _refused(shell, "tests_pass", "paths=test_a.py")
    assert "0 is not true" in words
    assert words.endswith("1 finding\n")


def test_a_try_says_what_is_missing_and_what_was_looked_at(shell: Shell) -> None:
    venv.create(shell.folder / ".venv", symlinks=True)
    shell.write("def test_a(): pass\n", "test_a.py")
    words = _refused(shell, "coverage_at_least", "percent=80", "--dry-run")
    assert "can't be run: there is no" in words
    assert f"| {shell.folder}/.venv/bin/python3: the environment .venv of the project; it has no" in words
    planned = shell.json("rules", "try", "lint_clean", "path=nowhere", "--dry-run", code=5)
    assert planned["commands"][0]["missing"] == "there is no folder nowhere"
    assert planned["commands"][0]["fix"] == "name a path in the project"


def test_a_try_of_what_runs_no_command_says_so_and_bad_words_are_refused(shell: Shell) -> None:
    shell.write("", "a.txt")
    assert "runs no command" in _refused(shell, "length", "min=1")
    assert "runs no command" in shell.run("rules", "try", "coverage_at_least", "report=a", "--dry-run").stdout
    listed = shell.json("rules", "try", "command_succeeds", "argv=true", "argv=-x", "cwd=.", "--dry-run")
    assert listed["parameters"] == {"argv": ["true", "-x"], "cwd": "."}
    assert "is not a parameter" in shell.json("rules", "try", "length", "min", code=5)["error"]["message"]
    assert "there is no rule" in shell.json("rules", "try", "lenght", code=3)["error"]["message"]
