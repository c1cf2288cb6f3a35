"""The rules in the pyproject.toml of a package that is not installed yet, for authors who want to try them.

Only reads that file; nothing of the package is imported."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from handrail.domain.errors import Invalid, NotFound
from handrail.rules.plugins.plugin_discovery import GROUP, RULES_MAX
from handrail.rules.plugins.plugin_rule import RuleEntry

FILE: Final = "pyproject.toml"
BYTES_MAX: Final = 1_000_000
HINT: Final = f'write [project.entry-points."{GROUP}"] with a line like: no_todo = "my_rules:no_todo"'


def rule_entries_in(folder: Path) -> Mapping[str, RuleEntry | str]:
    """Every rule that the package in a folder provides; Invalid says what its pyproject.toml lacks."""
    project = _project(folder)
    points = project.get("entry-points", {})
    offered = points.get(GROUP, {}) if isinstance(points, dict) else {}
    if not isinstance(offered, dict) or not offered:
        raise Invalid(f"{folder / FILE} provides no rules", hint=HINT)
    whole = folder.resolve()
    path = tuple(str(place) for place in (whole / "src", whole) if place.is_dir())
    package, version = str(project.get("name", whole.name)), str(project.get("version", "0"))
    return {
        name: RuleEntry(name=name, value=str(value), package=package, version=version, path=path)
        for name, value in list(offered.items())[:RULES_MAX]
    }


def _project(folder: Path) -> Mapping[str, Any]:
    file = folder / FILE
    try:
        with file.open("rb") as stream:
            data = tomllib.loads(stream.read(BYTES_MAX).decode())
    except FileNotFoundError:
        raise NotFound(f"there is no {FILE} in {folder}", hint="name the folder of a package") from None
    except (OSError, ValueError) as error:
        raise Invalid(f"{file} can't be read: {error}", hint=f"fix it; {HINT}") from error
    project = data.get("project", {})
    return project if isinstance(project, dict) else {}
