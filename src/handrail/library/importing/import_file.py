"""Converts a file of another format to YAML in ours. The caller writes it (interfaces/cli/workflow/import_.py)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from handrail.domain.checks.finding import Finding
from handrail.domain.errors import Invalid
from handrail.library.documents.document import finding_of
from handrail.library.documents.printing import yaml_text
from handrail.library.importing.importers import convert, read_any
from handrail.library.loading import load_definition, load_imported
from handrail.library.shelf.catalog import EMPTY, Catalog


class ImportedFile(Struct, frozen=True, kw_only=True):
    """A converted workflow; without text it can't be used, and the findings say why."""

    id: str = ""
    text: str = ""
    findings: tuple[Finding, ...] = ()
    kept: tuple[Finding, ...] = ()
    """What the conversion kept in another form, or left out."""


def imported_file(content: bytes, *, name: str, only: str = "", catalog: Catalog = EMPTY) -> ImportedFile | None:
    """The file as YAML in our format; None if no importer recognises it. Invalid if it can't be read."""
    document = read_any(content, name=name)
    imported = convert(document, only=only, originals=catalog.originals)
    if not imported.importer:
        failures = tuple(finding_of(flaw, document) for flaw in imported.flaws)
        return ImportedFile(findings=failures) if failures else None
    loaded = load_imported(document, imported, catalog=catalog)
    if imported.document is None or loaded.definition is None or not loaded.is_valid:
        return ImportedFile(findings=loaded.findings)
    kept = tuple(finding_of(flaw, document) for flaw in imported.flaws)
    text = _with_notes(yaml_text(imported.document.value), imported.importer, kept)
    again = load_definition(text, name=f"{name} (converted)", catalog=catalog)
    if not again.is_valid or again.hash != loaded.hash:
        raise Invalid(
            f"{name} can't be converted: its YAML does not read back as the same workflow", findings=again.findings
        )
    return ImportedFile(id=loaded.definition.id, text=text, findings=loaded.findings, kept=kept)


def _with_notes(text: str, importer: str, kept: Sequence[Finding]) -> str:
    """The YAML, with a list of the changes above it."""
    # Any line end in a message would end the comment: YAML has more of them than `\n`.
    lines = [f"#   {' '.join(f'{one.where}: {one.message}'.split())}" for one in kept]
    head = [f"# Converted by `handrail workflow import --from {importer}`.", *(["# Changed:", *lines] if lines else [])]
    return "\n".join([*head, text])
