"""Settings and marks that make a measure milder: rules switched off, files left out, lines that do not count.

What linters and coverage say is worth as much as their settings. Those of the start count: what this run added to the
exceptions is a finding. One exception on one line, with its code, is an ordinary thing and none. Pure."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

MARKS_MAX: Final = 3
"""How many lines may be marked as not to be covered in one file without a finding."""
SECTIONS: Final = {
    "lint": ("ruff", "flake8"),
    "coverage": ("coverage:run", "coverage:report", "run", "report", "coverage"),
}
GROWING: Final = {
    "lint": frozenset(
        {"ignore", "extend-ignore", "exclude", "extend-exclude", "per-file-ignores", "extend-per-file-ignores"}
    ),
    "coverage": frozenset({"omit", "exclude_lines", "exclude_also", "partial_branches", "partial_also"}),
}
"""Settings that leave more out when they grow."""
SHRINKING: Final = {"lint": frozenset({"select", "extend-select", "include"}), "coverage": frozenset()}
"""Settings that leave more out when they shrink."""
NARROWING: Final = frozenset({"source", "include", "source_pkgs"})
"""Settings of coverage that say what counts at all."""
FILES: Final = {
    "lint": re.compile(r"(?:^|/)(?:\.?ruff\.toml|pyproject\.toml|setup\.cfg|tox\.ini|\.flake8)$"),
    "coverage": re.compile(r"(?:^|/)(?:\.coveragerc(?:\.toml)?|pyproject\.toml|setup\.cfg|tox\.ini)$"),
}
SCRIPTS: Final = {
    "lint": re.compile(r"(?:^|/)(?:eslint\.config\.[^/]+|\.eslintrc[^/]*|\.eslintignore)$"),
    "coverage": re.compile(r"(?:^|/)(?:(?:jest|vitest|vite)\.config\.[^/]+|package\.json|\.c8rc[^/]*|\.nycrc[^/]*)$"),
}
"""Settings that are programs: only their lines are compared."""
MILDER_LINES: Final = {
    "lint": re.compile(r"['\"]off['\"]|:\s*0\b|ignore", re.IGNORECASE),
    "coverage": re.compile(r"coveragePathIgnorePatterns|collectCoverageFrom|coverageThreshold|\bexclude\b|\binclude\b"),
}
MARKS: Final = {
    "lint": re.compile(
        r"#\s*noqa(?!\s*:)|#\s*(?:ruff|flake8)\s*:\s*noqa|//\s*@ts-nocheck|/\*\s*eslint-disable(?:\s*\*/|\s+[^-])"
        r"|eslint-disable-(?:next-)?line\s*(?:\*/|$)",
        re.IGNORECASE,
    ),
    "coverage": re.compile(r"#\s*pragma:\s*no\s?cover|(?:istanbul|c8|v8)\s+ignore", re.IGNORECASE),
}
WHOLE: Final = re.compile(
    r"^\s*(?:async\s+)?(?:def|class)\b.*#\s*pragma:\s*no\s?cover|ignore\s+(?:file|start)", re.IGNORECASE
)
"""A mark for a whole function, class or file."""
CODE: Final = (".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".mts", ".cts")


class Weakening(Struct, frozen=True):
    """What became milder, and where."""

    path: str
    message: str
    line: int = 0


def weakenings(kind: str, path: str, before: str, now: str, changed: tuple[str, ...] = ()) -> Iterator[Weakening]:
    """What the change of one file makes milder; `changed` are the files of code that this run changed."""
    if path.endswith(CODE) and not SCRIPTS[kind].search(path):
        yield from _marks(kind, path, before, now)
    elif SCRIPTS[kind].search(path):
        yield from _lines(kind, path, before, now)
    if FILES[kind].search(path):
        yield from _settings(kind, path, _read(kind, path, before), _read(kind, path, now), changed)


def _marks(kind: str, path: str, before: str, now: str) -> Iterator[Weakening]:
    added = [(number, line) for number, line in _added(before, now) if MARKS[kind].search(line)]
    if kind == "coverage" and len(added) <= MARKS_MAX:
        added = [one for one in added if WHOLE.search(one[1])]
    word = "is exempt from all rules" if kind == "lint" else "does not count any more"
    yield from (Weakening(path, f"this {word}: {line[:120]}", number) for number, line in added)


def _added(before: str, now: str) -> list[tuple[int, str]]:
    """The lines that were not there before, with their numbers."""
    old = Counter(line.strip() for line in before.splitlines())
    lines = [(number, line.strip()) for number, line in enumerate(now.splitlines(), 1)]
    return [(number, line) for number, line in lines if not _taken(old, line)]


def _taken(old: Counter[str], line: str) -> bool:
    """Whether such a line was there already; each is taken once."""
    if old[line] <= 0:
        return False
    old[line] -= 1
    return True


def _lines(kind: str, path: str, before: str, now: str) -> Iterator[Weakening]:
    if not before.strip():
        return  # there were no settings to make milder
    is_list = path.endswith(".eslintignore")
    for number, line in _added(before, now):
        if line and (is_list or MILDER_LINES[kind].search(line)):
            yield Weakening(path, f"this setting leaves something out: {line[:120]}", number)


def _settings(
    kind: str, path: str, before: Mapping[str, Any], now: Mapping[str, Any], changed: tuple[str, ...]
) -> Iterator[Weakening]:
    for key in sorted({*before, *now}):
        name, old, new = key.rpartition(".")[2], _values(before.get(key)), _values(now.get(key))
        message = _milder(kind, name, old, new) or _narrower(kind, name, old, new, changed)
        if message:
            yield Weakening(path, message)


def _milder(kind: str, name: str, old: set[str], new: set[str]) -> str:
    plain = name.replace("_", "-") if kind == "lint" else name
    if plain in GROWING[kind] and new - old:
        return f"`{name}` has {_shown(new - old)}, which it had not at the start"
    if plain in SHRINKING[kind] and new and old - new:
        return f"`{name}` had {_shown(old - new)} at the start"
    return ""


def _narrower(kind: str, name: str, old: set[str], new: set[str], changed: tuple[str, ...]) -> str:
    if kind != "coverage" or name not in NARROWING or not new or new == old:
        return ""
    out = _outside(changed, new)
    return f"`{name}` leaves out {out}, which has changed" if out else ""


def _outside(changed: tuple[str, ...], places: set[str]) -> str:
    """A changed file that none of these places names: folders, patterns or packages."""
    names = {
        *places,
        *(re.sub(r"[*/]+$", "", place) for place in places),
        *(place.replace(".", "/") for place in places),
    }
    return next((path for path in changed if not any(name in path for name in names)), "")


def _shown(values: set[str]) -> str:
    return ", ".join(sorted(values))[:200]


def _values(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        return {f"{key}: {', '.join(sorted(_values(some)))}" for key, some in value.items()}
    if isinstance(value, list):
        return set(map(str, value))
    return set(filter(None, map(str.strip, re.split(r"[,\n]", str(value or "")))))


def _read(kind: str, path: str, text: str) -> dict[str, Any]:
    """The settings of a file by their path; none if it can't be read."""
    try:
        return dict(_of_toml(kind, path, text) if path.endswith(".toml") else _of_ini(kind, text))
    except (tomllib.TOMLDecodeError, configparser.Error, RecursionError):
        return {}


def _of_toml(kind: str, path: str, text: str) -> Iterator[tuple[str, Any]]:
    found = tomllib.loads(text)
    tools = found.get("tool") if path.endswith("pyproject.toml") else {"ruff": found, "coverage": found}
    for name in ("coverage",) if kind == "coverage" else ("ruff", "flake8"):
        yield from _flat(tools.get(name) if isinstance(tools, Mapping) else None, name)


def _of_ini(kind: str, text: str) -> Iterator[tuple[str, Any]]:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    for section in filter(parser.has_section, SECTIONS[kind]):
        yield from ((f"{section}.{key}", value) for key, value in parser[section].items())


def _flat(table: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(table, Mapping):
        return
    for key, value in table.items():
        if isinstance(value, Mapping) and "per-file" not in key:
            yield from _flat(value, f"{prefix}.{key}")
        else:
            yield f"{prefix}.{key}", value
