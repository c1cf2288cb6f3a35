"""Proof bundles on the command line: written where the store is, checked where there is none."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from msgspec.structs import replace

from engine.bundling import EVENTS, bundle_in, store_with
from handrail.domain.journal.event import StepCompleted
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.engine.proving.bundle_account import Account, ProofKind, ProvenStep
from handrail.interfaces.cli.journal.bundle import is_bundle, print_account
from handrail.interfaces.cli.program import person
from handrail.rules.files.tree import tree_digest
from interfaces.shell import Shell

WORK = """\
id: work
steps:
  - {{id: write, tool: file.write, args: {{path: a.txt, text: a}}}}
  - {{id: go, approve: 'Go on?', by: ['{me}']}}
"""
GOLDEN = Path(__file__).parents[2] / "engine" / "bundle-format-1.proof"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def run_that_waits(shell: Shell) -> str:
    me = person().removeprefix("person:")
    run: str = shell.json("run", "start", shell.write(WORK.format(me=me)), code=4)["run"]
    return run


def verified(shell: Shell, file: Path, *words: str, code: int = 0) -> Any:
    return shell.json("journal", "verify", str(file), *words, code=code)


def test_a_bundle_is_checked_on_another_machine_without_a_store(shell: Shell, tmp_path: Path) -> None:
    run = run_that_waits(shell)
    assert shell.run("approve", run, "go", "--reason", "it is right", *shell.seen(run)).exit_code == 0
    file = tmp_path / "run.proof"
    written = shell.run("journal", "export", run, "--bundle", str(file))
    assert written.exit_code == 0, written.output
    assert f"proves {run}: completed" in written.stdout
    away = tmp_path / "away"
    away.mkdir()
    shutil.move(str(file), away / "run.proof")
    command = [
        sys.executable,
        "-m",
        "handrail",
        "--home",
        str(away / "home"),
        "journal",
        "verify",
        "run.proof",
        "--json",
    ]
    ended = subprocess.run(command, cwd=away, capture_output=True, text=True, encoding="utf-8", check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    reply = json.loads(ended.stdout)
    assert (reply["run"], reply["status"], reply["is_trusted"]) == (run, "completed", False)
    assert [(step["id"], step["how"]) for step in reply["steps"]] == [("write", "executed"), ("go", "approved")]
    assert reply["sealed"] == reply["events"], "a checkpoint knows its end"
    assert not (away / "home").exists(), "checking writes nothing"


def test_a_bundle_of_a_run_that_waits_says_so_in_words(shell: Shell, tmp_path: Path) -> None:
    run = run_that_waits(shell)
    file = tmp_path / "run.proof"
    made = shell.json("journal", "export", run, "--bundle", str(file))
    assert (made["run"], made["status"], made["bytes"]) == (run, "running", file.stat().st_size)
    words = shell.run("journal", "verify", str(file)).stdout
    assert "running (not ended)" in words
    assert "executed by handrail" in words
    assert "approval requested" in words
    assert f"bundle verified: signed by key {made['key']}" in words
    assert "the key itself is not verified" in words


def test_the_key_that_one_trusts_is_named_by_its_file_or_its_fingerprint(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "run.proof"
    made = shell.json("journal", "export", run_that_waits(shell), "--bundle", str(file))
    public = str(shell.home / "keys" / "journal.pub")
    for key in (public, made["key"], made["key"].removeprefix("sha256:")):
        assert verified(shell, file, "--key", key)["is_trusted"]
    assert "which you trust" in shell.run("journal", "verify", str(file), "--key", public).stdout
    reply = verified(shell, GOLDEN, "--key", public, code=7)
    assert "another key than the one you trust" in reply["reason"]
    assert shell.json("journal", "verify", str(file), "--key", "nowhere.pub", code=3)["error"]["hint"]


def test_a_changed_bundle_proves_nothing(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "changed.proof"
    data = GOLDEN.read_bytes()
    file.write_bytes(data.replace(b"looks right", b"looks wrong"))
    reply = verified(shell, file, code=7)
    assert (reply["ok"], "changed or cut" in reply["reason"]) == (False, True)
    result = shell.run("journal", "verify", str(file))
    assert result.exit_code == 7
    assert "INTEGRITY BROKEN" in result.stdout
    assert "do not rely on it" in result.stdout


def test_every_step_is_reported_with_what_it_is_known_by(shell: Shell) -> None:
    words = shell.run("journal", "verify", str(GOLDEN)).stdout
    for line in (
        "executed by handrail",
        "verified by tests_pass; not accepted 1 time before",
        "claimed by agent:claude",
        "approved by person:ada",
        "ask: approval given by person:ada",
        "pinned tools: git.tag",
        "checkpoint 1 (included) covers 10 of 10 events",
    ):
        assert line in words, line


async def test_words_in_a_bundle_can_not_act_on_the_terminal(tmp_path: Path) -> None:
    said = (*EVENTS, ("\x1b[2Jeve", StepCompleted(step="later", checks=("\x1b[31mred",))))
    data, _ = await bundle_in(await store_with(*said), tmp_path / "log")
    (tmp_path / "x.proof").write_bytes(data)
    result = await _told(tmp_path, "journal", "verify", str(tmp_path / "x.proof"))
    assert "\x1b[2J" not in result.stdout
    assert "verified by [31mred (no evidence recorded)" in result.stdout


def test_all_that_matters_about_a_run_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    steps = (
        ProvenStep(id="first", status=StepStatus.COMPLETED, how=ProofKind.CARRIED),
        ProvenStep(
            id="tag", status=StepStatus.COMPENSATED, how=ProofKind.EXECUTED, by="handrail", compensation="executed"
        ),
        ProvenStep(id="bad", status=StepStatus.FAILED, message="it broke"),
    )
    reply = Account(
        run="run_\x1b[2Ja",
        workflow="ship",
        status=RunStatus.COMPENSATED,
        has_ended=True,
        events=9,
        definition="sha256:00",
        made="then",
        key="sha256:01",
        ended="now",
        forked_from="run_b",
        steps=steps,
        not_undone=("mail",),
        erased=(2, 3),
        checkpoint=7,
        sealed=8,
    )
    print_account(reply, is_trusted=True)
    print_account(replace(reply, checkpoint=0), is_trusted=True)
    words = capsys.readouterr().out
    for line in (
        "run_[2Ja of ship: compensated",
        "forked from run_b",
        "carried over from the forked run",
        "executed by handrail; undone: executed",
        "it broke",
        "NOT undone: mail",
        "erased: event 2, 3",
        "checkpoint 7 (by its digest) covers 8 of 9 events",
        "no checkpoint covers it",
    ):
        assert line in words, line


async def test_a_project_is_compared_with_what_was_checked(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("a = 1\n")
    seen = {"rule": "tests_pass", "version": "1.0.0", "passed": True, "tree": await tree_digest(project)}
    done = StepCompleted(step="later", checks=("tests_pass",), evidence=(seen,))
    data, _ = await bundle_in(await store_with(*EVENTS, ("agent:claude", done)), tmp_path / "log")
    file = tmp_path / "x.proof"
    file.write_bytes(data)
    shutil.copytree(project, tmp_path / "copy")
    words = ("journal", "verify", str(file), "--project", str(tmp_path / "copy"))
    same = await _told(tmp_path, *words)
    assert "those that were checked by later: tests_pass" in same.stdout
    inside = tmp_path / "copy" / "x.proof"
    inside.write_bytes(data)
    of_itself = await _told(tmp_path, "journal", "verify", str(inside), "--project", str(tmp_path / "copy"))
    assert "those that were checked by later" in of_itself.stdout
    inside.unlink()
    (tmp_path / "copy" / "a.py").write_text("a = 2\n")
    reply = json.loads((await _told(tmp_path, *words, "--json")).stdout)
    assert (reply["ok"], reply["same_project"]) == (True, [])
    assert "the project's files have changed since they were checked" in (await _told(tmp_path, *words)).stdout


def test_what_can_not_be_bundled_or_checked_is_said(shell: Shell, tmp_path: Path) -> None:
    file = str(tmp_path / "x.proof")
    assert shell.json("journal", "export", "run_nowhere", "--bundle", file, code=3)["error"]["name"] == "not_found"
    assert not shell.home.exists(), "no store is made for a run that is not there"
    shell.json("plan", "save", shell.write("id: ship\nsteps: [{id: a, prompt: Do it.}]"))
    assert "is not a run" in shell.json("journal", "export", "plan/ship", "--bundle", file, code=5)["error"]["message"]
    assert shell.json("journal", "verify", file, code=3)["error"]["hint"].startswith("name a run")
    for words in (
        ("export", "--bundle", file),
        ("export", "run_a", "--bundle", file, "-o", file),
        ("verify", str(GOLDEN), "--replay"),
        ("verify", "run_a", "--key", "x"),
        ("verify", "--project", str(tmp_path)),
    ):
        assert shell.run("journal", *words).exit_code == 2, words


def test_a_run_keeps_its_meaning_whatever_files_there_are() -> None:
    for stream in ("", "store", "run_abcd2345", "plan/ship", "server/git"):
        assert not is_bundle(stream)
    for file in ("x.proof", "./store", "run_abcd2345.proof", os.fspath(GOLDEN), "./plan/ship"):
        assert is_bundle(file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused = Shell(tmp_path).run("journal", "verify", str(tmp_path / "pipe"))
    assert (refused.exit_code, "pipe is not a regular file" in refused.output) == (5, True), refused.output


@pytest.mark.parametrize("words", [("run", "show"), ("workflow", "new"), ("plan", "show"), ("journal", "show")])
def test_a_word_that_is_no_text_is_refused_by_every_command(tmp_path: Path, words: tuple[str, str]) -> None:
    refused = Shell(tmp_path).run(*words, os.fsdecode(b"\xff\xfe"))
    assert (refused.exit_code, "is not valid UTF-8" in refused.output) == (2, True), refused.output
    assert list(tmp_path.iterdir()) == []


async def _told(folder: Path, *words: str) -> Result:
    """A command while a loop is running: it has one of its own."""
    return await asyncio.to_thread(Shell(folder).run, *words)
