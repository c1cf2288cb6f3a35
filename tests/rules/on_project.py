"""Rules on a project in a folder: what they are given, and a repository to look at."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import Given
from handrail.engine.checking.rule import Rule, Setting
from handrail.engine.sandbox import Job, Ran
from handrail.engine.tool import Progress, silent


class Unused:
    """A sandbox that must not be used."""

    caveat = ""

    async def run(self, job: Job, *, progress: Progress = silent) -> Ran:
        raise AssertionError(job)

    async def trial(self) -> str:
        raise AssertionError


def setting_of(project: Path, *private: Path) -> Setting:
    given = Given(output=None, evaluate=lambda _source: None, fits=lambda _schema, _value: ())
    return Setting(given=given, project=project, private=private, sandbox=Unused())


async def found(rule: Rule, project: Path, *private: Path, **parameters: Any) -> list[Finding]:
    """What a rule finds; its record says the same."""
    outcome = await rule.apply(parameters, setting_of(project, *private))
    if outcome.evidence is not None:
        assert outcome.evidence.passed is (not outcome.findings)
        assert (outcome.evidence.rule, outcome.evidence.version) == (rule.card.name, rule.card.version)
    return list(outcome.findings)


async def reported(rule: Rule, project: Path, *private: Path, **parameters: Any) -> list[tuple[str, str]]:
    """Where a rule finds something, and what."""
    return [(one.where, one.message) for one in await found(rule, project, *private, **parameters)]


def write(project: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def git(project: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *who, *words], cwd=project, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def committed(project: Path, files: Mapping[str, str | bytes]) -> Path:
    """A repository with these files in its one commit."""
    project.mkdir(parents=True, exist_ok=True)
    git(project, "init", "-q", "-b", "main")
    write(project, files)
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "first")
    return project
