"""The shapes that tool chains speak in: what is asked, a command to run, what it came to, what is missing. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.program import Program
from handrail.rules.toolchain.site import Site

MESSAGE_MAX: Final = 500
PROBLEMS_MAX: Final = 10_000
"""How many problems of one command are told apart; no parser holds more."""


class TaskKind(StrEnum):
    """What is asked of a language."""

    BUILD = "build"
    TEST = "test"
    LINT = "lint"
    COVERAGE = "coverage"


class Problem(Struct, frozen=True, kw_only=True):
    """One thing that a command complained about."""

    message: str
    file: str = ""
    """As the command spelled it; empty if it is about no file."""
    line: int = 0
    column: int = 0
    excerpt: str = ""


class Result(Struct, frozen=True, kw_only=True):
    """What was read from a command's output."""

    counts: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    covered: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By file: how many of its lines were run, of how many."""
    is_whole: bool = True
    """Whether the command came to its own end; one that stops halfway has not passed, whatever its exit."""


Read: TypeAlias = Callable[[Ran], Result]


class Task(Struct, frozen=True, kw_only=True):
    """A command of a tool chain, and how its output is read."""

    argv: tuple[str, ...]
    read: Read
    programs: tuple[Program, ...]
    """What it needs, for its PATH and for the evidence; the first is the one that is run."""
    fix: str
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    writable: bool = False
    shows: tuple[Path, ...] = ()
    """Folders beside its programs that a sandbox must show."""
    exits: tuple[int, ...] = (0,)
    """The exits that mean that all is well, unless the output says otherwise."""


class CannotRun(Struct, frozen=True, kw_only=True):
    """Something that is not here, and how to get it."""

    message: str
    fix: str


class TaskOptions(Struct, frozen=True, kw_only=True):
    """How an author narrows what is run."""

    paths: tuple[str, ...] = ()
    """Relative to the folder, each beginning with `./`."""
    args: tuple[str, ...] = ()
    """Added to the command as they are."""


Plan: TypeAlias = Callable[[Site, TaskOptions], Sequence[Task | CannotRun]]


class Language(Struct, frozen=True, kw_only=True):
    """A language: how its projects are known, and what to run for each want."""

    name: str
    markers: tuple[str, ...]
    """Files that say that a project is written in it."""
    suffixes: tuple[str, ...]
    plans: Mapping[TaskKind, Plan]
