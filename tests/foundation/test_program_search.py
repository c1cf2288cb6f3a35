"""Finding programs: what a project has is never taken for a program of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handrail.foundation.program_search import programs_named


def program(folder: Path, name: str = "git") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / name
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return made


@pytest.mark.parametrize("relative", ["", ".", "./bin", "bin", "../project/bin"])
def test_a_relative_folder_of_path_is_left_out(relative: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, own = tmp_path / "project", program(tmp_path / "own")
    program(project / "bin")
    program(project)
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", os.pathsep.join([relative, str(own.parent), relative]))
    assert list(programs_named("git")) == [str(own)]


def test_all_of_path_is_searched_in_its_order(tmp_path: Path) -> None:
    first, second = program(tmp_path / "1"), program(tmp_path / "2")
    path = os.pathsep.join([str(second.parent), str(tmp_path / "no"), str(first.parent)])
    assert list(programs_named("git", path)) == [str(second), str(first)]
    assert list(programs_named("no-such", path)) == []
