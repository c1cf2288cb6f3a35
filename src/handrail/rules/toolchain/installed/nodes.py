"""Which Node a developer would use in a project: the version that its files name, else the first on PATH."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from handrail.rules.toolchain.installed.installation import HEAD_BYTES, text_of
from handrail.rules.toolchain.installed.shims import OnPath, machine_programs, version_folders
from handrail.rules.toolchain.site import Site

ALIASES_MAX: Final = 5
"""How many names may stand for each other."""

_alias = re.compile(r"[a-z][\w.-]{0,60}(?:/(?:[\w-]{1,60}|\*))?$")
_version = re.compile(r"^v?(\d{1,4}(?:\.\d{1,6}){0,2})$")


def node_of(site: Site) -> OnPath | None:
    """The Node for a project; None if there is none."""
    above = tuple(site.above())
    for named, version in _named(above):
        for folder in version_folders("node", version):
            if os.access(folder / "bin" / "node", os.X_OK):
                return OnPath(folder / "bin" / "node", f"{named} names {version}")
    return next(machine_programs("node", above), None) or next(_defaults(), None)


def _defaults() -> Iterator[OnPath]:
    """What a manager's shell would have on PATH: a server that a desktop program has started does not."""
    if version := _of_nvm("default"):
        for folder in version_folders("node", version):
            yield OnPath(folder / "bin" / "node", f"nvm: its default is {version}")
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    fnm = Path(os.environ.get("FNM_DIR") or data / "fnm") / "aliases" / "default" / "bin" / "node"
    if os.access(fnm, os.X_OK):
        yield OnPath(fnm, "fnm: its default")


def _of_nvm(name: str) -> str:
    """The version that a name of nvm stands for: `lts/*`, `lts/iron`, `node`, or one that the user gave."""
    home = Path(os.environ.get("NVM_DIR") or Path.home() / ".nvm")
    for _ in range(ALIASES_MAX):
        if found := _version.match(name):
            return found[1]
        if name in {"node", "stable"}:
            return _newest(home / "versions" / "node")
        if not _alias.match(name):
            return ""
        name = text_of(home / "alias" / name, HEAD_BYTES).strip()
    return ""


def _newest(folder: Path) -> str:
    found = filter(None, (_version.match(one.name) for one in folder.glob("v*")))
    return max((one[1] for one in found), key=lambda text: [*map(int, text.split("."))], default="")


def _named(above: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """Each file that names a version, and the version."""
    for folder in above:
        for name in (".nvmrc", ".node-version"):
            if version := _of_nvm(text_of(folder / name, HEAD_BYTES).partition("#")[0].strip()):
                yield name, version
        pinned = _pinned(folder / "package.json")
        if isinstance(pinned, str) and (found := _version.match(pinned)):
            yield "package.json", found[1]


def _pinned(path: Path) -> Any:
    """The version that volta has written into package.json."""
    try:
        package = msgspec.json.decode(text_of(path, 1_000_000))
    except (msgspec.DecodeError, RecursionError):
        return None
    volta = package.get("volta") if isinstance(package, dict) else None
    return volta.get("node") if isinstance(volta, dict) else None
