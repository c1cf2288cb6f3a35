"""Who somebody is, what an override takes, and which folder counts: found by outsiders, held from here on."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.settings import local_person
from interfaces.shell import Process, Shell

STEPS = (
    {"id": "go", "approve": "Go on?"},
    {"id": "w", "tool": "file.write", "args": {"path": "a.txt", "text": "x"}},
)
ASKING = {"id": "ask", "steps": STEPS}
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="accounts by number are a matter of POSIX")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def started(shell: Shell) -> str:
    return str(shell.json("run", "start", shell.write(json.dumps(ASKING)), code=4)["run"])


@POSIX
@pytest.mark.parametrize("variable", ["LOGNAME", "USER", "LNAME", "USERNAME"])
def test_no_variable_makes_somebody_somebody_else(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "bob")
    assert local_person() == f"person:{pwd.getpwuid(os.getuid()).pw_name}"


@POSIX
def test_an_account_without_a_name_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nameless)
    assert local_person() == f"person:uid-{os.getuid()}"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has namespaces of users")
def test_a_real_process_without_a_name_or_a_home_folder_works(shell: Shell) -> None:
    nameless = ["unshare", "--user", "--map-user=54321", "env", "-u", "HOME"]
    if subprocess.run([*nameless, "true"], capture_output=True, check=False).returncode:
        pytest.skip("not tried: no namespaces of users can be made here")
    chosen = ["--home", str(shell.home), "--project", str(shell.folder)]
    handrail = [*nameless, sys.executable, "-m", "handrail", *chosen]
    code, _, err = Process([*handrail, "run", "start", shell.write(json.dumps(ASKING))], shell.folder).end()
    assert (code, err) == (4, "")
    started = [one["actor"] for one in shell.json("journal", "show")["events"] if one["kind"] == "run_started"]
    assert started == ["person:uid-54321"]
    code, _, err = Process([*handrail, "init", "--dry-run"], shell.folder).end()
    assert (code, err.splitlines()[0]) == (3, "not_found: no supported client is installed")


def test_an_override_needs_the_passphrase_that_approvals_need(shell: Shell) -> None:
    shell.configure("[approvals]\npassphrase = true\n")
    run = started(shell)
    refused = shell.run("run", "skip", run, "go", "--reason", "x")
    assert refused.exit_code == 1, refused.output
    assert "need a passphrase" in refused.stderr
    assert not (shell.folder / "a.txt").exists()
    assert shell.json("run", "show", run)["status"] == "waiting"


def test_an_override_comes_by_a_channel_that_counts(shell: Shell) -> None:
    shell.configure('[approvals]\nchannels = ["terminal"]\n')
    run = started(shell)
    refused = shell.run("run", "skip", run, "go", "--reason", "x")
    assert refused.exit_code == 1, refused.output
    assert "an answer by command does not count here" in refused.stderr
    assert not (shell.folder / "a.txt").exists()


@pytest.mark.parametrize(
    ("limit", "why"),
    [({"by": ["nobody-here"]}, "this is for nobody-here"), ({"not_by": "starter"}, "started this run")],
)
def test_an_override_is_only_of_who_may_answer(shell: Shell, limit: dict[str, object], why: str) -> None:
    go, *rest = STEPS
    asking = shell.write(json.dumps({**ASKING, "steps": [{**go, **limit}, *rest]}))
    run = shell.json("run", "start", asking, code=4)["run"]
    refused = shell.run("run", "skip", run, "go", "--reason", "x")
    assert (refused.exit_code, why in refused.stderr) == (1, True), refused.output
    assert not shell.json("run", "skip", run, "go", "--dry-run")["allowed"]
    assert not (shell.folder / "a.txt").exists()


def test_an_override_without_a_step_is_of_the_only_approval_and_keeps_its_channel(shell: Shell) -> None:
    run = started(shell)
    assert shell.run("run", "skip", run, "--reason", "nobody is here").exit_code == 0
    (past,) = [one for one in shell.json("journal", "show", run)["events"] if one["kind"] == "approval_overridden"]
    assert (past["data"]["channel"], past["data"]["reason"]) == ("command", "nobody is here")


def test_a_project_adds_groups_once_it_is_trusted_and_changes_none_of_the_owners(shell: Shell) -> None:
    me = local_person().partition(":")[2]
    shell.configure('[groups]\nleads = ["somebody-else"]\n')
    shell.write(f'[groups]\nleads = ["{me}"]\ncrew = ["{me}"]\n', ".handrail/config.toml")
    shell.trust()
    for group, code in (("leads", 1), ("crew", 0)):
        steps = [{"id": "go", "approve": "Go on?", "by": [group]}]
        run = shell.json("run", "start", shell.write(json.dumps({"id": "ask", "steps": steps})), code=4)["run"]
        (asked,) = [one for one in shell.json("approvals")["approvals"] if one["run"] == run]
        answered = shell.run("approve", run, "--digest", asked["digest"], "--reason", "x")
        assert answered.exit_code == code, (group, answered.output)


def test_a_folder_that_is_gone_is_no_project(shell: Shell, tmp_path: Path) -> None:
    file = shell.write(json.dumps(ASKING))
    chosen = ["--home", str(shell.home), "--project", str(tmp_path / "typo")]
    words = [sys.executable, "-m", "handrail", *chosen, "run", "start", str(shell.folder / file)]
    code, _, err = Process(words, tmp_path).end()
    assert code == 3, err
    assert "there is no folder" in err
    assert shell.json("project", "list")["projects"] == []


def test_the_demo_leaves_the_owners_witnesses_and_passphrase_alone(shell: Shell, tmp_path: Path) -> None:
    witness = tmp_path / "witness.jsonl"
    shell.configure(f'[approvals]\npassphrase = true\n[witnesses]\ntargets = ["file:{witness}"]\n')
    shown = shell.run("demo")
    assert shown.exit_code == 0, shown.output
    assert not witness.exists()
