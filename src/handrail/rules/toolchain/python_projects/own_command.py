"""The command by which a Python project runs its tests: of its task runners, its Makefile, or tox. Pure, but for
reading these files; nothing is run.

Only what pytest or unittest is given there is taken: which folders, which options. What only concerns the report, the
speed or the coverage is left out; where a line is not understood, the project's runner finds its tests by itself."""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from msgspec import Struct

from handrail.rules.toolchain.site import Site

TARGETS: Final = ("test", "tests", "unittest", "unit", "check")
MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
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

_variable = re.compile(r"^([A-Za-z_][\w.-]{0,100})[ \t]*(?:\?|:{1,2})?=[ \t]*(.*)$", re.MULTILINE)
_used = re.compile(r"\$[({]([A-Za-z_][\w.-]{0,100})[)}]")
_posargs = re.compile(r"\{posargs(?::([^{}]*))?\}")
_parts = re.compile(r"\s*(?:&&|\|\||;|\|)\s*")
_assigned = re.compile(r"^[A-Za-z_]\w{0,100}=")


class OwnCommand(Struct, frozen=True):
    """How a project starts its tests."""

    runner: str
    """pytest or unittest."""
    options: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    where: str = ""


def own_command(site: Site) -> OwnCommand | None:
    """The command of the project; None if no file says it in a way that is understood."""
    for where, lines in _written(site):
        found = [one for line in lines for one in _of_line(line, where)]
        if found:
            return _joined(site, found)
    return None


def _written(site: Site) -> Iterator[tuple[str, Sequence[str]]]:
    """The lines that run the tests, by the file that has them; the likeliest first."""
    settings = _toml(site.text("pyproject.toml")) if site.has("pyproject.toml") else {}
    yield "pyproject.toml", list(_scripts(settings))
    for name in filter(site.has, MAKEFILES):
        yield name, _recipe(site.text(name))
    if site.has("tox.ini"):
        yield "tox.ini", _of_tox(site.text("tox.ini"))


def _toml(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _scripts(settings: Mapping[str, Any]) -> Iterator[str]:
    """What the task runners of pyproject.toml call `test`."""
    tools = _table(settings, "tool")
    places = [_table(tools, "poe", "tasks"), _table(tools, "pdm", "scripts"), _table(tools, "taskipy", "tasks")]
    environments = _table(tools, "hatch", "envs")
    places += [_table(tools, "rye", "scripts"), *(_table(environments, name, "scripts") for name in environments)]
    for place in places:
        found = next((place[name] for name in TARGETS[:2] if name in place), None)
        if isinstance(found, Mapping):
            found = found.get("cmd") or found.get("shell")
        yield from (str(one) for one in (found if isinstance(found, list) else [found]) if one)


def _table(table: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        found = table.get(name)
        table = found if isinstance(found, Mapping) else {}
    return table


def _recipe(text: str) -> list[str]:
    """The lines of the first target that tests, with the variables of the file."""
    known = {found[1]: found[2].strip() for found in _variable.finditer(text)}
    joined = text.replace("\\\n", " ")
    for target in TARGETS:
        if found := re.search(rf"(?m)^{target}[ \t]*:(?!=)[^\n]*\n((?:[ \t]+[^\n]*\n?|\n)*)", joined):
            return [_filled(line.strip().lstrip("@-+ "), known) for line in found[1].splitlines() if line.strip()]
    return []


def _filled(line: str, known: Mapping[str, str]) -> str:
    for _ in range(3):  # variables of variables
        line = _used.sub(lambda found: known.get(found[1], found[0]), line)
    return line


def _of_tox(text: str) -> list[str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return []
    commands = parser.get("testenv", "commands", fallback="").replace("\\\n", " ")
    filled = (
        _posargs.sub(lambda found: found[1] or "", line).replace("{toxinidir}", ".") for line in commands.splitlines()
    )
    return [line.strip().lstrip("- ") for line in filled if line.strip()]


def _of_line(line: str, where: str) -> Iterator[OwnCommand]:
    """The calls of a runner in one line of a shell."""
    for part in _parts.split(line):
        try:
            words = shlex.split(part)[:WORDS_MAX]
        except ValueError:
            continue
        while words and _assigned.match(words[0]):
            words = words[1:]
        at = _runner_at(words)
        if at >= 0:
            yield _sorted(RUNNERS[_name(words[at])], words[at + 1 :], where)


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
    if any((one.runner, one.options) != (first.runner, first.options) for one in found):
        return None
    every = all(one.paths for one in found)
    paths = tuple(dict.fromkeys(path for one in found for path in one.paths)) if every else ()
    is_there = all(_is_there(site, path.partition("::")[0]) for path in paths)
    return OwnCommand(first.runner, first.options, paths, first.where) if is_there else None


def _is_dropped(word: str) -> bool:
    return _is_open(word) or bool(DROPPED.match(word))


def _is_open(word: str) -> bool:
    """Whether a word has a value that only a shell or tox knows."""
    return "$" in word or "{" in word


def _is_there(site: Site, path: str) -> bool:
    bare = PurePosixPath(path).as_posix()
    return bare == "." or bare in site.files or any(name.startswith(f"{bare}/") for name in site.files)
