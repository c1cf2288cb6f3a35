"""The command by which a Python project runs its tests: of its task runners, its Makefile, or tox. Pure, but for
reading these files; nothing is run.

Only what pytest or unittest is given there is taken: which folders, which options, which variables. What only concerns
the report, the speed or the coverage is left out; where a line is not understood, the project's runner finds its tests
by itself, or the whole command is run (own_script.py)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from handrail.rules.toolchain.python_projects.test_lines import TestLines, test_lines
from handrail.rules.toolchain.site import Site

RUNNERS: Final = {"pytest": "pytest", "py.test": "pytest", "unittest": "unittest"}
STARTERS: Final = ("uv", "poetry", "pdm", "pipenv", "hatch", "rye", "coverage")
"""Programs that run another one: `uv run pytest`, `coverage run -m unittest`."""
DROPPED: Final = re.compile(
    r"^(?:--(?:cov|junit|html|tb|durations|color|maxfail|lf|ff|last-failed|failed-first|exitfirst|verbose|quiet|pdb|capture"
    r"|numprocesses|dist|no-header|no-summary|report|buffer|failfast|locals|self-contained-html)\b.*"
    r"|-[vqsxbf]+|-n.*|-r[a-zA-Z]+|-v+)$"
)
VALUED: Final = frozenset(
    {
        "-n",
        "--tb",
        "--cov",
        "--cov-config",
        "--maxfail",
        "--durations",
        "--color",
        "--cov-report",
        "--junitxml",
        "--html",
        "--dist",
    }
)
"""Options that are left out with the word behind them."""
WITH_VALUE: Final = frozenset(
    {"-k", "-m", "-p", "-c", "-o", "-W", "-s", "-t", "--pattern", "--start-directory", "--top-level-directory"}
    | {"--rootdir", "--ignore", "--deselect", "--import-mode", "--override-ini", "--confcutdir"}
)
"""Options whose value is the next word, and no path."""
WORDS_MAX: Final = 50

_parts = re.compile(r"\s*(?:&&|\|\||;|\|)\s*")
_assigned = re.compile(r"^([A-Za-z_]\w{0,100})=(.*)$", re.DOTALL)


class OwnCommand(Struct, frozen=True):
    """How a project starts its tests."""

    runner: str
    """pytest or unittest."""
    options: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    where: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


def own_command(site: Site) -> OwnCommand | None:
    """The command of the project; None if no file says it in a way that is understood."""
    for one in test_lines(site):
        found = [call for line in one.lines for call in _of_line(line, one)]
        if found:
            return _joined(site, found)
    return None


def _of_line(line: str, of: TestLines) -> Iterator[OwnCommand]:
    """The calls of a runner in one line of a shell."""
    for part in _parts.split(line):
        try:
            words = shlex.split(part)[:WORDS_MAX]
        except ValueError:
            continue
        env = dict(of.env)
        while words and (found := _assigned.match(words[0])):
            env[found[1]] = found[2]
            words = words[1:]
        at = _runner_at(words)
        if at >= 0:
            known = {name: value for name, value in env.items() if not _is_open(value)}
            yield replace(_sorted(RUNNERS[_name(words[at])], words[at + 1 :], of.where), env=known)


def _name(word: str) -> str:
    return PurePosixPath(word).name


def _runner_at(words: Sequence[str]) -> int:
    """Where the runner stands in a command; -1 if it calls none, or something else by that name."""
    named = [at for at, word in enumerate(words) if _name(word) in RUNNERS]
    return next((at for at in named if _is_started(words, at)), -1)


def _is_started(words: Sequence[str], at: int) -> bool:
    if at and words[at - 1] == "-m":
        return True
    is_program = not at or (words[0] in STARTERS and "run" in words[:at])
    return is_program and words[at] != "unittest"


def _sorted(runner: str, words: Sequence[str], where: str) -> OwnCommand:
    """Which of the words are options that matter, and which name tests."""
    if runner == "unittest":
        return OwnCommand(runner, tuple(word for word in words if word == "-s" or not _is_dropped(word)), (), where)
    kept = [at for at, word in enumerate(words) if not _is_dropped(word) and not _follows(words, at, VALUED)]
    options = [at for at in kept if words[at].startswith("-") or _follows(words, at, WITH_VALUE)]
    named = tuple(words[at] for at in kept if at not in options)
    return OwnCommand(runner, tuple(words[at] for at in options), named, where)


def _follows(words: Sequence[str], at: int, options: Collection[str]) -> bool:
    """Whether a word is the value of one of these options."""
    return at > 0 and words[at - 1] in options and not words[at].startswith("-")


def _joined(site: Site, found: Sequence[OwnCommand]) -> OwnCommand | None:
    """One command for all of a target: None if they differ in more than their paths, or name what is not there."""
    first = found[0]
    if any((one.runner, one.options, one.env) != (first.runner, first.options, first.env) for one in found):
        return None
    every = all(one.paths for one in found)
    paths = tuple(dict.fromkeys(path for one in found for path in one.paths)) if every else ()
    is_there = all(_is_there(site, path.partition("::")[0]) for path in paths)
    return replace(first, paths=paths) if is_there else None


def _is_dropped(word: str) -> bool:
    return _is_open(word) or bool(DROPPED.match(word))


def _is_open(word: str) -> bool:
    """Whether a word has a value that only a shell or tox knows."""
    return "$" in word or "{" in word


def _is_there(site: Site, path: str) -> bool:
    bare = PurePosixPath(path).as_posix()
    return bare == "." or bare in site.files or any(name.startswith(f"{bare}/") for name in site.files)
