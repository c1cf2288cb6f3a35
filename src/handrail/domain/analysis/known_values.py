"""Validates values of which parts are not known yet, because they are templates.

Pure. Used for the arguments of tools and the parameters of rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from handrail.domain.analysis.local import SchemaCheck
from handrail.domain.checks.finding import Flaw, Path
from handrail.domain.language.template import has_templates

UNKNOWN_KEY: Final = "unknown_key"
MISSING_KEY: Final = "missing_key"
UNUSABLE_SCHEMA: Final = "schema"


def known_flaws(schema: Mapping[str, Any], value: Any, path: Path, fits: SchemaCheck) -> Iterator[Flaw]:
    """The flaws of a value by a schema, only those that no result of its templates could avoid."""
    for flaw in fits(schema, value, path):
        if flaw.rule == UNUSABLE_SCHEMA:
            continue  # the schema is another author's: the reader of this finding can't fix it
        is_about_keys = flaw.rule in {UNKNOWN_KEY, MISSING_KEY}
        if is_about_keys or not has_templates(_at(value, flaw.path[len(path) :])):
            yield flaw


def _at(value: Any, path: Sequence[str | int]) -> Any:
    """The value at a path; None where a key is missing, which is no template."""
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list | tuple) and isinstance(part, int):
            value = value[part]
    return value
