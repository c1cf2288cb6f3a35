"""Scripts of package.json: which test runners they call, with which words, where, and what is to be built before. Pure,
but for reading package.json; nothing is run.

What handrail runs is the project's own command, with its options, settings and files; only how results are reported is
replaced. What comes before a runner is run before it, unless it only looks at files: tests of what was built otherwise
say nothing of the sources."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as own_field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from posixpath import join, normpath
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from handrail.rules.toolchain.node.shell_text import Command, ShellPart, command_of, parts_of
from handrail.rules.toolchain.node.workspaces import is_chosen, members_of, package_at, script_everywhere
from handrail.rules.toolchain.site import Site

NAMED_BY_TAP: Final = ("ava", "tape", "tap", "qunit")
RUNNERS: Final = ("vitest", "jest", "mocha", *NAMED_BY_TAP)
UNKNOWN: Final = "npm"
"""The runner of a package whose script is not understood."""
MANAGERS: Final = frozenset({"npm", "pnpm", "yarn"})
STARTERS: Final = {"react-scripts": "jest", "craco": "jest", "ts-mocha": "mocha"}
"""Programs that are or have a runner by another name."""
NODES: Final = frozenset({"node", "tsx"})
TESTING: Final = frozenset({"t", "tst", "test"})
RUNNING: Final = frozenset({"run", "run-script"})
SEVERAL: Final = frozenset({"run-s", "run-p", "npm-run-all", "npm-run-all2"})
KNOWN: Final = frozenset({*RUNNERS, *MANAGERS, *STARTERS, *NODES, *SEVERAL})
DEPTH_MAX: Final = 6
CALLS_MAX: Final = 100
LOOKING: Final = frozenset(
    {"eslint", "prettier", "standard", "xo", "tslint", "biome", "stylelint", "oxlint", "flow", "depcheck", "knip"}
    | {"commitlint", "markdownlint", "publint", "attw", "size-limit", "echo", "docker", "docker-compose", "podman"}
    | {"codecov", "coveralls", "wait-on", "open", "sleep", "snyk", "cspell", "lint-staged", "ls-lint", "tsd", "git"}
    | {"husky"}
)
"""Programs that change nothing that tests could see, or that no sandbox has."""
INSTALLING: Final = frozenset({"ci", "install", "i", "audit", "publish", "outdated"})
DROPPED: Final = frozenset(
    {"--json", "--watch", "--watchAll", "-w", "--ui", "--silent", "--verbose", "--color", "--colors", "-c=always"}
    | {"--tap"}
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

_runner_file = re.compile(rf"(?:^|/)({'|'.join(RUNNERS)})(?:\.[cm]?js)?$")
_assigned = re.compile(r"^([A-Za-z_][A-Za-z0-9_]{0,127})=(.*)$", re.DOTALL)


class Before(Struct, frozen=True):
    """A command that a script runs before its tests."""

    folder: str
    text: str
    after: str
    """What stands between it and the next one."""


class RunnerCall(Struct, frozen=True, kw_only=True):
    """How a script calls a test runner."""

    runner: str
    """One of RUNNERS, node for Node's own, or npm if it is not known."""
    program: tuple[str, ...] = ()
    """What starts it, if that has another name."""
    around: tuple[str, ...] = ()
    """What must stand before it."""
    options: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Words that are no options: files, folders or patterns."""
    node: tuple[str, ...] = ()
    """Options of Node itself."""
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    """Where it is called."""
    before: tuple[Before, ...] = ()
    script: str = "test"


def script_calls(site: Site, name: str = "test") -> tuple[RunnerCall, ...]:
    """The test runners that a script calls, also by way of other scripts and in workspaces; none if it calls none that
    is known."""
    reader = _ScriptReader(site)
    reader.script("", name, DEPTH_MAX)
    return tuple(reader.calls)


def workspace_calls(site: Site, name: str = "test") -> tuple[RunnerCall, ...]:
    """The same for the scripts of all packages of a workspace, if nothing else says how they are tested."""
    reader = _ScriptReader(site)
    reader.everywhere(name, (), DEPTH_MAX)
    return tuple(reader.calls)


def script_steps(site: Site, name: str) -> tuple[Before, ...]:
    """The commands of a script that is no test."""
    reader = _ScriptReader(site)
    reader.script("", name, DEPTH_MAX)
    return tuple(reader.before)


@dataclass
class _ScriptReader:
    """Reads scripts, command by command."""

    site: Site
    calls: list[RunnerCall] = own_field(default_factory=list)
    before: list[Before] = own_field(default_factory=list)

    def script(self, folder: str, name: str, depth: int, more: Sequence[str] = ()) -> None:
        """A script with the one that runs before it; `more` are words for its last command."""
        scripts = package_at(self.site, folder).get("scripts")
        if not isinstance(scripts, Mapping) or depth <= 0:
            return
        texts = [str(scripts.get(one, "")) for one in (f"pre{name}", name)]
        parts = [*parts_of(texts[0]), *parts_of(texts[1])]
        env: dict[str, str] = {}
        for at, part in enumerate(parts, 1):
            last = more if at == len(parts) else ()
            folder = self.part(replace(part, after=part.after or "&&"), folder, depth, env, last)

    def part(self, part: ShellPart, folder: str, depth: int, env: dict[str, str], more: Sequence[str]) -> str:
        """One command; the folder that the next one is run in."""
        command = None if _is_group(part) else command_of(part.text, KNOWN)
        if command is None or not command.words:
            self.group(part, folder, depth, env)
        elif command.words[0] == "cd":
            return _entered(folder, command.words)
        elif command.words[0] == "export":
            env.update({found[1]: found[2] for found in map(_assigned.match, command.words[1:]) if found})
        elif not self.understood(replace(command, env={**env, **command.env}), folder, depth, more):
            self.other(part, command, folder)
        return folder

    def group(self, part: ShellPart, folder: str, depth: int, env: Mapping[str, str]) -> None:
        """Commands in brackets: the folder and the variables that they set are their own. Or what can't be read."""
        ahead, known = list(self.before), len(self.calls)
        inner, own = folder, dict(env)
        for one in parts_of(part.text[1:-1]) if depth > 0 and _is_group(part) else ():
            inner = self.part(replace(one, after=one.after or part.after), inner, depth - 1, own, ())
        if len(self.calls) == known:
            self.before = [*ahead, Before(folder, part.text, part.after)]

    def understood(self, command: Command, folder: str, depth: int, more: Sequence[str]) -> bool:
        """Take what a command calls; False if it is not known."""
        if found := script_everywhere(command.words, MANAGERS):
            return self.everywhere(*found, depth - 1)
        if others := _scripts_of(command.words, package_at(self.site, folder)):
            start = len(self.calls)
            for name in others:
                self.script(folder, name, depth - 1, (*_words_after(command.words, name), *more))
            self.calls[start:] = [replace(one, env={**command.env, **one.env}) for one in self.calls[start:]]
            return True
        call = _call(replace(command, words=(*command.words, *more)))
        if call is None or len(self.calls) >= CALLS_MAX:
            return call is not None
        self.calls.append(replace(call, folder=folder, before=tuple(self.before)))
        return True

    def everywhere(self, name: str, chosen: Sequence[str], depth: int) -> bool:
        """A script in the packages of the workspace; False if there are none."""
        folders = [one for one in members_of(self.site) if is_chosen(self.site, one, chosen)]
        for folder in folders:
            scripts = package_at(self.site, folder).get("scripts")
            if isinstance(scripts, Mapping) and isinstance(scripts.get(name), str):
                self.member(folder, name, depth)
        return bool(folders)

    def member(self, folder: str, name: str, depth: int) -> None:
        """A script of one package: what it builds is its own."""
        ahead, known = list(self.before), len(self.calls)
        self.script(folder, name, depth)
        if len(self.calls) > known:
            self.before = ahead
        elif name.startswith("test"):
            self.before = ahead
            self.calls.append(RunnerCall(runner=UNKNOWN, folder=folder, before=tuple(ahead), script=name))

    def other(self, part: ShellPart, command: Command, folder: str) -> None:
        """A command that is no test; it is run before those that follow, if it may matter to them."""
        name = PurePosixPath(command.words[0]).name
        is_idle = name in LOOKING or (name in MANAGERS and command.words[1:2] and command.words[1] in INSTALLING)
        if not is_idle and "--noEmit" not in command.words:
            self.before.append(Before(folder, part.text, part.after))


