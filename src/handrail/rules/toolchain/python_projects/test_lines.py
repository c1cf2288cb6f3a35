"""The lines by which a Python project runs its tests: of its task runners, its Makefile, or tox. Pure, but for reading
these files. What the lines mean is decided in own_command.py."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from handrail.rules.toolchain.site import Site

TARGETS: Final = ("test", "tests", "unittest", "unit", "check")
MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")

_variable = re.compile(r"^([A-Za-z_][\w.-]{0,100})[ \t]*(?:\?|:{1,2})?=[ \t]*(.*)$", re.MULTILINE)
_exported = re.compile(r"^export[ \t]+([A-Za-z_]\w{0,100})[ \t]*(?:\?|:{1,2})?=[ \t]*(.*)$", re.MULTILINE)
_used = re.compile(r"\$[({]([A-Za-z_][\w.-]{0,100})[)}]")
_here = re.compile(r"\$[({](?:CURDIR|PWD|shell pwd)[)}]|\$\$PWD|\$\{PWD\}")
_set = re.compile(r"^[ \t]*([A-Za-z_]\w{0,100})[ \t]*=[ \t]*(.*)$", re.MULTILINE)
_posargs = re.compile(r"\{posargs(?::([^{}]*))?\}")


class TestLines(Struct, frozen=True):
    """The commands of one file."""

    where: str
    lines: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    """The target of a Makefile that they are of."""


def test_lines(site: Site) -> Iterator[TestLines]:
    """The lines that run the tests, by the file that has them; the likeliest first."""
    settings = _toml(site.text("pyproject.toml")) if site.has("pyproject.toml") else {}
    yield TestLines("pyproject.toml", tuple(_scripts(settings)))
    for name in filter(site.has, MAKEFILES):
        yield _recipe(name, site.text(name))
    if site.has("tox.ini"):
        yield _of_tox(site.text("tox.ini"))


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


def _recipe(name: str, text: str) -> TestLines:
    """The lines of the first target that tests, with the variables of the file."""
    known = {found[1]: found[2].strip() for found in _variable.finditer(text)}
    env = {found[1]: _filled(found[2].strip(), known) for found in _exported.finditer(text)}
    joined = text.replace("\\\n", " ")
    for target in TARGETS:
        if found := re.search(rf"(?m)^{target}[ \t]*:(?!=)[^\n]*\n((?:[ \t]+[^\n]*\n?|\n)*)", joined):
            lines = (_filled(line.strip().lstrip("@-+ "), known) for line in found[1].splitlines() if line.strip())
            return TestLines(name, tuple(lines), env, target)
    return TestLines(name, ())


def _filled(line: str, known: Mapping[str, str]) -> str:
    for _ in range(3):  # variables of variables
        line = _used.sub(lambda found: known.get(found[1], found[0]), _here.sub(".", line))
    return line


def _of_tox(text: str) -> TestLines:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return TestLines("tox.ini", ())
    commands = parser.get("testenv", "commands", fallback="").replace("\\\n", " ")
    filled = (_posargs.sub(lambda found: found[1] or "", _in_tox(line)) for line in commands.splitlines())
    named = "\n".join(parser.get("testenv", key, fallback="") for key in ("setenv", "set_env"))
    env = {found[1]: found[2].strip() for found in _set.finditer(_in_tox(named))}
    return TestLines("tox.ini", tuple(line.strip().lstrip("- ") for line in filled if line.strip()), env)


def _in_tox(line: str) -> str:
    return line.replace("{toxinidir}", ".").replace("{tox_root}", ".")
