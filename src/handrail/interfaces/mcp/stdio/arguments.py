"""Arguments of `handrail mcp`: read by hand, because a server that agents wait for starts before any CLI framework.

Pure. What the settings mean is told in settings.py; here they are only picked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

TOOLSETS: Final = ("guide", "run", "journal")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
GLOBAL_OPTIONS: Final = ("--home", "--project", "--log-level")
OPTIONS: Final = (*GLOBAL_OPTIONS, "--toolsets")
HELP: Final = """Usage: handrail mcp [OPTIONS]

  The server that an agent's client starts: MCP over stdin and stdout.

Options:
  --toolsets LIST    Which tools to offer: guide, run, journal, separated by commas (HANDRAIL_TOOLSETS; default: all).
  --home FOLDER      Where all state is kept (HANDRAIL_HOME).
  --project FOLDER   The project's folder (HANDRAIL_PROJECT; default: here).
  --log-level LEVEL  debug, info, warning or error (HANDRAIL_LOG_LEVEL).
  -h, --help         Show this message and exit.
"""


class Options(NamedTuple):
    """What was asked for on the command line and in the environment."""

    toolsets: tuple[str, ...]
    flags: dict[str, str | None]


class Usage(Exception):
    """The arguments can't be understood; the message says why."""


def is_for_mcp(words: Sequence[str]) -> bool:
    """Whether the command among these words is `mcp`."""
    rest = iter(words)
    for word in rest:
        if word in GLOBAL_OPTIONS:
            next(rest, None)
        elif not word.startswith(tuple(f"{option}=" for option in GLOBAL_OPTIONS)):
            return word == "mcp"
    return False


def read_options(words: Sequence[str], environment: Mapping[str, str]) -> Options | None:
    """The options in these words; None: help is wanted."""
    if "-h" in words or "--help" in words:
        return None
    given = _given(words)
    level = given.get("--log-level")
    if level and level not in LOG_LEVELS:
        raise Usage(f"--log-level can't be {level!r}: choose one of {', '.join(LOG_LEVELS)}")
    flags = {name.removeprefix("--").replace("-", "_"): given.get(name) for name in GLOBAL_OPTIONS}
    return Options(_toolsets(given.get("--toolsets") or environment.get("HANDRAIL_TOOLSETS") or ""), flags)


def _given(words: Sequence[str]) -> dict[str, str]:
    """The value of each option; the command itself is skipped once."""
    given: dict[str, str] = {}
    commands = 0
    rest = iter(words)
    for word in rest:
        name, has_value, value = word.partition("=")
        if name in OPTIONS:
            given[name] = value if has_value else _next(rest, name)
        elif word == "mcp" and not commands:
            commands += 1
        elif word.startswith("-"):  # all are named: to find the nearest would need an import that every start pays
            raise Usage(f"no such option: {name}; there are {', '.join(OPTIONS)}")
        else:
            raise Usage(f"no such argument: {word}")
    return given


def _next(rest: Iterator[str], name: str) -> str:
    value = next(rest, None)
    if value is None:
        raise Usage(f"{name} needs a value")
    return value


def _toolsets(listed: str) -> tuple[str, ...]:
    names = {name.strip() for name in listed.split(",") if name.strip()}
    if unknown := sorted(names - set(TOOLSETS)):
        raise Usage(f"no such toolset: {', '.join(unknown)}; there are {', '.join(TOOLSETS)}")
    return tuple(name for name in TOOLSETS if not names or name in names)