def _is_group(part: ShellPart) -> bool:
    return part.text.startswith("(") and part.text.endswith(")")


def _entered(folder: str, words: Sequence[str]) -> str:
    """The folder after `cd`."""
    return normpath(join(folder, words[1])).removeprefix(".").lstrip("/") if len(words) > 1 else folder


def _scripts_of(words: Sequence[str], package: Mapping[str, Any]) -> Sequence[str]:
    """The scripts that a command runs by a package manager."""
    scripts = package.get("scripts")
    known = list(scripts) if isinstance(scripts, Mapping) else []
    plain = [word for word in words[1:] if not word.startswith("-")]
    if words[0] in SEVERAL:
        return [name for word in plain for name in known if fnmatchcase(name, word)]
    named = _named_script(words[0], [*plain, "", ""]) if words[0] in MANAGERS else ""
    return [one for one in (named,) if one == "test" or one in known]


def _named_script(manager: str, plain: Sequence[str]) -> str:
    if plain[0] in TESTING:
        return "test"
    if plain[0] in RUNNING:
        return plain[1]
    return "" if manager == "npm" else plain[0]


def _words_after(words: Sequence[str], name: str) -> tuple[str, ...]:
    """What a command gives to the script that it runs."""
    rest = list(words[words.index(name) + 1 :]) if name in words else []
    return tuple(rest[1:] if rest[:1] == ["--"] else rest)


