"""The structure of a workflow: which keys and values it may have, defined by the shipped JSON Schema.

Applies the schema, and checks the schemas of authors inside the document. domain/analysis/ checks the meaning of a
definition; structure_words.py writes the messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from jsonschema_rs import Validator
from msgspec import Struct

from handrail.domain.checks.finding import Finding, Flaw, Path, Severity
from handrail.domain.json import Json
from handrail.library.documents.document import FINDINGS_MAX, Document, finding_of
from handrail.library.documents.document_tree import shown
from handrail.library.schemas.author_schema import check_against, check_schema, compiled, mismatches
from handrail.library.schemas.crowded import CrowdedKeys
from handrail.library.schemas.schema_words import without_noise
from handrail.library.schemas.structure_words import StructureMessages

__all__ = ["check_against", "check_structure", "placed", "schema_text", "structure_flaws"]

SCHEMA_FILE: Final = "workflow.schema.json"


class _Rules(Struct, frozen=True):
    """The schema of workflows, compiled, with its messages."""

    schema: Mapping[str, Any]
    validator: Validator
    words: StructureMessages


def schema_text() -> str:
    """The JSON Schema of workflows, as it is shipped."""
    return files("handrail.library").joinpath(SCHEMA_FILE).read_text("utf-8")


def check_structure(document: Document, *, merged: bool = False) -> list[Finding]:
    """All errors in a document's structure, in the order of its text.

    `merged` says that `extends` has been resolved: then every step must be whole."""
    return placed(structure_flaws(document, merged=merged), document)


def structure_flaws(document: Document, *, merged: bool = False) -> list[Flaw]:
    """The same, with paths instead of positions in the text."""
    return sorted(without_noise(_flaws(document.value, _rules(merged=merged))), key=_path_order)


def placed(flaws: Sequence[Flaw], document: Document) -> list[Finding]:
    """Flaws of a document's structure as findings, in the order of its text, up to a limit."""
    findings = sorted((finding_of(flaw, document) for flaw in flaws), key=_text_order)
    return findings if len(findings) <= FINDINGS_MAX else [*findings[:FINDINGS_MAX], _more(findings)]


def _flaws(value: Json, rules: _Rules) -> Iterator[Flaw]:
    crowded = CrowdedKeys(rules.schema["definitions"])
    value = crowded.looked_at(value)
    yield from crowded.flaws()
    try:
        found = mismatches(rules.validator, value, rules.schema)
    except ValueError as error:  # not JSON, or deeper than any document that was read
        yield _flaw(f"the document can't be checked: {shown(str(error))}", "write plain JSON")
        return
    for mismatch in found:
        yield from rules.words.flaws(mismatch)
    for path, schema in _author_schemas(value):
        yield from check_schema(schema, path=path)  # what the meta-schema can't check: references, patterns


def _author_schemas(value: Json) -> Iterator[tuple[Path, Json]]:
    """The JSON Schemas of inputs and of step outputs, wherever the structure is valid enough to find them."""
    if isinstance(value, dict):
        inputs = value.get("inputs")
        for name, schema in inputs.items() if isinstance(inputs, dict) else ():
            yield ("inputs", name), schema
        yield from _output_schemas(value.get("steps"), ("steps",))


def _output_schemas(steps: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    for index, step in enumerate(steps) if isinstance(steps, list) else ():
        if isinstance(step, dict):
            if isinstance(step.get("output"), dict):
                yield (*path, index, "output"), step["output"]
            yield from _output_schemas(step.get("steps"), (*path, index, "steps"))


@lru_cache(maxsize=2)
def _rules(*, merged: bool) -> _Rules:
    schema = json.loads(schema_text())
    if merged:
        del schema["properties"]["extends"]
        schema = {key: part for key, part in schema.items() if key not in ("if", "then")}
        schema["allOf"] = [schema.pop("else")]
    return _Rules(schema, compiled(schema), StructureMessages(schema))


def _path_order(flaw: Flaw) -> list[tuple[bool, int, str]]:
    return [(True, 0, part) if isinstance(part, str) else (False, part, "") for part in flaw.path]


def _text_order(finding: Finding) -> tuple[str, int, int]:
    return (finding.at.file, finding.at.line, finding.at.column) if finding.at else ("", 0, 0)


def _more(findings: Sequence[Finding]) -> Finding:
    last = findings[FINDINGS_MAX]
    message = f"no more errors are listed, of {len(findings)} or more"
    return Finding(
        rule="size", severity=Severity.CRITICAL, where=last.where, message=message, fix="fix these first", at=last.at
    )


def _flaw(message: str, fix: str) -> Flaw:
    return Flaw(rule="type", severity=Severity.CRITICAL, path=(), message=message, fix=fix)
