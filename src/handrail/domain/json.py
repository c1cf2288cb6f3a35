"""JSON values: the only data in definitions, events, expressions and templates.

Pure. Also the canonical form: equal values have equal bytes and the same digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
JsonObject: TypeAlias = Mapping[str, Json]

EXACT_INTEGER_MAX: Final = 2**53 - 1

_canonical = msgspec.json.Encoder(order="sorted")


def json_type(value: Json) -> str:
    """The JSON Schema type of a value; integers are `number`, because comparisons treat them so."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case _:
            return "array"


def canonical_bytes(value: Json) -> bytes:
    """The same bytes for equal values: sorted keys, no spaces, whole floats as integers."""
    return _canonical.encode(_whole(value))


def digest(value: Json) -> str:
    """The content hash of a value, as `sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(canonical_bytes(value)).hexdigest()


def _whole(value: Json) -> Json:
    match value:
        case float() if value.is_integer() and abs(value) <= EXACT_INTEGER_MAX:
            return int(value)
        case Mapping():
            return {key: _whole(item) for key, item in value.items()}
        case list() | tuple():
            return [_whole(item) for item in value]
        case _:
            return value