def _call(command: Command) -> RunnerCall | None:
    words = _without_manager(command.words)
    name = PurePosixPath(words[0]).name if words else ""
    found: RunnerCall | None = None
    if name in RUNNERS:
        found = _with_words(name, words[1:])
    elif name in STARTERS:
        rest = words[2:] if words[1:2] == ("test",) else words[1:]
        found = replace(_with_words(STARTERS[name], rest), program=(name, *words[1 : len(words) - len(rest)]))
    elif name in NODES:
        found = _by_node(words)
    return replace(found, env=command.env, around=command.around) if found else None


def _without_manager(words: tuple[str, ...]) -> tuple[str, ...]:
    """yarn and pnpm start programs of packages by their names: `yarn jest`, `pnpm exec vitest`."""
    if words[0] not in MANAGERS:
        return words
    at = next((at for at, word in enumerate(words) if at and PurePosixPath(word).name in KNOWN), len(words))
    return words[at:] if words[0] != "npm" or "exec" in words[1:at] else ()


def _by_node(words: Sequence[str]) -> RunnerCall | None:
    if "--test" in words:
        options, paths = _sorted_words([word for word in words[1:] if word != "--test"])
        by_tsx = ("--import", "tsx") if PurePosixPath(words[0]).name == "tsx" else ()
        return RunnerCall(runner="node", options=(*by_tsx, *options), paths=paths)
    return next((_by_file(words, at) for at, word in enumerate(words) if _runner_file.search(word)), None)


def _by_file(words: Sequence[str], at: int) -> RunnerCall | None:
    """A runner whose file Node is given."""
    named = _runner_file.search(words[at])
    found = _with_words(named[1], words[at + 1 :]) if named else None
    return replace(found, node=tuple(words[1:at])) if found else None


def _with_words(runner: str, words: Sequence[str]) -> RunnerCall:
    rest = words[1:] if words and words[0] in VERBS.get(runner, ()) else words
    options, paths = _sorted_words(rest)
    return RunnerCall(runner=runner, options=options, paths=paths)


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
