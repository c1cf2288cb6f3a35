"""The parameters of the rules that come with handrail, so that a check can be read before anything runs.

Pure. What they mean, and of what type they are, their cards say (rules/); a test holds the two together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct


class Takes(Struct, frozen=True):
    """What a rule must be given, and what it may be given."""

    required: frozenset[str]
    known: frozenset[str]


SHARED: Final = frozenset({"of", "timeout"})
"""What every rule may be given."""


def _takes(words: str) -> Takes:
    """Names of parameters; those that must be there end with `!`."""
    names = words.split()
    required = frozenset(name.rstrip("!") for name in names if name.endswith("!"))
    return Takes(required, SHARED | {name.rstrip("!") for name in names})


_TOOLCHAIN: Final = "args command env language path paths"

BUILT_IN_PARAMETERS: Final[Mapping[str, Takes]] = MappingProxyType(
    {
        "all_of": _takes("checks!"),
        "any_of": _takes("checks!"),
        "command_succeeds": _takes("argv! cwd env expect stdout_contains"),
        "compiles": _takes(_TOOLCHAIN),
        "contains": _takes("text texts"),
        "coverage_at_least": _takes("args env language path paths percent! report"),
        "diff_within": _takes("against max_files max_lines paths!"),
        "equals": _takes("value!"),
        "expression": _takes("that!"),
        "file_contains": _takes("absent path! pattern text texts"),
        "file_exists": _takes("kind min_bytes path paths"),
        "files_changed": _takes("against digest paths!"),
        "files_unchanged": _takes("against digest paths!"),
        "git_clean": _takes("paths untracked"),
        "http_ok": _takes("expect url!"),
        "json": _takes(""),
        "length": _takes("max min"),
        "lint_clean": _takes(_TOOLCHAIN),
        "matches": _takes("flags pattern!"),
        "no_known_vulnerabilities": _takes("ignore network path"),
        "no_secrets": _takes("against paths"),
        "none_of": _takes("checks!"),
        "schema": _takes("schema!"),
        "tests_pass": _takes(_TOOLCHAIN),
    }
)
