"""Arguments of `handrail mcp`, parsed by hand: importing a CLI framework would delay the first answer.

Pure. What the settings mean is documented in settings.py; here they are only collected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

TOOLSETS: Final = ("guide", "run", "journal")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
GLOBAL_OPTIONS: Final = ("--home", "--project", "--log-level")
OPTIONS: Final = (*GLOBAL_OPTIONS, "--toolsets")
HELP: Final = """Usage: handrail mcp [OPTIONS]

  The MCP server that an agent's client starts; it uses stdin and stdout.

Options:
  --toolsets LIST    Which tools to offer: guide, run, journal, separated by commas (HANDRAIL_TOOLSETS; default: all).
  --home FOLDER      Where all state is kept (HANDRAIL_HOME).
  --project FOLDER   The project folder (HANDRAIL_PROJECT; default: the current folder).
  --log-level LEVEL  debug, info, warning or error (HANDRAIL_LOG_LEVEL).
  -h, --help         Show this message and exit.
"""


class Options(NamedTuple):
    """The options given on the command line and in the environment."""

    toolsets: tuple[str, ...]
    flags: dict[str, str | None]


class UsageError(Exception):
    """The arguments are invalid; the message says why."""


def is_for_mcp(args: Sequence[str]) -> bool:
    """Whether the command in these arguments is `mcp`; global options may come before it."""
    rest = iter(args)
    for word in rest:
        if word in GLOBAL_OPTIONS:
            next(rest, None)
        elif not word.startswith(tuple(f"{option}=" for option in GLOBAL_OPTIONS)):
            return word == "mcp"
    return False


def read_options(args: Sequence[str], environment: Mapping[str, str]) -> Options | None:
    """The options in these arguments; None if help was requested."""
    if "-h" in args or "--help" in args:
        return None
    given = _given(args)
    level = given.get("--log-level")
    if level and level not in LOG_LEVELS:
        raise UsageError(f"--log-level can't be {level!r}: choose one of {', '.join(LOG_LEVELS)}")
    flags = {name.removeprefix("--").replace("-", "_"): given.get(name) for name in GLOBAL_OPTIONS}
    return Options(_toolsets(given.get("--toolsets") or environment.get("HANDRAIL_TOOLSETS") or ""), flags)


def _given(args: Sequence[str]) -> dict[str, str]:
    """The value of each option. The first `mcp` is the command; a second one is an error."""
    given: dict[str, str] = {}
    commands = 0
    rest = iter(args)
    for word in rest:
        name, has_value, value = word.partition("=")
        if name in OPTIONS:
            given[name] = value if has_value else _next(rest, name)
        elif word == "mcp" and not commands:
            commands += 1
        elif word.startswith("-"):  # list them all: finding the nearest needs an import that would slow every start
            raise UsageError(f"no such option: {name}; there are {', '.join(OPTIONS)}")
        else:
            raise UsageError(f"no such argument: {word}")
    return given


def _next(rest: Iterator[str], name: str) -> str:
    value = next(rest, None)
    if value is None:
        raise UsageError(f"{name} needs a value")
    return value


def _toolsets(listed: str) -> tuple[str, ...]:
    names = {name.strip() for name in listed.split(",") if name.strip()}
    if unknown := sorted(names - set(TOOLSETS)):
        raise UsageError(f"no such toolset: {', '.join(unknown)}; there are {', '.join(TOOLSETS)}")
    return tuple(name for name in TOOLSETS if not names or name in names)
