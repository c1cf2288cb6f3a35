"""Every array of an answer is there, also an empty one: one rule for all answers, and for the document about them.

What readers see leaves out empty fields (engine/reading/step_view.py). A program that reads a list must not have to
tell "nothing" from "not said", so the API puts its arrays back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec
import msgspec.inspect
from msgspec import Struct
from msgspec.structs import replace

_NO_ITEMS: Final[list[Any]] = []
"""Not the default of any field, which is the empty tuple: so it is written."""


def with_arrays(value: Any) -> Any:
    """The value with every array that it has, however deep; the same object if there is nothing to add."""
    if isinstance(value, Struct):
        return _completed(value)
    if isinstance(value, tuple | list):
        # Most arrays are of plain values, and of one kind: a look at the first is enough for those.
        return [with_arrays(one) for one in value] if value and isinstance(value[0], Struct | tuple | list) else value
    return value


def _completed(value: Struct) -> Struct:
    changes: dict[str, Any] = {}
    for name in _arrays(type(value)):
        held = getattr(value, name)
        if held == ():
            changes[name] = _NO_ITEMS
        elif (more := with_arrays(held)) is not held:
            changes[name] = more
    for name in _structs(type(value)):
        held = getattr(value, name)
        if (more := with_arrays(held)) is not held:
            changes[name] = more
    return replace(value, **changes) if changes else value


@cache
def _arrays(kind: type[Struct]) -> tuple[str, ...]:
    """The fields that are arrays."""
    return tuple(name for name, held in _fields(kind) if _is_array(held))


@cache
def _structs(kind: type[Struct]) -> tuple[str, ...]:
    """The fields that hold another value with fields, or may."""
    return tuple(name for name, held in _fields(kind) if not _is_array(held) and _may_be_struct(held))


def _fields(kind: type[Struct]) -> list[tuple[str, msgspec.inspect.Type]]:
    described = msgspec.inspect.type_info(kind)
    if not isinstance(described, msgspec.inspect.StructType):
        return []
    return [(field.name, field.type) for field in described.fields]


def _is_array(held: msgspec.inspect.Type) -> bool:
    return isinstance(held, msgspec.inspect.VarTupleType | msgspec.inspect.ListType)


def _may_be_struct(held: msgspec.inspect.Type) -> bool:
    if isinstance(held, msgspec.inspect.UnionType):
        return any(map(_may_be_struct, held.types))
    return isinstance(held, msgspec.inspect.StructType)


def requiring_arrays(components: Mapping[str, Any], answers: frozenset[str]) -> dict[str, Any]:
    """The schemas, in which those of answers require their arrays."""
    return {name: _requiring(schema) if name in answers else schema for name, schema in components.items()}


def _requiring(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    arrays = [name for name, one in properties.items() if one.get("type") == "array"]
    if not arrays:
        return schema
    known = {name: _without_default(one) if name in arrays else one for name, one in properties.items()}
    required = [name for name in properties if name in {*arrays, *schema.get("required", ())}]
    return {**schema, "properties": known, "required": required}


def _without_default(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "default"}
