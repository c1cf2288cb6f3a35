"""`handrail run report`: a run in one file, from a real store."""

from __future__ import annotations

from pathlib import Path

import pytest

from interfaces.shell import Shell

PLAN = """\
id: release
name: Release it
on_failure: compensate
steps:
  - {id: write, tool: file.write, args: {path: a.txt, text: a}}
  - {id: read, title: Read what is missing, tool: file.read, args: {path: missing.txt}}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_run_becomes_one_html_file_and_markdown(shell: Shell) -> None:
    run = shell.json("run", "start", shell.write(PLAN), code=9)["run"]
    file = shell.folder / "report.html"
    shell.run("run", "report", run, "--html", str(file))
    document = file.read_text(encoding="utf-8")
    assert document.startswith("<!doctype html>")
    assert "“Read what is missing” failed" in document
    assert "are as they were written" in document
    printed = shell.run("run", "report", run).stdout
    assert printed.startswith("## Release it: undone")
    assert "Journal intact" in printed
    assert shell.run("run", "report", run, "--md", "-").stdout == printed


def test_a_report_that_is_printed_into_a_file_has_no_escapes(shell: Shell) -> None:
    run = shell.json("run", "start", shell.write(PLAN.replace("Release it", "Tell @ann")), code=9)["run"]
    shell.run("run", "report", run, "--md", str(shell.folder / "report.md"))
    printed = shell.run("run", "report", run).stdout
    assert "Tell @\N{ZERO WIDTH SPACE}ann" in printed
    assert "\\u" not in printed
    assert printed == (shell.folder / "report.md").read_text(encoding="utf-8")


def test_the_choice_to_undo_is_among_the_decisions_if_somebody_made_it(shell: Shell) -> None:
    by_policy = shell.json("run", "start", shell.write(PLAN), code=9)["run"]
    chosen = shell.json("run", "start", shell.write(PLAN.replace("compensate", "stop")), code=1)["run"]
    shell.run("run", "compensate", chosen, "--reason", "wrong release")
    for run, is_decided in ((by_policy, False), (chosen, True)):
        report = shell.run("run", "report", run, "--html", "-").stdout
        table = report.partition("Decisions and approvals")[2].partition("</table>")[0]
        assert ("chose to undo" in table and "wrong release" in table) is is_decided


def test_a_script_gets_json_that_says_what_was_written(shell: Shell) -> None:
    run = shell.json("run", "start", shell.write(PLAN), code=9)["run"]
    file = str(shell.folder / "report.html")
    assert shell.json("run", "report", run, "--html", file) == {
        "run": run,
        "verified": True,
        "files": [file],
        "text": "",
    }
    printed = shell.json("run", "report", run)
    assert printed["files"] == []
    assert printed["text"].startswith("## Release it")


def test_a_folder_that_is_not_there_is_an_error_that_says_what_to_do(shell: Shell) -> None:
    run = shell.json("run", "start", shell.write(PLAN), code=9)["run"]
    said = shell.run("run", "report", run, "--html", "nowhere/report.html").stderr
    assert "can't be written" in said
    assert "choose a folder" in said
    assert "there is no run" in shell.run("run", "report", "run_nothing2").stderr
