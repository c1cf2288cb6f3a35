"""A workshop for rules that build and test: projects in folders, the real sandbox, and what a rule says in short."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import Rule, Setting
from handrail.engine.sandbox import Ran, Sandbox
from handrail.engine.tool import Progress, silent
from handrail.tools.sandbox.bubblewrap import Bubblewrap
from outside.debian import bubblewrap
from rules.on_project import setting_of, write

RECORDED = Path(__file__).parent / "recorded"
PYTHON_HOME = Path(sys.prefix)
"""Where pytest, ruff and coverage are: the environment of these tests."""


def made(folder: Path, files: Mapping[str, str]) -> Path:
    """A project with these files."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, files)
    return folder


def in_sandbox(project: Path, *read: Path) -> Setting:
    """A setting whose commands run in the real sandbox, which shows some more folders."""
    sandbox = Bubblewrap(project, program=str(bubblewrap()), read=[*read, Path(sys.base_prefix)])
    return replace(setting_of(project), sandbox=sandbox)


async def judged(rule: Rule, setting: Setting, **parameters: Any) -> CheckOutcome:
    """What a rule comes to; its record agrees with its findings."""
    outcome = await rule.apply(parameters, setting)
    if outcome.evidence is not None:
        assert outcome.evidence.passed is (not outcome.findings), outcome
    return outcome


async def places(rule: Rule, setting: Setting, **parameters: Any) -> list[tuple[str, str]]:
    """Where it finds something, and what."""
    return [(one.where, one.message) for one in (await judged(rule, setting, **parameters)).findings]


class Scripted:
    """A sandbox that gives recorded answers: for what no test machine has installed."""

    caveat = ""

    def __init__(self, *answers: Ran) -> None:
        self.answers = list(answers)
        self.jobs: list[Any] = []

    async def run(self, job: Any, *, progress: Progress = silent) -> Ran:
        self.jobs.append(job)
        return self.answers.pop(0) if self.answers else ran("tool 1.2.3")

    async def trial(self) -> str:
        return ""


def scripted(project: Path, sandbox: Sandbox) -> Setting:
    """A setting with that sandbox."""
    return replace(setting_of(project), sandbox=sandbox)


def ran(stdout: str = "", stderr: str = "", code: int = 0) -> Ran:
    """What came of a command."""
    return Ran(exit=code, stdout=stdout, stderr=stderr, took_ms=1)


def program(folder: Path, name: str) -> Path:
    """A program of that name in a folder, which nobody runs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def recorded(name: str) -> str:
    """What a real tool said once."""
    return (RECORDED / name).read_text(encoding="utf-8")


def first_words(words: Sequence[tuple[str, str]]) -> list[str]:
    """Only where."""
    return [where for where, _ in words]
