"""The JSON Schemas that authors write for inputs and outputs: checks the schemas, and values against them.

Draft 7, with patterns in linear time and without the network. schema_words.py writes the messages."""

from __future__ import annotations

import json
from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec
from jsonschema_rs import Draft7Validator, RegexOptions, ValidationError, Validator
from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.json import Json
from handrail.domain.metrics.cache_catalog import AUTHOR_SCHEMAS
from handrail.domain.suggestion import did_you_mean
from handrail.foundation.cache_use import use_of
from handrail.library.documents.document_tree import FINDINGS_MAX, shown
from handrail.library.schemas.schema_references import reference_flaws
from handrail.library.schemas.schema_words import (
    TYPE_WORDS,
    Kind,
    Mismatch,
    any_of,
    described,
    general_flaws,
    mismatch_of,
    without_noise,
)

PATTERN_BYTES_MAX: Final = 1_000_000
ERRORS_READ_MAX: Final = 2_000
_use: Final = use_of(AUTHOR_SCHEMAS)


class _CompiledSchema(Struct, frozen=True):
    """A compiled schema, or the reasons why it can't be used."""

    validator: Validator | None
    flaws: tuple[Flaw, ...]


def compiled(schema: Json) -> Validator:
    """A validator that matches patterns in linear time, stays off the network, and keeps values out of its messages."""
    options = RegexOptions(size_limit=PATTERN_BYTES_MAX)
    return Draft7Validator(schema, pattern_options=options, offline=True, mask="…")  # type: ignore[arg-type]


def mismatches(validator: Validator, value: Json, schema: Json) -> list[Mismatch]:
    """How a value does not fit a schema; raises ValueError if the value is not JSON, or too deep."""
    try:
        msgspec.json.encode(
            value
        )  # the validator recurses without a limit: a stack overflow there would kill the process
    except (RecursionError, TypeError) as error:
        raise ValueError(str(error)) from None
    return [mismatch_of(error, value, schema) for error in islice(validator.iter_errors(value), ERRORS_READ_MAX)]


def check_schema(schema: Json, *, path: Path = ()) -> list[Flaw]:
    """Why a schema can't be used."""
    flaws = _compiled(json.dumps(schema)).flaws
    return [replace(flaw, path=(*path, *flaw.path)) for flaw in flaws]


def check_against(schema: Json, value: Json, *, path: Path = ()) -> list[Flaw]:
    """How a value, which is at the path, does not fit an author's schema."""
    checked = _compiled(json.dumps(schema))
    if checked.validator is None:
        message = f"the schema can't be used: {checked.flaws[0].message}"
        return [Flaw(rule="schema", severity=Severity.CRITICAL, path=path, message=message, fix=checked.flaws[0].fix)]
    try:
        found = mismatches(checked.validator, value, schema)
    except ValueError as error:
        message = f"the value can't be checked: {shown(str(error))}"
        return [Flaw(rule="type", severity=Severity.CRITICAL, path=path, message=message, fix="give plain JSON")]
    flaws = without_noise(flaw for mismatch in found for flaw in general_flaws(mismatch))
    return [replace(flaw, path=(*path, *flaw.path)) for flaw in flaws[:FINDINGS_MAX]]


@lru_cache(maxsize=512)
def _compiled(text: str) -> _CompiledSchema:
    # Cached by text: a schema itself is not hashable.
    with _use.making():
        return _compiling(text)


_use.reads(_compiled)


def _compiling(text: str) -> _CompiledSchema:
    schema = json.loads(text)
    flaws = reference_flaws(schema, characters=len(text))
    if flaws:
        return _CompiledSchema(None, tuple(without_noise(flaws)))
    try:
        return _CompiledSchema(compiled(schema), ())
    except ValidationError as error:
        return _CompiledSchema(None, (schema_flaw(mismatch_of(error, schema, {})),))
    except ValueError as error:
        return _CompiledSchema(None, (_flaw((), f"the schema can't be used: {shown(str(error))}", "write plain JSON"),))


def schema_flaw(mismatch: Mismatch) -> Flaw:
    """What is wrong with a part of an author's schema, according to the meta-schema."""
    value = mismatch.value
    if isinstance(mismatch.kind, Kind.Format) and mismatch.kind.format == "regex":
        fix = "remove look-arounds and back-references, and repeat less"
        return _flaw(mismatch.path, f"`{shown(value)}` is not a pattern that can be used", fix)
    if isinstance(mismatch.kind, Kind.AnyOf) and mismatch.path[-1:] == ("type",):
        near = did_you_mean(value, TYPE_WORDS) if isinstance(value, str) else ""
        return _flaw(
            mismatch.path, f"{described(value)} is not a type of JSON Schema", near or f"choose {any_of([*TYPE_WORDS])}"
        )
    found = next(general_flaws(mismatch))
    if mismatch.path[-1:] == ("required",) and isinstance(value, bool):
        return _flaw(mismatch.path, found.message, "remove it: an input is required unless it has a `default`")
    return _flaw(found.path, found.message, found.fix)


def _flaw(path: Path, message: str, fix: str) -> Flaw:
    return Flaw(rule="schema", severity=Severity.CRITICAL, path=path, message=message, fix=fix)
