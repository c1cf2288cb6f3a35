"""Rules about commits, branches and lists of files: what an agent says it made is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.engine.checking.rule import Baselines, Setting
from handrail.rules.files.baseline import observed
from handrail.rules.files.commit_exists import commit_exists
from handrail.rules.files.commits_since import commits_since
from handrail.rules.files.files_exist import files_exist
from handrail.rules.files.on_branch import on_branch
from handrail.rules.function_rule import FunctionRule
from rules.on_project import committed, git, setting_of, write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return committed(tmp_path / "project", {"a.py": "a\n", "empty.txt": ""})


async def started(project: Path) -> Setting:
    return replace(setting_of(project), baselines=Baselines(run=await observed(project)))


async def said(rule: FunctionRule, setting: Setting, **parameters: Any) -> list[str]:
    return [one.message for one in (await rule.apply(parameters, setting)).findings]


def commit(project: Path, message: str = "fix: it") -> str:
    write(project, {"a.py": f"{message}\n"})
    git(project, "commit", "-qam", message)
    return git(project, "rev-parse", "HEAD")


async def test_a_commit_must_be_real_of_this_run_and_in_the_history(project: Path) -> None:
    run, old = await started(project), git(project, "rev-parse", "HEAD")
    assert await said(commit_exists, run, commit="HEAD") == ["HEAD was there before the start of the run"]
    assert await said(commit_exists, run, commit=old, since="any") == []
    assert await said(commit_exists, run, commit="abcdef1234") == ["there is no commit `abcdef1234` here"]
    new = commit(project)
    assert await said(commit_exists, run, commits=[new, new[:10]]) == []
    git(project, "checkout", "-q", "-b", "other", old)
    aside = commit(project, "aside")
    git(project, "checkout", "-q", "main")
    assert await said(commit_exists, run, commits=[new, aside]) == [f"{aside} is not in the history of HEAD"]
    git(project, "commit", "-q", "--allow-empty", "-m", "nothing")
    assert await said(commit_exists, run, commit="HEAD") == ["HEAD changes nothing"]
    git(project, "merge", "-q", "--no-ff", "-s", "ours", "-m", "merge", "other")
    assert await said(commit_exists, run, commit="HEAD") == [], "a merge needs no change of its own"
    git(project, "reset", "-q", "--hard", new)
    assert await said(commit_exists, setting_of(project), commit=old) == [], "without a run it only has to be there"
    assert "neither" not in (await said(commit_exists, run))[0]


async def test_commits_are_counted_and_their_subjects_matched(project: Path) -> None:
    run = await started(project)
    assert await said(commits_since, run) == ["there are 0 commits since the start of the run, at least 1 are needed"]
    commit(project)
    assert await said(commits_since, run, max=1, pattern="^fix: ") == []
    commit(project, "wip")
    assert await said(commits_since, run, max=1, pattern="^fix: ") == [
        "there are 2 commits since the start of the run, at most 1 may be",
        "`wip` does not match `^fix: `",
    ]
    assert await said(commits_since, run, since="HEAD", min=0, max=0) == []
    [unfit] = (await commits_since.apply({"pattern": "("}, run)).findings
    assert unfit.unapplied


async def test_a_branch_is_named_matched_or_ruled_out(project: Path) -> None:
    run = await started(project)
    assert await said(on_branch, run, name="main", pattern="^ma", changed=False) == []
    assert await said(on_branch, run, none_of=["main"]) == ["the branch main is checked out, which is not allowed"]
    assert await said(on_branch, run, changed=True) == ["the branch main is checked out, as at the start of the run"]
    git(project, "checkout", "-q", "-b", "fix/it")
    assert await said(on_branch, run, pattern="^fix/", none_of=["main"], changed=True) == []
    assert await said(on_branch, run, name="main", changed=False) == [
        "the branch fix/it is checked out, not main",
        "the branch fix/it is checked out, but main was at the start of the run",
    ]
    git(project, "checkout", "-q", "--detach")
    assert len(await said(on_branch, run, none_of=["main"], pattern=".", changed=True)) == 3
    for parameters in ({}, {"pattern": "("}):
        [unfit] = (await on_branch.apply(parameters, run)).findings
        assert unfit.unapplied
    [unknown] = (await on_branch.apply({"changed": True}, setting_of(project))).findings
    assert unknown.unapplied


async def test_without_a_repository_nothing_passes(tmp_path: Path) -> None:
    for rule, parameters in ((commit_exists, {"commit": "HEAD"}), (commits_since, {}), (on_branch, {"name": "main"})):
        [found] = (await rule.apply(parameters, setting_of(tmp_path))).findings
        assert found.unapplied
        assert "git repository" in found.message


async def test_every_file_of_a_list_must_be_there(project: Path) -> None:
    def given(output: Any) -> Setting:
        setting = setting_of(project)
        return replace(setting, given=replace(setting.given, output=output))

    assert await said(files_exist, given({"files": ["a.py"]}), of="files") == []
    assert await said(files_exist, given({"files": "a.py"}), of="files") == []
    assert await said(files_exist, given({"files": [{"path": "a.py"}]}), of="files", key="path") == []
    assert await said(files_exist, given(None), paths=["a.py"]) == []
    assert await said(files_exist, given({"files": ["a.py", "b.py", "empty.txt", ".", "../x"]}), of="files") == [
        "b.py does not exist",
        "empty.txt has 0 bytes, at least 1 are needed",
        ". is a folder, not a file",
        "../x leads out of the project",
    ]
    assert await said(files_exist, given({"files": []}), of="files") == ["0 files are listed, at least 1 are needed"]
    assert await said(files_exist, given({"files": ["a.py", "a.py"]}), of="files", min=2) == [
        "1 files are listed, at least 2 are needed"
    ]
    assert await said(files_exist, given({}), of="files") == ["it is missing"]
    assert await said(files_exist, given({"files": 3}), of="files") == ["it is not a list of at most 1,000 paths"]
    [found] = (await files_exist.apply({"of": "files"}, given({"files": ["a.py", 7]}))).findings
    assert (found.where, found.message) == ("output.files[1]", "it is not a path")
