"""Scripts of package.json: which test runner they call, and with which words. Pure; nothing is run by a shell.

What handrail runs is the project's own command, with its options, settings and files; only how results are reported is
replaced."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from msgspec import Struct, field

RUNNERS: Final = ("vitest", "jest", "mocha")
DEPTH_MAX: Final = 4
LENGTH_MAX: Final = 4_000
AROUND: Final = frozenset(
    {"cross-env", "cross-env-shell", "env", "npx", "exec", "--", "bunx", "c8", "nyc", "yarn", "pnpm"}
)
"""Words that may stand before a runner."""
DROPPED: Final = frozenset(
    {"--json", "--watch", "--watchAll", "-w", "--ui", "--silent", "--verbose", "--color", "--colors", "-c=always"}
)
DROPPED_WITH_VALUE: Final = (
    "--reporter",
    "--reporters",
    "-R",
    "--outputFile",
    "--reporter-option",
    "--reporter-options",
    "-O",
    "--test-reporter",
    "--test-reporter-destination",
)
"""Options about how results are reported; all may be written with `=` or with a word after them."""
WITH_FILE: Final = frozenset(
    {
        "--require",
        "-r",
        "--import",
        "--loader",
        "--experimental-loader",
        "--config",
        "-c",
        "--file",
        "--env-file",
        "--setupFiles",
        "--project",
        "--rootDir",
        "--root",
        "--dir",
    }
)
"""Options whose value is a file."""
VERBS: Final = {"vitest": ("run", "watch", "dev")}

_between = re.compile(r"&&|\|\||[;|\n]")
_assigned = re.compile(r"^([A-Za-z_][A-Za-z0-9_]{0,127})=(.*)$", re.DOTALL)


class RunnerCall(Struct, frozen=True, kw_only=True):
    """How a script calls a test runner."""

    runner: str
    """vitest, jest, mocha, or node for Node's own."""
    options: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Words that are no options: files, folders or patterns."""
    node: tuple[str, ...] = ()
    """Options of Node itself."""
    env: Mapping[str, str] = field(default_factory=dict)


def runner_call(scripts: Mapping[str, Any], name: str = "test") -> RunnerCall | None:
    """The first test runner that a script calls, also by way of other scripts; None if it is none that is known."""
    return next(_calls(scripts, name, DEPTH_MAX), None)


def _calls(scripts: Mapping[str, Any], name: str, depth: int) -> Iterator[RunnerCall]:
    text = scripts.get(name)
    if not isinstance(text, str) or depth <= 0:
        return
    for part in _between.split(text[:LENGTH_MAX]):
        try:
            words = shlex.split(part)
        except ValueError:  # a quote that does not end
            continue
        env, rest = _stripped(words)
        if other := _script_of(rest, scripts):
            yield from _calls(scripts, other, depth - 1)
        elif found := _call(rest, env):
            yield found


def _stripped(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The variables that are set for a command, and the command without what stands before it."""
    env: dict[str, str] = {}
    rest = list(words)
    while rest:
        if found := _assigned.match(rest[0]):
            env[found[1]] = found[2]
        elif rest[0] not in AROUND or (rest[0] in {"yarn", "pnpm"} and len(rest) < 2):
            break
        rest.pop(0)
        while rest and env == {} and rest[0].startswith("--") and rest[0] != "--" and _is_around_option(words, rest):
            rest.pop(0)
    return env, rest


def _is_around_option(words: Sequence[str], rest: Sequence[str]) -> bool:
    """Whether an option belongs to the word before it, such as `npx --no-install jest`."""
    return words[len(words) - len(rest) - 1] in AROUND


def _script_of(words: Sequence[str], scripts: Mapping[str, Any]) -> str:
    """The script that a command runs by a package manager."""
    managed = list(words)
    if managed[:1] == ["npm"]:
        managed = managed[1:]
        if managed[:1] in (["run"], ["run-script"]):
            managed = managed[1:]
        elif managed[:1] in (["t"], ["test"]):
            return "test" if "test" in scripts else ""
        else:
            return ""
    elif managed[:1] == ["run"]:
        managed = managed[1:]
    named = next((word for word in managed if not word.startswith("-")), "")
    is_plain = bool(managed) and (words[:1] in (["npm"], ["run"]) or len(managed) == 1)
    return named if is_plain and named in scripts and named not in RUNNERS else ""


def _call(words: Sequence[str], env: Mapping[str, str]) -> RunnerCall | None:
    if not words:
        return None
    name = PurePosixPath(words[0]).name
    if name in RUNNERS:
        return _with_words(name, words[1:], env)
    if name != "node":
        return None
    if any(word == "--test" or word.startswith("--test=") for word in words):
        options, paths = _sorted_words(words[1:])
        return RunnerCall(runner="node", options=tuple(one for one in options if one != "--test"), paths=paths, env=env)
    for at, word in enumerate(words[1:], 1):
        runner = next((one for one in RUNNERS if re.search(rf"(?:^|/){one}(?:\.m?js)?$", word)), "")
        if runner:
            found = _with_words(runner, words[at + 1 :], env)
            return RunnerCall(runner=runner, options=found.options, paths=found.paths, env=env, node=tuple(words[1:at]))
    return None


def _with_words(runner: str, words: Sequence[str], env: Mapping[str, str]) -> RunnerCall:
    rest = words[1:] if words and words[0] in VERBS.get(runner, ()) else words
    options, paths = _sorted_words(rest)
    return RunnerCall(runner=runner, options=options, paths=paths, env=env)


def _sorted_words(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options that stay, with their values, and the words that are files. Without knowing every option, a word
    after an option without `=` counts as its value, unless it looks like a file."""
    options: list[str] = []
    paths: list[str] = []
    is_dropped = has_value = False
    for word in words:
        if word.startswith("-"):
            bare = word.partition("=")[0]
            is_dropped = word in DROPPED or bare in DROPPED_WITH_VALUE
            has_value = "=" not in word and word not in DROPPED and (bare in DROPPED_WITH_VALUE or not is_dropped)
            if not is_dropped:
                options.append(word)
        elif has_value and (is_dropped or not _looks_like_file(word) or (options[-1:] and options[-1] in WITH_FILE)):
            has_value = False
            if not is_dropped:
                options.append(word)
        else:
            has_value = False
            paths.append(word)
    return tuple(options), tuple(paths)


def _looks_like_file(word: str) -> bool:
    return "/" in word or "*" in word or word.endswith((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx"))
