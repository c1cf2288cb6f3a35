"""The tour: it shows what it promises, asks where somebody can answer, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import httpx
import pytest

from interfaces.shell import Shell

PROMISED = (
    "|     timeot: 10s",
    "did you mean `timeout`?",
    "did you mean `ready`?",
    "ready: try 1 failed (transient): 503",
    "ready: started, try 2",
    "publish: failed permanently (permission): 403",
    "now     VERSION    1.2.0",
    "compensate   undo ",
    "bump: undone",
    "after   VERSION    1.1.0",
    "is waiting for approval: Announce 1.2.0 to everybody?",
    "receipt: ",
    "journal verified: ",
    "The demo's folder is deleted",
    "handrail run start FILE",
)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return Shell(tmp_path)


def test_the_demo_runs_to_its_end_and_leaves_nothing_behind(shell: Shell) -> None:
    # What the user has chosen for real work has no part in it: no witness, no passphrase, no server.
    witness = shell.folder / "witness.jsonl"
    shell.configure(f'[witnesses]\ntargets = ["file:{witness}"]\n[approvals]\npassphrase = true\n')
    result = shell.run("demo", "--yes")
    assert result.exit_code == 0, result.output
    for sign in PROMISED:
        assert sign in result.stdout, sign
    assert "go: approved by person:you (terminal): yes, said beforehand by --yes" in result.stdout
    assert "completed; published on the server: app" in result.stdout
    assert "detected: run_" in result.stdout
    assert list((shell.folder / "tmp").iterdir()) == []
    assert [one.name for one in shell.home.iterdir()] == ["config.toml"]
    assert not witness.exists()


def test_nobody_answers_for_a_person_who_is_silent(shell: Shell) -> None:
    result = shell.run("demo")
    assert result.exit_code == 0, result.output
    for sign in (*PROMISED, "No answer, so no approval: the run keeps waiting", "after   NEWS.md    1.1.0 is out."):
        assert sign in result.stdout, sign
    assert not re.search(r"approved by|person:", result.stdout)


@pytest.mark.skipif(os.name != "posix", reason="there is no pseudo-terminal here")
def test_the_end_of_the_terminal_is_no_answer_either(shell: Shell) -> None:
    with shell.at_terminal("demo", TMPDIR=str(shell.folder / "tmp")) as terminal:
        terminal.until(re.compile(r"your answer\?"))
        terminal.type("\x04")  # Ctrl-D
        assert terminal.end() == 0
    assert "No answer, so no approval" in terminal.shown
    assert "approved by" not in terminal.shown


@pytest.mark.skipif(os.name != "posix", reason="there is no pseudo-terminal here")
@pytest.mark.parametrize(
    ("typed", "signs", "end"),
    [
        ("y\n", ["go: approved by person:you"], "Ctrl-C"),
        ("n\n", ["go: rejected by person:you", "publish: undone"], "closed"),
    ],
)
def test_with_console_the_demo_ends_in_a_browser_and_still_leaves_nothing_behind(
    shell: Shell, typed: str, signs: list[str], end: str
) -> None:
    folder = shell.folder / "tmp"
    with shell.at_terminal("demo", "--console", TMPDIR=str(folder), BROWSER="true") as terminal:
        terminal.type(typed)
        link = terminal.until(re.compile(r"open (http://127\.0\.0\.1:\d+/enter\?ticket=\S+)"))[1]
        terminal.until(re.compile("Ctrl-C ends the demo"))
        with httpx.Client(follow_redirects=True, trust_env=False, timeout=20) as browser:
            page = browser.get(link)
            assert page.url.path.startswith("/runs/run_"), "open on the run that was undone"
            assert browser.get(page.url.copy_with(fragment=None)).status_code == 200
            seen = browser.get(f"{page.url.copy_with(fragment=None)}.json").json()
        assert seen["status"] == "compensated"
        assert list(folder.iterdir()) != []
        if end == "Ctrl-C":
            terminal.type("\x03")
        else:
            terminal.send(signal.SIGHUP)  # as when the window is closed
        assert terminal.end() == 0
    for sign in (*signs, "The demo's folder is deleted"):
        assert sign in terminal.shown
    assert list(folder.iterdir()) == []
    assert not shell.home.exists()


def test_without_a_terminal_console_is_refused_before_the_tour(shell: Shell) -> None:
    result = shell.run("demo", "--console")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--console needs a terminal" in result.stderr
