"""Which Node a developer would use in a project: the version that its files name, else the first on PATH."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from handrail.rules.toolchain.installed.installation import text_of
from handrail.rules.toolchain.installed.shims import OnPath, machine_programs, version_folders
from handrail.rules.toolchain.site import Site

_version = re.compile(r"^v?(\d{1,4}(?:\.\d{1,6}){0,2})$")


def node_of(site: Site) -> OnPath | None:
    """The Node for a project; None if there is none."""
    above = tuple(site.above())
    for named, version in _named(above):
        for folder in version_folders("node", version):
            if os.access(folder / "bin" / "node", os.X_OK):
                return OnPath(folder / "bin" / "node", f"{named} names {version}")
    return next(machine_programs("node", above), None)


def _named(above: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """Each file that names a version, and the version."""
    for folder in above:
        for name in (".nvmrc", ".node-version"):
            if found := _version.match(text_of(folder / name).strip()):
                yield name, found[1]
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
