"""`--dry-run` of a control: what would happen is shown, and nothing is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from interfaces.shell import Shell

PLAN = """\
id: two-files
steps:
  - {id: first, tool: file.write, args: {path: first.txt, text: a}}
  - {id: second, tool: file.write, args: {path: second.txt, text: b}}
  - {id: go, approve: "Go on?"}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_dry_run_of_compensate_is_what_compensate_then_does(shell: Shell) -> None:
    run = shell.json("run", "start", shell.write(PLAN), code=4)["run"]
    before = shell.run("journal", "show", run).stdout
    seen = shell.json("run", "compensate", run, "--dry-run")
    assert shell.run("journal", "show", run).stdout == before
    assert [(one["step"], one["args"]["path"]) for one in seen["calls"]] == [
        ("second", "second.txt"),
        ("first", "first.txt"),
    ]
    assert seen["cli"] == f"handrail run compensate {run} --reason '...'"
    assert seen["mcp"]["arguments"] == {"run": run, "action": "compensate", "reason": "..."}
    assert shell.json("run", "compensate", run, "--reason", "enough", code=9)["status"] == "compensated"
    events = shell.json("journal", "show", run)["events"]
    assert [one["step"] for one in events if one["kind"] == "undo_started"] == ["second", "first"]


@pytest.mark.parametrize(
    ("words", "sign"),
    [
        (("run", "cancel"), "STAYS: second file.write"),
        (("approve",), "say yes"),
        (("reject",), "say no"),
        (("run", "pause"), "start nothing new"),
        (("run", "resume"), "not possible now: legal now: approve go"),
        (("run", "skip"), "continue without it"),
    ],
)
def test_every_control_has_one_and_needs_neither_reason_nor_answer(
    words: tuple[str, ...], sign: str, shell: Shell
) -> None:
    run = shell.json("run", "start", shell.write(PLAN), code=4)["run"]
    assert sign in shell.run(*words, run, "--dry-run").stdout


def test_without_dry_run_a_reason_is_still_needed(shell: Shell) -> None:
    run = shell.json("run", "start", shell.write(PLAN), code=4)["run"]
    assert "Missing option" in shell.run("run", "cancel", run).stderr
