"""Findings about secrets: definitions are stored, shared and displayed, so they must not contain any.

Pure. How secrets are recognised is defined in redaction.py; here every text of a definition is searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.definition.authoring import definition_data
from handrail.domain.definition.model import Definition
from handrail.domain.secrets.redaction import looks_secret


def secret_flaws(definition: Definition) -> Iterator[Flaw]:
    """Texts that look like a secret; called workflows are checked on their own."""
    for path, text in _texts(definition_data(replace(definition, pinned={})), ()):
        kind = looks_secret(text)
        if kind is not None:
            yield Flaw(
                rule="secret",
                severity=Severity.MAJOR,
                path=path,
                message=f"this looks like a secret ({kind}), and definitions are stored and shared",
                fix="write `${secret:NAME}` and store the secret under that name",
            )


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    match value:
        case str():
            yield path, value
        case Mapping():
            for key, item in value.items():
                yield from _texts(item, (*path, key))
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _texts(item, (*path, index))
        case _:
            pass
