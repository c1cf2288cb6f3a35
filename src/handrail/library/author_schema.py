"""The JSON Schemas that authors write, for inputs and outputs: whether they can be used, and what they say of a value.

Draft 7, with patterns in linear time and without the network. The words for what is wrong are schema_words.py's."""

from __future__ import annotations

import json
from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec
from jsonschema_rs import Draft7Validator, RegexOptions, ValidationError, Validator
from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.check import Flaw, Path, Severity
from handrail.domain.json import Json
from handrail.domain.suggestion import did_you_mean
from handrail.library.document_tree import FINDINGS_MAX, shown
from handrail.library.schema_references import reference_flaws
from handrail.library.schema_words import (
    TYPE_WORDS,
    Clash,
    Kind,
    any_of,
    clash_of,
    described,
    plain_words,
    without_noise,
)

PATTERN_BYTES_MAX: Final = 1_000_000
ERRORS_READ_MAX: Final = 2_000


class _Fitness(Struct, frozen=True):
    """A schema as the validator has it, or why it can't be used."""

    validator: Validator | None
    flaws: tuple[Flaw, ...]


def compiled(schema: Json) -> Validator:
    """A validator that matches patterns in linear time, stays off the network, and keeps values out of its messages."""
    options = RegexOptions(size_limit=PATTERN_BYTES_MAX)
    return Draft7Validator(schema, pattern_options=options, offline=True, mask="…")  # type: ignore[arg-type]


def clashes(validator: Validator, value: Json, schema: Json) -> list[Clash]:
    """What a validator has against a value; raises ValueError for what is not JSON, or too deep."""
    try:
        msgspec.json.encode(value)  # the validator would go on until its stack ends, and the process with it
    except (RecursionError, TypeError) as error:
        raise ValueError(str(error)) from None
    return [clash_of(error, value, schema) for error in islice(validator.iter_errors(value), ERRORS_READ_MAX)]


def check_schema(schema: Json, *, path: Path = ()) -> list[Flaw]:
    """Why a schema can't be used."""
    flaws = _fitness(json.dumps(schema)).flaws
    return [replace(flaw, path=(*path, *flaw.path)) for flaw in flaws]


def check_against(schema: Json, value: Json, *, path: Path = ()) -> list[Flaw]:
    """What an author's schema has against a value, which stands at the path."""
    fitness = _fitness(json.dumps(schema))
    if fitness.validator is None:
        message = f"the schema can't be used: {fitness.flaws[0].message}"
        return [Flaw(rule="schema", severity=Severity.CRITICAL, path=path, message=message, fix=fitness.flaws[0].fix)]
    try:
        found = clashes(fitness.validator, value, schema)
    except ValueError as error:
        message = f"the value can't be checked: {shown(str(error))}"
        return [Flaw(rule="type", severity=Severity.CRITICAL, path=path, message=message, fix="give plain JSON")]
    flaws = without_noise(flaw for clash in found for flaw in plain_words(clash))
    return [replace(flaw, path=(*path, *flaw.path)) for flaw in flaws[:FINDINGS_MAX]]


@lru_cache(maxsize=512)
def _fitness(text: str) -> _Fitness:
    # The text is the key: a schema itself can't be one, and is the same schema whenever its text is.
    schema = json.loads(text)
    flaws = reference_flaws(schema, characters=len(text))
    if flaws:
        return _Fitness(None, tuple(without_noise(flaws)))
    try:
        return _Fitness(compiled(schema), ())
    except ValidationError as error:
        return _Fitness(None, (unfit_words(clash_of(error, schema, {})),))
    except ValueError as error:
        return _Fitness(None, (_flaw((), f"the schema can't be used: {shown(str(error))}", "write plain JSON"),))


def unfit_words(clash: Clash) -> Flaw:
    """What is wrong with a part of a schema, by the schema of schemas."""
    value = clash.value
    if isinstance(clash.kind, Kind.Format) and clash.kind.format == "regex":
        fix = "use no look-around and no back-reference, and repeat less"
        return _flaw(clash.path, f"`{shown(value)}` is not a pattern that can be used", fix)
    if isinstance(clash.kind, Kind.AnyOf) and clash.path[-1:] == ("type",):
        near = did_you_mean(value, TYPE_WORDS) if isinstance(value, str) else ""
        return _flaw(
            clash.path, f"{described(value)} is not a type of JSON Schema", near or f"choose {any_of([*TYPE_WORDS])}"
        )
    found = next(plain_words(clash))
    if clash.path[-1:] == ("required",) and isinstance(value, bool):
        return _flaw(clash.path, found.message, "remove it: an input is required unless it has a `default`")
    return _flaw(found.path, found.message, found.fix)


def _flaw(path: Path, message: str, fix: str) -> Flaw:
    return Flaw(rule="schema", severity=Severity.CRITICAL, path=path, message=message, fix=fix)
