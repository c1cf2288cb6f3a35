"""Importing: a WorkRail file as the YAML that an author would go on with. Writing it somewhere is the caller's work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from msgspec import Struct

from handrail.domain.check import Finding, Severity
from handrail.domain.errors import Invalid
from handrail.library.catalog import EMPTY, Catalog
from handrail.library.document import read_document
from handrail.library.loading import load_definition
from handrail.library.printing import yaml_text
from handrail.library.workrail.noting import RULE
from handrail.library.workrail.recognising import looks_like_workrail
from handrail.library.workrail.whole import convert

HEAD: Final = "# Converted from a WorkRail workflow by `handrail workflow import`."


class Imported(Struct, frozen=True, kw_only=True):
    """A converted workflow: its id, its text, and what is to be said of it; without a text it is not sound."""

    id: str
    text: str
    findings: tuple[Finding, ...]

    @property
    def kept(self) -> tuple[Finding, ...]:
        """What the conversion kept in another form, or left out."""
        return tuple(one for one in self.findings if one.rule == RULE and one.severity is Severity.MINOR)


def imported(text: bytes, *, name: str, catalog: Catalog = EMPTY) -> Imported | None:
    """The file as YAML of ours; None if it is no WorkRail file. Invalid if it can't be read."""
    document = read_document(text, name=name)
    if not looks_like_workrail(document.value):
        return None
    loaded = load_definition(text, name=name, catalog=catalog)
    value = cast("dict[str, Any]", convert(document).document.value)
    identity = str(value.get("id", ""))
    if not loaded.is_valid:
        return Imported(id=identity, text="", findings=loaded.findings)
    found = Imported(id=identity, text="", findings=loaded.findings)
    written = _with_notes(yaml_text(value), found.kept)
    again = load_definition(written, name=f"{name} (converted)", catalog=catalog)
    if not again.is_valid or again.hash != loaded.hash:
        raise Invalid(f"{name} does not read back as what was written", findings=again.findings)
    return Imported(id=identity, text=written, findings=loaded.findings)


def _with_notes(text: str, kept: Sequence[Finding]) -> str:
    """The YAML under a list of what is not as it was."""
    lines = [f"#   {one.where}: {one.message}" for one in kept]
    head = [HEAD, *(["# Not as it was:", *lines] if lines else [])]
    return "\n".join(" ".join(line.split()) if line.count("\n") else line for line in head) + "\n" + text
