"""`handrail run compensated`: an undo that failed is recorded as done by hand, and the run undoes what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interfaces.shell import Shell

STUCK = """\
id: stuck
on_failure: compensate
steps:
  - {id: first, tool: file.write, args: {path: first.txt, text: a}}
  - id: second
    tool: file.write
    args: {path: second.txt, text: b}
    undo: {tool: file.delete, args: {path: elsewhere.txt}}
  - {id: read, tool: file.read, args: {path: missing.txt}}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def stuck(shell: Shell) -> Any:
    return shell.json("run", "start", shell.write(STUCK), code=1)


def test_a_failed_undo_offers_to_record_it_with_a_ready_command(shell: Shell) -> None:
    status = stuck(shell)
    commands = {one["action"]: one["command"] for one in status["failure"]["options"]}
    run = status["run"]
    assert commands["record"] == f"handrail run compensated {run} second --description '...'"
    assert set(status["not_compensated"]) == {"first", "second"}
    story = shell.run("run", "show", run).stdout
    assert "second failed (not_found)" in story
    assert commands["record"] in story


@pytest.mark.parametrize(("words", "how"), [((), "recorded"), (("--not-needed",), "not_needed")])
def test_what_was_undone_by_hand_is_recorded_and_the_rest_is_undone_here(
    words: tuple[str, ...], how: str, shell: Shell
) -> None:
    run = stuck(shell)["run"]
    said = ("run", "compensated", run, "second", "--description", "deleted it", *words)
    assert shell.json(*said, code=9)["status"] == "compensated"
    steps = {one["id"]: one for one in shell.json("run", "show", run, "--full")["steps"]}
    assert (steps["second"]["compensation"], steps["first"]["compensation"]) == (how, "executed")
    assert not (shell.folder / "first.txt").exists()


def test_a_detached_record_leaves_the_rest_to_a_worker(shell: Shell) -> None:
    run = stuck(shell)["run"]
    said = ("run", "compensated", run, "second", "--description", "deleted it", "--detach")
    assert shell.json(*said)["status"] == "compensating"
    assert (shell.folder / "first.txt").exists()
    assert f"{run} compensated" in shell.run("worker", "--until-idle").stderr
    assert not (shell.folder / "first.txt").exists()


@pytest.mark.parametrize(
    ("step", "description", "sign"),
    [
        ("second", " ", "a description is missing"),
        ("second", "x" * 20_001, "is too long"),
        ("read", "deleted it", "there is nothing to undo"),
        ("nowhere", "deleted it", "nowhere"),
    ],
)
def test_a_record_that_makes_no_sense_is_refused_and_changes_nothing(
    step: str, description: str, sign: str, shell: Shell
) -> None:
    run = stuck(shell)["run"]
    before = shell.json("run", "show", run)["receipt"]
    result = shell.run("run", "compensated", run, step, "--description", description)
    assert result.exit_code not in {0, 9}
    assert sign in result.stderr
    assert shell.json("run", "show", run)["receipt"] == before
