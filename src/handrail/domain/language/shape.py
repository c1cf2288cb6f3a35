"""Shapes: what is known at load about the type of a value, so that type errors are found before anything runs.

Pure. A shape says less than a JSON Schema and never validates a value; that is done where values come in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.json import Json, json_type

DEPTH_MAX: Final = 24
SCHEMAS_MAX: Final = 5_000

_JSON_TYPES: Final = {
    "null": "null",
    "boolean": "boolean",
    "integer": "number",
    "number": "number",
    "string": "string",
    "array": "array",
    "object": "object",
}
_FIELDS_ELSEWHERE: Final = frozenset({"patternProperties", "if", "then", "else", "dependencies"})


class Shape(Struct, frozen=True):
    """What is known about a value; by default nothing."""

    types: frozenset[str] = frozenset()
    """JSON types it can have: null boolean number string array object; empty means anything."""
    fields: Mapping[str, Shape] = {}
    is_open: bool = True
    """Whether an object may have fields other than these."""
    items: Shape | None = None

    def admits(self, *types: str) -> bool:
        """Whether the value can be of one of these types."""
        return not self.types or not self.types.isdisjoint(types)


ANY: Final = Shape()
NULL: Final = Shape(types=frozenset({"null"}))
BOOLEAN: Final = Shape(types=frozenset({"boolean"}))
NUMBER: Final = Shape(types=frozenset({"number"}))
STRING: Final = Shape(types=frozenset({"string"}))


def object_shape(fields: Mapping[str, Shape], *, is_open: bool = False) -> Shape:
    """An object with these fields, and no others unless it is open."""
    return Shape(types=frozenset({"object"}), fields=fields, is_open=is_open)


def array_shape(items: Shape | None = None) -> Shape:
    """A list whose items have this shape, if it is known."""
    return Shape(types=frozenset({"array"}), items=items)


def shape_of(schema: Json) -> Shape:
    """The shape of a JSON Schema (Draft 7); unusual, remote and very deep parts are unknown."""
    return _SchemaReader().shape(schema, DEPTH_MAX)


def either(*shapes: Shape) -> Shape:
    """The value is of one of these shapes."""
    if not all(shape.types for shape in shapes):
        return ANY
    objects = [shape for shape in shapes if "object" in shape.types]
    arrays = [shape.items or ANY for shape in shapes if "array" in shape.types]
    return Shape(
        types=frozenset().union(*(shape.types for shape in shapes)),
        fields=_joined(objects, either),
        is_open=not objects or any(shape.is_open for shape in objects),
        items=either(*arrays) if arrays else None,
    )


def both(*shapes: Shape) -> Shape:
    """The value is of all these shapes at once."""
    known = [shape.types for shape in shapes if shape.types]
    return Shape(
        types=frozenset.intersection(*known) or known[0] if known else frozenset(),
        fields=_joined(shapes, both),
        is_open=all(shape.is_open for shape in shapes),
        items=next((shape.items for shape in shapes if shape.items), None),
    )


def without_null(shape: Shape) -> Shape:
    """The shape once null has been replaced by something else."""
    types = shape.types - {"null"}
    return replace(shape, types=types) if types else ANY


class _SchemaReader:
    """Reads one schema. Shared parts are read each time they occur, so the total is limited."""

    def __init__(self) -> None:
        self.schemas_left = SCHEMAS_MAX

    def shape(self, schema: Json, depth: int) -> Shape:
        self.schemas_left -= 1
        if not isinstance(schema, Mapping) or "$ref" in schema or depth == 0 or self.schemas_left < 0:
            return ANY
        items = schema.get("items")
        own = Shape(
            types=_types(schema),
            fields=self.fields(schema, depth),
            is_open=_is_open(schema),
            items=self.shape(items, depth - 1) if isinstance(items, Mapping) else None,
        )
        for word, combined in (("allOf", both), ("anyOf", either), ("oneOf", either)):
            if parts := [self.shape(part, depth - 1) for part in _listed(schema.get(word))]:
                own = both(own, combined(*parts))
        # These keywords declare fields in ways that a shape does not follow, so any name may be valid.
        return own if _FIELDS_ELSEWHERE.isdisjoint(schema) else replace(own, is_open=True)

    def fields(self, schema: Mapping[str, Json], depth: int) -> dict[str, Shape]:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return {}
        return {str(name): self.shape(part, depth - 1) for name, part in properties.items()}


def _types(schema: Mapping[str, Json]) -> frozenset[str]:
    written = schema.get("type")
    if written is not None:
        words = [written] if isinstance(written, str) else _listed(written)
        return frozenset(_JSON_TYPES[word] for word in words if isinstance(word, str) and word in _JSON_TYPES)
    return frozenset(map(json_type, [schema["const"]] if "const" in schema else _listed(schema.get("enum"))))


def _listed(value: Json) -> Sequence[Json]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _is_open(schema: Mapping[str, Json]) -> bool:
    # JSON Schema leaves objects open by default. Authors who list properties mean only these, and a misspelt name
    # should be found at load; additionalProperties says otherwise.
    more = schema.get("additionalProperties", False)
    return not isinstance(schema.get("properties"), Mapping) or more is True or isinstance(more, Mapping)


def _joined(shapes: Iterable[Shape], combine: Callable[..., Shape]) -> dict[str, Shape]:
    found: dict[str, list[Shape]] = {}
    for shape in shapes:
        for name, field in shape.fields.items():
            found.setdefault(name, []).append(field)
    return {name: combine(*fields) for name, fields in found.items()}
