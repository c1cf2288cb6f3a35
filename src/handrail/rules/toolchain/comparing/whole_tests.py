"""Tests that are one command without names, as of a Makefile: which files are theirs, and whether they are less than at
the start. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from handrail.rules.toolchain.comparing.hiding import CODE, suspects
from handrail.rules.toolchain.comparing.old_view import OldFiles
from handrail.rules.toolchain.comparing.weaker_assertions import values_in

COMPILED: Final = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".rs")
ASSERTING: Final = (*CODE, *COMPILED, ".sh")

COMMANDS: Final = ("Makefile", "makefile", "GNUmakefile", "tox.ini", "pyproject.toml", "package.json")
"""The files that say how a project is tested."""

_word = re.compile(r"[\w./-]+")
_runner = re.compile(r"(?:^|/)[^/]*(?:test|check|spec|run)[^/]*$", re.IGNORECASE)
_build = re.compile(r"(?:^|/)(?:GNUmakefile|[Mm]akefile|[^/]+\.mk|CMakeLists\.txt|meson\.build)$")
_recipe = re.compile(r"^[^\s#=]*\b(?:tests?|check|unit)\b[^=\n]*:(?!=)[^\n]*\n((?:\t[^\n]*\n?|\n)*)", re.MULTILINE)
_leaving = re.compile(
    r"NDEBUG\b|\|\|\s*(?:true|:|echo|exit 0)|;\s*(?:true|exit 0)\b|^\t-|\.IGNORE\b"
    r"|#\s*if\s+0|\bif\s*\(\s*(?:0|false)\s*\)"
    r"|\b(?:return|exit|_exit|_Exit|quick_exit|goto|skip\w*|SKIP\w*|xfail|expectedFailure|pending|todo)\b",
    re.MULTILINE,
)


def asserting(old: OldFiles) -> frozenset[str]:
    """The files that compared values at the start, and those that say how to build and run them."""
    texts = {path: _text(content) for path, content in old.contents.items()}
    compared = {path for path, text in texts.items() if path.endswith(ASSERTING) and values_in(path, text)}
    return frozenset({*compared, *filter(_build.search, texts)})


def runners(old: OldFiles, texts: Iterable[str]) -> frozenset[str]:
    """The scripts that these files name as what runs the tests: any change of one may hide a failure."""
    words = {word.removeprefix("./") for text in texts for word in _word.findall(text)}
    return frozenset(path for path in old.contents if path in words and _runner.search(path))


def is_less(old: OldFiles, now: Mapping[str, bytes], paths: Collection[str]) -> bool:
    """Whether these files demand less than at the start, or have something new in them that could hide a failure."""
    own = [path for path in paths if path.endswith(ASSERTING)]
    was = sum(values_in(path, _text(old.contents[path])) for path in own)
    left = sum(values_in(path, _text(now.get(path))) for path in own)
    return left < was or any(_hides(path, old.contents[path], now.get(path, b"")) for path in paths)


def _hides(path: str, before: bytes | None, now: bytes) -> bool:
    old, new = _text(before), _text(now)
    if _build.search(path):
        return _lost_lines(old, new) or _more(_leaving, old, new)
    if not path.endswith(ASSERTING):  # cases, scenarios
        return len(new.split()) < len(old.split())
    is_code = path.endswith(CODE)
    return _more(_leaving, old, new) or (is_code and any(True for _ in suspects(path, before, now, frozenset())))


def _lost_lines(before: str, now: str) -> bool:
    """Whether a line is gone from what a Makefile runs as tests."""
    lines = {line.strip() for found in _recipe.finditer(now) for line in found[1].splitlines()}
    return any(line.strip() not in lines for found in _recipe.finditer(before) for line in found[1].splitlines())


def _more(pattern: re.Pattern[str], before: str, now: str) -> bool:
    return len(pattern.findall(now)) > len(pattern.findall(before))


def _text(content: bytes | None) -> str:
    return (content or b"").decode(errors="replace")
