"""The types that tool chains share: a command to run, its result, or why it can't be run. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field

from handrail.domain.checks.finding import FixedBy
from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.program import FoundProgram
from handrail.rules.toolchain.site import Site

MESSAGE_MAX: Final = 500
REPORT: Final = "handrail-report"
"""Stands in a command for a file outside the project, to which it writes its results."""
GOOD: Final = "good"
"""In the name of a canary that must pass; all others must fail."""
PROBLEMS_MAX: Final = 10_000
"""How many problems of one command are kept."""


_again = re.compile(r"\[\d+\]$")
"""What is behind the name of a test that ran more than once: the projects of Jest may share their files."""


class TaskKind(StrEnum):
    """What a tool chain can do."""

    BUILD = "build"
    TEST = "test"
    LINT = "lint"
    COVERAGE = "coverage"


class Problem(Struct, frozen=True, kw_only=True):
    """One problem that a command reported."""

    message: str
    file: str = ""
    """As the command spelled it; empty if the problem is not about a file."""
    line: int = 0
    column: int = 0
    excerpt: str = ""
    raised: str = ""
    """The kind of error of a failed test, if it is known."""


class Result(Struct, frozen=True, kw_only=True):
    """What was read from a command's output."""

    counts: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    covered: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By file: how many of its lines were executed, and how many it has."""
    tests: Mapping[str, str] = field(default_factory=dict)
    """By test, if they are known by name: passed, failed, errors, skipped or xfailed."""
    raised: Mapping[str, str] = field(default_factory=dict)
    """By failed test: the kind of error, if it is known."""
    elsewhere: int = 0
    """How many problems were found in places that are not judged."""
    lines: Mapping[str, Mapping[int, bool]] = field(default_factory=dict)
    """By file: whether each of its lines with code was executed."""
    imported: Mapping[str, str] = field(default_factory=dict)
    """By module of the project: the file that the tests imported, relative to where they ran."""
    is_narrowed: bool = False
    """Whether the project's own settings say which files are measured."""
    is_whole: bool = True
    """Whether the command finished; one that stops halfway has not passed, whatever its exit code."""


class Canary(Struct, frozen=True, kw_only=True):
    """Tests that must fail, and one that must pass: else something in the project decides what is reported."""

    token: str
    """What their names have in them, which no test can know beforehand."""

    path: str
    """Where it is put, relative to the folder of the task: beside the project's own tests."""
    text: str
    argv: tuple[str, ...] = ()
    """The command that runs it."""


class CanaryVerdict(StrEnum):
    """What was heard of a canary."""

    RIGHT = "right"
    """All of its tests ended as they must."""
    PASSED = "passed"
    """A test that must fail passed."""
    HIDDEN = "hidden"
    """A test that must fail was not reported as failed, although the one that must pass was reported."""
    NOTHING = "nothing"
    """Nothing, or not enough: perhaps no test can be put there."""


def heard_of(canary: Canary, tests: Mapping[str, str]) -> CanaryVerdict:
    """What the outcomes of all tests say about those of a canary."""
    every = ((_again.sub("", test), how) for test, how in tests.items())
    own = [(test.endswith(GOOD), how) for test, how in every if canary.token.lower() in test.lower()]
    bad = {how for is_good, how in own if not is_good}
    if "passed" in bad:
        return CanaryVerdict.PASSED
    if (True, "passed") not in own:
        return CanaryVerdict.NOTHING
    return CanaryVerdict.RIGHT if bad and bad <= {"failed", "errors"} else CanaryVerdict.HIDDEN


Read: TypeAlias = Callable[[Ran], Result]


class Task(Struct, frozen=True, kw_only=True):
    """A command of a tool chain, and how its output is read."""

    argv: tuple[str, ...]
    read: Read
    programs: tuple[FoundProgram, ...]
    """The programs that it needs, for its PATH and for the evidence; the first is the one that runs."""
    fix: str
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    writable: bool = False
    """Whether it writes files into the project; they are dropped when it has ended, except those that are wanted."""
    folder: str = ""
    """Where it is run, relative to the site; empty if there."""
    wanted: tuple[str, ...] = ()
    """Files that it writes and that `read` needs, relative to the project."""
    shows: tuple[Path, ...] = ()
    """Folders besides those of its programs that the sandbox must make readable."""
    reports: tuple[str, ...] = ()
    """Patterns of files that it writes its results to; those of this run are printed when it has ended."""
    exits: tuple[int, ...] = (0,)
    """The exit codes of success, unless the output says otherwise."""
    finds: tuple[int, ...] = (1,)
    """The exit codes that mean that problems were found, for a linter."""
    lists: tuple[str, ...] = ()
    """Arguments to add so that it lists its tests without running them; none if it can't."""
    apart: bool = False
    """Whether it works on a view of the project that is thrown away, also without a sandbox."""
    replaced: Mapping[str, bytes | None] = field(default_factory=dict)
    """Files that it finds with another content, or not at all, relative to the project; only if it is apart."""
    canary: Canary | None = None
    """Tests whose outcome is known when this command runs them."""


class CannotRun(Struct, frozen=True, kw_only=True):
    """Why a task can't be run here, and how to make it possible."""

    message: str
    fix: str
    excerpt: str = ""
    """What was looked at, if there was anything."""
    fixed_by: FixedBy = FixedBy.PERSON
    """Who can make it possible: the agent if the project lacks something that belongs into it."""
    is_note: bool = False
    """Whether the project does without it, so that there is nothing to fix: it has no linter."""


class TaskOptions(Struct, frozen=True, kw_only=True):
    """What an author adds to the command."""

    paths: tuple[str, ...] = ()
    """Relative to the folder, each starting with `./`."""
    args: tuple[str, ...] = ()
    """Added to the command as they are."""
    changed: tuple[str, ...] | None = None
    """The files that have changed, as in `paths`, if only they are judged."""

    def targets(self, *suffixes: str) -> tuple[str, ...]:
        """What a linter is to look at: the paths or everything, or those of the changed files that it reads."""
        if self.changed is None:
            return self.paths or (".",)
        within = tuple(f"{path.removesuffix('/.').rstrip('/')}/" for path in self.paths) or ("./",)
        return tuple(one for one in self.changed if f"{one}/".startswith(within) and one.endswith(suffixes))


Plan: TypeAlias = Callable[[Site, TaskOptions], Sequence[Task | CannotRun]]


class Language(Struct, frozen=True, kw_only=True):
    """A language: how its projects are recognised, and what to run for each kind of task."""

    name: str
    markers: tuple[str, ...]
    """Files that show that a project is written in it."""
    suffixes: tuple[str, ...]
    plans: Mapping[TaskKind, Plan]
