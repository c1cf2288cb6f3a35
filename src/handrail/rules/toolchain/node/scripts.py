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
from msgspec.structs import replace

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
_runner_file = re.compile(rf"(?:^|/)({'|'.join(RUNNERS)})(?:\.m?js)?$")
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
    while rest and (_assigned.match(rest[0]) or _is_around(rest, words)):
        if found := _assigned.match(rest.pop(0)):
            env[found[1]] = found[2]
    return env, rest


def _is_around(rest: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the next word stands before a command, or is an option of such a word: `npx --no-install jest`."""
    if rest[0] in AROUND:
        return len(rest) > 1
    return rest[0].startswith("--") and len(rest) < len(words) and words[len(words) - len(rest) - 1] in AROUND


def _script_of(words: Sequence[str], scripts: Mapping[str, Any]) -> str:
    """The script that a command runs by a package manager; yarn and pnpm do not stand before it any more."""
    verb, rest = (words[1:2], words[2:]) if words[:1] == ["npm"] else (words[:1], words[1:])
    if verb in (["t"], ["test"]) and words[:1] == ["npm"]:
        return "test"
    if verb in (["run"], ["run-script"]):
        return next((word for word in rest if word in scripts), "")
    is_named = len(words) == 1 and words[0] in scripts and words[0] not in RUNNERS
    return words[0] if is_named else ""


def _call(words: Sequence[str], env: Mapping[str, str]) -> RunnerCall | None:
    name = PurePosixPath(words[0]).name if words else ""
    if name in RUNNERS:
        return _with_words(name, words[1:], env)
    if name != "node":
        return None
    if "--test" in words:
        options, paths = _sorted_words([word for word in words[1:] if word != "--test"])
        return RunnerCall(runner="node", options=options, paths=paths, env=env)
    return next((_by_node(words, at, env) for at, word in enumerate(words) if _runner_file.search(word)), None)


def _by_node(words: Sequence[str], at: int, env: Mapping[str, str]) -> RunnerCall | None:
    """A runner whose file Node is given."""
    named = _runner_file.search(words[at])
    found = _with_words(named[1], words[at + 1 :], env) if named else None
    return replace(found, node=tuple(words[1:at])) if found else None


def _with_words(runner: str, words: Sequence[str], env: Mapping[str, str]) -> RunnerCall:
    rest = words[1:] if words and words[0] in VERBS.get(runner, ()) else words
    options, paths = _sorted_words(rest)
    return RunnerCall(runner=runner, options=options, paths=paths, env=env)


def _sorted_words(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options that stay, with their values, and the words that are files. Without knowing every option, a word
    after an option without `=` counts as its value, unless it looks like a file."""
    options: list[str] = []
    paths: list[str] = []
    last = ""
    """The option whose value may follow."""
    for word in words:
        if word.startswith("-"):
            last = "" if "=" in word or word in DROPPED else word
            options += [] if _is_dropped(word) else [word]
        elif last and _is_value(word, last):
            options += [] if _is_dropped(last) else [word]
            last = ""
        else:
            paths.append(word)
            last = ""
    return tuple(options), tuple(paths)


def _is_dropped(option: str) -> bool:
    return option in DROPPED or option.partition("=")[0] in DROPPED_WITH_VALUE


def _is_value(word: str, option: str) -> bool:
    return option in DROPPED_WITH_VALUE or option in WITH_FILE or not _looks_like_file(word)


def _looks_like_file(word: str) -> bool:
    return "/" in word or "*" in word or word.endswith((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx"))
