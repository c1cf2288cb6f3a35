"""Workspaces: the packages of a repository that npm, yarn, pnpm or lerna treat as one, and commands that run a script
in each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from handrail.rules.files.project import is_in
from handrail.rules.toolchain.reading import json_of
from handrail.rules.toolchain.site import Site

MEMBERS_MAX: Final = 200
FILE: Final = "package.json"
EVERYWHERE: Final = frozenset({"--workspaces", "-ws", "--ws", "-r", "--recursive", "-wr"})
CHOOSING: Final = frozenset({"-w", "--workspace", "--filter", "-F", "--scope"})
RUNNERS: Final = frozenset({"lerna", "turbo", "nx", "wsrun", "ultra"})
"""Programs that run a script in every package."""
VERBS: Final = frozenset({"run", "run-script", "run-many", "exec", "workspaces", "workspace", "foreach"})
TARGETS: Final = frozenset({"-t", "--target", "--targets"})

_listed = re.compile(r"^packages:\s*\n((?:[ \t]*(?:-[^\n]*|#[^\n]*)?\n?)*)", re.MULTILINE)
_item = re.compile(r"^[ \t]*-\s*['\"]?([^'\"#\n]{1,200}?)['\"]?\s*(?:#.*)?$", re.MULTILINE)


def package_at(site: Site, folder: str) -> Mapping[str, Any]:
    """The package.json of a folder; empty if there is none that can be read."""
    found = json_of(site.text(f"{folder}/{FILE}".lstrip("/")))
    return found if isinstance(found, Mapping) else {}


def members_of(site: Site) -> tuple[str, ...]:
    """The folders of the packages, in the order of their names."""
    patterns = [pattern.removeprefix("./").rstrip("/") for pattern in _patterns(site)]
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    unwanted = [pattern.removeprefix("!") for pattern in patterns if pattern.startswith("!")]
    folders = (name.removesuffix(f"/{FILE}") for name in site.files if name.endswith(f"/{FILE}"))
    return tuple(one for one in folders if _fits(one, wanted) and not _fits(one, unwanted))[:MEMBERS_MAX]


def _fits(folder: str, patterns: Sequence[str]) -> bool:
    """Whether a folder itself is named; not one that is in it."""
    return any(folder == one or ("*" in one and is_in(folder, [one])) for one in patterns)


def _patterns(site: Site) -> Iterator[str]:
    for table in (package_at(site, ""), json_of(site.text("lerna.json"))):
        found = table.get("workspaces", table.get("packages")) if isinstance(table, Mapping) else None
        listed = found.get("packages") if isinstance(found, Mapping) else found
        yield from (str(one) for one in listed if isinstance(one, str)) if isinstance(listed, list) else ()
    block = _listed.search(site.text("pnpm-workspace.yaml"))
    yield from _item.findall(block[1]) if block else ()


def script_everywhere(words: Sequence[str], managers: frozenset[str]) -> tuple[str, tuple[str, ...]] | None:
    """The script that a command runs in packages, and the names of those that it chooses (none: in all); None if it
    does not."""
    plain, chosen = _sorted(words)
    is_everywhere = words[:1] and (words[0] in RUNNERS or (words[0] in managers and _names_packages(words, chosen)))
    rest = [word for word in plain[1:] if word not in VERBS]
    if not is_everywhere or not rest:
        return None
    if list(words[1:2]) == ["workspace"]:
        return (rest[1], (rest[0],)) if len(rest) > 1 else None
    return {"t": "test", "tst": "test"}.get(rest[0], rest[0]), chosen


def _names_packages(words: Sequence[str], chosen: tuple[str, ...]) -> bool:
    return (
        bool(chosen) or any(word in EVERYWHERE for word in words) or list(words[1:2]) in (["workspaces"], ["workspace"])
    )


def _sorted(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The words that are no options, and the packages that options choose."""
    plain: list[str] = []
    chosen: list[str] = []
    last = ""
    for word in words:
        name, equals, value = word.partition("=")
        if last in CHOOSING:
            chosen.append(word)
        elif name in CHOOSING and equals:
            chosen.append(value)
        elif last in TARGETS or not word.startswith("-"):
            plain.append(word)
        elif name in TARGETS and equals:
            plain.append(value)
        last = word
    return plain, tuple(chosen)


def is_chosen(site: Site, folder: str, chosen: Sequence[str]) -> bool:
    """Whether a package is among those that a command names: by name, by a pattern, or by its folder."""
    if not chosen:
        return True
    name = str(package_at(site, folder).get("name", ""))
    bare = [one.strip("{}").removeprefix("./").rstrip("/.") for one in chosen]
    return _fits(folder, bare) or _fits(name, bare)
