"""What a run compares with stays known if the repository is hidden while the run starts, or is read too slowly."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.domain.checks.finding import FixedBy
from handrail.engine.checking.rule import Baselines, Rule, Setting
from handrail.rules.files import baseline as baseline_module
from handrail.rules.files.baseline import NO_REPOSITORY, is_compared, observed, since_of
from handrail.rules.files.commit_exists import commit_exists
from handrail.rules.files.commits_since import commits_since
from handrail.rules.files.diff_within import diff_within
from handrail.rules.files.files_changed import files_changed, files_unchanged
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.no_secrets import no_secrets
from handrail.rules.files.project import project_of
from handrail.rules.toolchain.comparing.old_view import old_files
from rules.on_project import committed, git, setting_of, write

FILES = {"src/a.py": "a\n", "README.md": "hi\n", "tests/test_a.py": "def test_a(): assert 1\n"}
SECRET = "k = 'AKIAZ7QW3ERT5YUI9OPL'\n"


async def started(project: Path) -> Setting:
    return replace(setting_of(project), baselines=Baselines(run=await observed(project)))


async def places(rule: Rule, setting: Setting, **parameters: Any) -> list[str]:
    return [one.where.split(":")[0] for one in (await rule.apply(parameters, setting)).findings]


async def hidden(project: Path) -> Setting:
    """A run that starts while the repository is elsewhere."""
    committed(project, FILES)
    (project / ".git").rename(project.parent / "elsewhere")
    setting = await started(project)
    (project.parent / "elsewhere").rename(project / ".git")
    return setting


async def test_a_repository_that_is_hidden_while_the_run_starts_hides_nothing(tmp_path: Path) -> None:
    run = await hidden(tmp_path / "project")
    assert await places(files_changed, run, paths=["."]) == ["."], "nothing has changed yet"
    assert await places(diff_within, run, paths=["src"]) == []
    write(run.project, {"README.md": SECRET, "tests/test_a.py": "def test_a(): pass\n"})
    git(run.project, "commit", "-q", "-a", "-m", "work")
    assert await places(diff_within, run, paths=["src"]) == ["README.md", "tests/test_a.py"]
    assert await places(files_unchanged, run, paths=["README.md"]) == ["README.md"]
    assert "README.md" in await places(no_secrets, run)
    for rule, parameters in ((commit_exists, {"commit": "HEAD"}), (commits_since, {})):
        [found] = (await rule.apply(parameters, run)).findings
        assert (found.unapplied, found.fixed_by) == (True, FixedBy.PERSON)
        assert NO_REPOSITORY in found.message
    assert is_compared(run)
    with pytest.raises(GitUnavailable, match=NO_REPOSITORY):
        await old_files(project_of(run), since_of({}, run))


async def test_a_repository_that_can_not_be_read_while_the_run_starts_is_not_checked_later(tmp_path: Path) -> None:
    project = committed(tmp_path / "project", FILES)
    (project / ".git" / "HEAD").rename(project / ".git" / "head")
    run = await started(project)
    (project / ".git" / "head").rename(project / ".git" / "HEAD")
    write(project, {"README.md": SECRET})
    git(project, "commit", "-q", "-a", "-m", "work")
    for rule, parameters in ((diff_within, {"paths": ["src"]}), (no_secrets, {}), (commit_exists, {"commit": "HEAD"})):
        [found] = (await rule.apply(parameters, run)).findings
        assert (found.unapplied, found.fixed_by) == (True, FixedBy.PERSON)


async def test_a_repository_that_is_too_slow_to_look_at_is_compared_with_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = committed(tmp_path / "project", FILES)

    async def slow(_project: object) -> None:
        await asyncio.sleep(60)

    with monkeypatch.context() as patch:
        patch.setattr(baseline_module, "present", slow)
        patch.setattr(baseline_module, "OBSERVED_S_MAX", 1.0)
        run = await started(project)
    write(project, {"README.md": "changed\n"})
    git(project, "commit", "-q", "-a", "-m", "work")
    assert await places(diff_within, run, paths=["src"]) == ["README.md"]
    assert await places(commit_exists, run, commit="HEAD~1") == ["HEAD~1"]


async def test_a_run_may_make_the_repository_itself(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    run = await started(tmp_path / "project")
    assert not is_compared(run)
    committed(run.project, FILES)
    assert await places(commit_exists, run, commit="HEAD") == []
    assert await places(commits_since, run) == []
    assert await places(files_changed, run, paths=["src"]) == []
    assert await places(diff_within, run, paths=["src"]) == ["README.md", "tests/test_a.py"]


async def test_a_project_that_never_was_a_repository_is_not_compared(tmp_path: Path) -> None:
    write(tmp_path, {f"{number}.txt": "x" for number in range(300)})
    run = await started(tmp_path)
    assert not is_compared(run)
    [found] = (await diff_within.apply({"paths": ["src"]}, run)).findings
    assert "git init" in found.fix
