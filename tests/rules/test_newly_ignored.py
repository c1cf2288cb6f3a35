"""A rule that was added while a run goes on hides no files from checks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.engine.checking.rule import Baselines, Rule, Setting
from handrail.rules.files.baseline import observed
from handrail.rules.files.diff_within import diff_within
from handrail.rules.files.git_clean import git_clean
from handrail.rules.files.no_secrets import no_secrets
from rules.on_project import committed, git, setting_of, write

FILES = {"src/a.py": "a\n", ".gitignore": "*.log\n/local/\n"}
SECRET = "k = 'AKIAZ7QW3ERT5YUI9OPL'\n"


async def started(project: Path) -> Setting:
    return replace(setting_of(project), baselines=Baselines(run=await observed(project)))


async def places(rule: Rule, setting: Setting, **parameters: Any) -> list[str]:
    return [one.where.split(":")[0] for one in (await rule.apply(parameters, setting)).findings]


def by_setting(project: Path) -> None:
    rules = str(project.parent / "rules")
    write(project, {rules: "evil/\n", "evil/x.py": SECRET})
    git(project, "config", "core.excludesFile", rules)


def by_exclude(project: Path) -> None:
    exclude = git(project, "rev-parse", "--git-path", "info/exclude")
    write(project, {exclude: "x.py\n", "evil/x.py": SECRET})


def by_itself(project: Path) -> None:
    write(project, {"evil/.gitignore": "*\n", "evil/x.py": SECRET})


@pytest.mark.parametrize("hide", [by_setting, by_exclude, by_itself])
@pytest.mark.parametrize("kind", ["main", "worktree"])
async def test_a_file_that_a_new_rule_hides_is_seen(tmp_path: Path, kind: str, hide: Callable[[Path], None]) -> None:
    project = committed(tmp_path / "project", FILES)
    if kind == "worktree":
        git(project, "worktree", "add", "-q", str(tmp_path / "other"))
        project = tmp_path / "other"
    run = await started(project)
    before = await no_secrets.inputs({}, run)
    hide(project)
    assert git(project, "status", "--short") == ""
    assert "evil/x.py" in await places(diff_within, run, paths=["src"])
    assert "evil/x.py" in await places(git_clean, run)
    assert await places(no_secrets, run) == ["evil/x.py"]
    hidden = await no_secrets.inputs({}, run)
    write(project, {"evil/x.py": "clean = 1\n"})
    assert len({before, hidden, await no_secrets.inputs({}, run)}) == 3, "an outcome for other files is not reused"


async def test_files_that_were_ignored_before_and_what_tools_make_are_not_reported(tmp_path: Path) -> None:
    project = committed(tmp_path / "project", FILES)
    write(project, {".git/info/exclude": "mine.txt\n"})
    run = await started(project)
    write(project, {"a.log": SECRET, "local/b": SECRET, "mine.txt": SECRET})
    write(project, {".gitignore": "*.log\n/local/\nbuild/\n*.tmp\n", "build/x.js": "x", "c.tmp": "x"})
    assert await places(diff_within, run, paths=["src"]) == [".gitignore", "c.tmp"]
    assert await places(no_secrets, run) == []
    git(project, "commit", "-q", "-a", "-m", "ignore")
    assert await places(git_clean, run) == [], "a rule that is committed is the way to ignore a file"


async def test_a_removed_exception_hides_nothing(tmp_path: Path) -> None:
    project = committed(tmp_path / "project", {"src/a.py": "a\n", ".gitignore": "*.log\n!keep.log\n"})
    run = await started(project)
    write(project, {".gitignore": "*.log\n", "keep.log": SECRET})
    assert await places(no_secrets, run) == ["keep.log"]
