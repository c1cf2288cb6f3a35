"""The text of a script as a shell reads it: its commands, what stands between them, and the words of each. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct, field

LENGTH_MAX: Final = 4_000
AROUND: Final = frozenset({"cross-env", "cross-env-shell", "env", "npx", "exec", "--", "bunx", "c8", "nyc", "time"})
"""Words that may stand before a command and change nothing about its results."""
KEPT_AROUND: Final = frozenset({"dotenv", "env-cmd", "xvfb-run"})
"""Words that may stand before a command, which needs what they do."""

_token = re.compile(
    r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|\d*[<>]&\d*|&>>?|&&|\|\||[;|&\n()]|[^'\"\\;|&\n<>()\d]+|.", re.DOTALL
)
_between: Final = frozenset({"&&", "||", ";", "|", "&", "\n"})
_assigned = re.compile(r"^([A-Za-z_][A-Za-z0-9_]{0,127})=(.*)$", re.DOTALL)
_redirected = re.compile(r"^(?:\d*|&)(?:>>?|<)(&?\d*|.*)$")


class ShellPart(Struct, frozen=True):
    """A command of a script."""

    text: str
    after: str = ""
    """What stands between it and the next one."""


class Command(Struct, frozen=True, kw_only=True):
    """The words of a command."""

    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """The variables that are set for it."""
    around: tuple[str, ...] = ()
    """What starts it, and must."""


def parts_of(text: str) -> Iterator[ShellPart]:
    """The commands of a script; nothing separates them in quotes or in brackets."""
    said, depth = "", 0
    for found in _token.finditer(text[:LENGTH_MAX]):
        depth += (found[0] == "(") - (found[0] == ")")
        if depth > 0 or found[0] not in _between:
            said += found[0]
        elif said.strip():
            yield ShellPart(said.strip(), found[0].replace("\n", ";"))
            said = ""
    if said.strip():
        yield ShellPart(said.strip())


def command_of(text: str, known: frozenset[str]) -> Command | None:
    """What a command calls; None if its quotes do not end. `known` are words that start a command, so that options of
    what stands before it end there."""
    try:
        rest = _without_redirection(shlex.split(text))
    except ValueError:
        return None
    env: dict[str, str] = {}
    while _is_before(rest):
        first = rest.pop(0)
        if found := _assigned.match(first):
            env[found[1]] = found[2]
        else:
            rest = rest[_start(rest, known) :]
    kept = _start(rest[1:], known) + 1 if rest[:1] and rest[0] in KEPT_AROUND else 0
    return Command(words=tuple(rest[kept:]), env=env, around=tuple(rest[:kept]))


def _is_before(rest: Sequence[str]) -> bool:
    """Whether the first word stands before a command."""
    return bool(rest) and (bool(_assigned.match(rest[0])) or (rest[0] in AROUND and len(rest) > 1))


def _without_redirection(words: Sequence[str]) -> list[str]:
    kept: list[str] = []
    is_target = False
    for word in words:
        found = _redirected.match(word)
        if not found and not is_target:
            kept.append(word)
        is_target = bool(found) and not (found and found[1])
    return kept


def _start(rest: Sequence[str], known: frozenset[str]) -> int:
    """Where a command starts after the options of what stands before it: `c8 --lines 90 mocha`."""
    if not rest or not rest[0].startswith("-") or rest[0] == "--":
        return int(rest[:1] == ["--"])
    names = [PurePosixPath(word).name for word in rest]
    return next((at for at, name in enumerate(names) if name in known or name in AROUND - {"--"}), 0)
