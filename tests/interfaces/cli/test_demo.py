"""The tour: it shows what it promises, asks where somebody can answer, and leaves nothing behind."""

from __future__ import annotations

import os
from pathlib import Path

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
    result = shell.run("demo")
    assert result.exit_code == 0, result.output
    for sign in PROMISED:
        assert sign in result.stdout, sign
    assert "go: approved by person:you" in result.stdout
    assert "detected: run_" in result.stdout
    assert list((shell.folder / "tmp").iterdir()) == []
    assert not shell.home.exists()


@pytest.mark.skipif(os.name != "posix", reason="there is no pseudo-terminal here")
def test_a_no_in_the_demo_undoes_everything(shell: Shell) -> None:
    shown = shell.terminal("demo", typed="n\n", TMPDIR=str(shell.folder / "tmp"))
    assert "go: rejected by person:you" in shown
    assert "publish: undone" in shown
    assert list((shell.folder / "tmp").iterdir()) == []
