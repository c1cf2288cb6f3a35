"""The package managers of Node that a project uses: their real files, never the shim of corepack, and what runs a
program of a project without `node_modules`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from handrail.rules.toolchain.installed.installation import text_of
from handrail.rules.toolchain.program import FoundProgram, find
from handrail.rules.toolchain.site import Site

SCRIPTS: Final = (".js", ".cjs", ".mjs")
PLUG_N_PLAY: Final = (".pnp.cjs", ".pnp.js")

_pinned = re.compile(r"^(pnpm|yarn|npm)@(\d{1,4}\.\d{1,6}\.\d{1,6}[\w.-]{0,40})(?:\+|$)")
_yarn_path = re.compile(r"^yarnPath:\s*[\"']?([^\s\"']{1,300})", re.MULTILINE)


def manager(site: Site, node: FoundProgram, name: str) -> FoundProgram | None:
    """pnpm or yarn for a project: the one that it brings along, else the version that it pins, else that of the
    machine."""
    for path, why in _candidates(site, name):
        return FoundProgram(name, path, why, words=_called(node, path))
    found = find(site, name)
    if found is None or not _is_corepack(found.path):
        return found
    return _downloaded(node, name)


def _downloaded(node: FoundProgram, name: str) -> FoundProgram | None:
    """The newest version that corepack has downloaded."""
    newest = max(_cached(name).values(), key=lambda path: _numbers(path.parent.name), default=None)
    real = _bin_of(newest, name) if newest is not None else None
    return FoundProgram(name, real, "corepack has downloaded it", words=_called(node, real)) if real else None


def by_yarn(site: Site, node: FoundProgram, program: str) -> FoundProgram | None:
    """A program of a project whose packages yarn keeps in archives (Plug'n'Play): only yarn can start it."""
    if not any((folder / name).is_file() for folder in site.above() for name in PLUG_N_PLAY):
        return None
    yarn = manager(site, node, "yarn")
    if yarn is None:
        return None
    return FoundProgram(
        program, yarn.path, "by yarn: the project has no node_modules", words=(*yarn.call, "run", program)
    )


def _called(node: FoundProgram, path: Path) -> tuple[str, ...]:
    """A script is run by Node: what was downloaded is not always executable."""
    return (str(node.path), str(path)) if path.suffix in SCRIPTS else ()


def _candidates(site: Site, name: str) -> Iterator[tuple[Path, str]]:
    for folder in site.above():
        yield from _brought(site, folder, name)
        pinned = _pinned.match(str(_json(folder / "package.json").get("packageManager", "")))
        kept = _cached(name).get(pinned[2]) if pinned and pinned[1] == name else None
        if pinned and kept and (path := _bin_of(kept, name)):
            yield path, f"corepack: package.json pins {pinned[2]}"


def _brought(site: Site, folder: Path, name: str) -> Iterator[tuple[Path, str]]:
    """The yarn that a project has among its own files; never one elsewhere."""
    found = _yarn_path.search(text_of(folder / ".yarnrc.yml")) if name == "yarn" else None
    path = (folder / found[1]).resolve() if found else folder
    if path.is_file() and path.is_relative_to(site.project.root):
        yield path, ".yarnrc.yml names it"


def _is_corepack(path: Path) -> bool:
    return "corepack" in path.resolve().parts


def _cached(name: str) -> dict[str, Path]:
    """By version: what corepack has downloaded."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "node" / "corepack"
    home = Path(os.environ.get("COREPACK_HOME") or cache)
    return {path.parent.name: path for path in sorted(home.glob(f"v*/{name}/*/.corepack"))}


def _bin_of(record: Path, name: str) -> Path | None:
    """The program in a download of corepack, as its record names it; never outside of it."""
    named = _json(record).get("bin")
    path = (record.parent / str(named.get(name) if isinstance(named, Mapping) else f"{name}.js")).resolve()
    is_own = path.is_relative_to(record.parent.resolve())
    return path if is_own and path.suffix in SCRIPTS and path.is_file() else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d{1,9}", version)[:3])


def _json(path: Path) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(text_of(path, 1_000_000))
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}
