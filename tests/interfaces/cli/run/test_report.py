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
    assert "Read what is missing (read) failed" in document
    assert "are as they were written" in document
    printed = shell.run("run", "report", run).stdout
    assert printed.startswith("## Release it: compensated")
    assert "Journal intact" in printed
    assert shell.run("run", "report", run, "--md", "-").stdout == printed


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
