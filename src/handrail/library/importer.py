"""The contract of an importer: it recognises workflows of another format, and converts them into ours.

Everything that the author of an importer needs is here. Which importers there are, and what happens when one of them
fails, is in importers.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.json import Json
from handrail.library.documents.document import Document

__all__ = ["Conversion", "Document", "Importer", "error", "note"]


class Conversion(Struct, frozen=True, kw_only=True):
    """A workflow of another format, converted into ours."""

    value: Json
    """The workflow as data, with the keys that an author would write in YAML."""
    flaws: Sequence[Flaw] = ()
    """What is kept in another form or left out (`note`), and what makes the workflow unusable (`error`)."""
    origins: Mapping[Path, Path] = field(default_factory=dict)
    """For parts of `value`, their path in the original: findings about them point there."""


class Importer(Protocol):
    """Knows one other format. Its name is the rule of its findings, and the NAME of `workflow import --from NAME`."""

    @property
    def name(self) -> str:
        """Lower-case letters, digits and hyphens."""

    def recognises(self, document: Document) -> bool:
        """Whether the document is a workflow of this format. Called often: look only at a few keys."""

    def convert(self, document: Document) -> Conversion:
        """The document in our format; only documents that were recognised are converted."""


def note(path: Path, message: str, fix: str = "") -> Flaw:
    """A note: something is kept in another form, or left out; the workflow can be used."""
    return Flaw(rule="", severity=Severity.MINOR, path=path, message=message, fix=fix)


def error(path: Path, message: str, fix: str = "") -> Flaw:
    """An error: something can't be converted; the workflow can't be used."""
    return Flaw(rule="", severity=Severity.CRITICAL, path=path, message=message, fix=fix)
