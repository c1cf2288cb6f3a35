"""Copies of the project's own package in an environment: tox, nox and `pip install .` put one there, and it gets old.

Tests that import the copy say nothing of the project's files, so the files must come first on the path."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from handrail.rules.toolchain.installed.installation import text_of
from handrail.rules.toolchain.installed.python_environment import Python
from handrail.rules.toolchain.site import Site

RECORDS_MAX: Final = 2_000
TOPS_MAX: Final = 50
PLACES: Final = ("src", ".", "lib", "python")
"""Where projects have their packages."""
READ_MAX: Final = 1_000_000

_name = re.compile(r"^\s*name\s*=\s*[\"']?([\w.-]{1,100})", re.MULTILINE)
_of_setup = re.compile(r"\bname\s*=\s*[\"']([\w.-]{1,100})[\"']")
_recorded = re.compile(r"^(\w{1,100})(?:/|\.py,)", re.MULTILINE)


class OwnCopy(Struct, frozen=True):
    """A package of the project that is installed as a copy."""

    name: str
    source: Path
    """The folder that the project has it in."""
    installed: Path
    """The folder that the environment has it in."""


def own_copies(python: Python, site: Site) -> tuple[OwnCopy, ...]:
    """The packages of the project of which an interpreter has copies."""
    return tuple(dict.fromkeys(_copies(python, site)))


def _copies(python: Python, site: Site) -> Iterator[OwnCopy]:
    names = set(_names(site))
    for folder in python.packages():
        records = (*folder.glob("*.dist-info"), *folder.glob("*.egg-info"))
        for record in islice(records, RECORDS_MAX):
            base = _base(record, names, site)
            yield from _of_record(record, base, folder) if base is not None else ()


def _of_record(record: Path, base: Path, folder: Path) -> Iterator[OwnCopy]:
    for top in _tops(record):
        source = next((base / place for place in PLACES if _has(base / place, top)), None)
        if source is not None and _has(folder, top):
            yield OwnCopy(top, source.resolve(), folder)


def _names(site: Site) -> Iterator[str]:
    """What the project is called, as tools compare names."""
    found = [*_of_toml(site.text("pyproject.toml")), *_name.findall(site.text("setup.cfg"))[:1]]
    yield from map(_normal, [*found, *_of_setup.findall(site.text("setup.py"))[:1]])


def _of_toml(text: str) -> Iterator[str]:
    try:
        settings = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    tools = settings.get("tool")
    tables = (settings.get("project"), tools.get("poetry") if isinstance(tools, Mapping) else None)
    yield from (str(table.get("name", "")) for table in tables if isinstance(table, Mapping))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _base(record: Path, names: set[str], site: Site) -> Path | None:
    """The folder of the project that a package was installed from; None if it is not the project's, or only a link."""
    origin = _json(record / "direct_url.json")
    folder = Path(unquote(urlsplit(str(origin.get("url", ""))).path))
    kind = origin.get("dir_info")
    if isinstance(kind, Mapping) and kind.get("editable"):
        return None
    if isinstance(kind, Mapping) and folder.is_relative_to(site.project.root):
        return folder
    is_own = folder.is_relative_to(site.project.root) or _normal(record.name.partition("-")[0]) in names
    return site.folder if is_own else None


def _json(path: Path) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(text_of(path))
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _tops(record: Path) -> list[str]:
    """The packages and modules that were installed."""
    named = text_of(record / "top_level.txt").split()
    return (named or list(dict.fromkeys(_recorded.findall(text_of(record / "RECORD", READ_MAX)))))[:TOPS_MAX]


def _has(folder: Path, top: str) -> bool:
    return top.isidentifier() and ((folder / top).is_dir() or (folder / f"{top}.py").is_file())
