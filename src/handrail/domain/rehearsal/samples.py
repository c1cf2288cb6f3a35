"""Samples: values that fit a JSON Schema, and variants of them that make conditions true or false.

Pure, and never complete: a sample of a schema with patterns may not fit it. No caller relies on that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final

from handrail.domain.checks.finding import Path
from handrail.domain.json import canonical_bytes
from handrail.domain.rehearsal.hints import TEXT, Absent, Size, With

EACH: Final = "*"
"""In a path: every item of a list."""
VARIANTS_MAX: Final = 16
DEPTH_MAX: Final = 8


def sample(schema: Any, *, depth: int = 0) -> Any:
    """A typical value: all properties, one item in each list."""
    if not isinstance(schema, Mapping) or depth > DEPTH_MAX:
        return TEXT
    said = [*(schema[key] for key in ("const", "default") if key in schema), *_listed(schema, "enum")]
    if said:
        return said[0]
    parts = [part for key in ("oneOf", "anyOf", "allOf") for part in _listed(schema, key)]
    if parts and "type" not in schema:
        return sample(parts[0], depth=depth + 1)
    return _of_type(kind_of(schema), schema, depth)


def kind_of(schema: Mapping[str, Any]) -> str:
    """The first type that a schema allows; empty if it does not say."""
    written = schema.get("type")
    if isinstance(written, str):
        return written
    if isinstance(written, list | tuple) and written:
        return str(written[0])
    return "object" if "properties" in schema else "array" if "items" in schema else ""


def variants(base: Any, schema: Any, tries: Mapping[Path, Sequence[Any]]) -> tuple[list[Any], bool]:
    """The value with every combination of what to try; False if there are too many to try them all."""
    known = {path: _possible(schema, path, tries[path]) for path in sorted(tries, key=len)}
    choices = {path: values for path, values in known.items() if values}
    if prod(map(len, choices.values())) <= VARIANTS_MAX:
        made = [_with(base, zip(choices, chosen, strict=True)) for chosen in product(*choices.values())]
        return _distinct(made), True
    single = [_with(base, [(path, value)]) for path, values in choices.items() for value in values]
    return _distinct([base, *_together(base, choices), *single])[: 2 * VARIANTS_MAX], False


def _together(base: Any, choices: Mapping[Path, Sequence[Any]]) -> list[Any]:
    """All values at their first, second, ... choice at once: conditions often need several small values together."""
    most = max(map(len, choices.values()))
    rows = [[values[number % len(values)] for values in choices.values()] for number in range(most)]
    return [_with(base, zip(choices, row, strict=True)) for row in rows]


def with_read(base: Any, paths: Iterable[Path]) -> Any:
    """A value without a schema, with a string at each path that is read."""
    for path in sorted(paths, key=len):
        if path and EACH not in path and not any(isinstance(key, int) for key in path):
            base = _put(base, path, TEXT)
    return base


def required_only(schema: Any, value: Any) -> Any:
    """The value without its optional properties."""
    if isinstance(schema, Mapping) and isinstance(value, Mapping) and isinstance(schema.get("properties"), Mapping):
        asked = schema.get("required", ())
        parts = schema["properties"]
        return {key: required_only(parts.get(key), one) for key, one in value.items() if key in asked}
    return value


def part_of(schema: Any, path: Path) -> Any:
    """The schema at a path; None if there is none."""
    for key in path:
        if not isinstance(schema, Mapping):
            return None
        schema = schema.get("items") if key == EACH or isinstance(key, int) else schema.get("properties", {}).get(key)
    return schema


def _of_type(kind: str, schema: Mapping[str, Any], depth: int) -> Any:
    match kind:
        case "object":
            parts = schema.get("properties")
            named = parts.items() if isinstance(parts, Mapping) else ()
            return {key: sample(part, depth=depth + 1) for key, part in named}
        case "array":
            return _items(schema, max(1, int(schema.get("minItems", 0))), depth)
        case "integer" | "number":
            return schema.get("minimum", min(1, schema.get("maximum", 1)))
        case "boolean" | "null":
            return True if kind == "boolean" else None
        case _:
            return _text(schema)


def _items(schema: Mapping[str, Any], length: int, depth: int = 0) -> list[Any]:
    item = sample(schema.get("items"), depth=depth + 1)
    if schema.get("uniqueItems") and isinstance(item, str):
        return [f"{item} {number}" for number in range(length)]
    return [item] * length


def _text(schema: Mapping[str, Any]) -> str:
    least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", 10_000))
    return (TEXT * (1 + least // len(TEXT)))[: max(least, min(most, len(TEXT)))]


def _possible(schema: Any, path: Path, tries: Iterable[Any]) -> list[Any]:
    """What to try at one place, limited to what its schema allows, including absence."""
    part, above = part_of(schema, path), part_of(schema, path[:-1])
    known = part if isinstance(part, Mapping) else {}
    is_asked = bool(path) and isinstance(above, Mapping) and path[-1] in above.get("required", ())
    wanted = list(tries)
    absent = [one for one in wanted if isinstance(one, Absent)]
    present = _listed_by(known) or [_made(known, one) for one in wanted if not isinstance(one, Absent)]
    present = [one for one in present or [sample(known)] if _may_be(known, one)]
    return _distinct([*present, *([] if is_asked else absent)])


def _listed_by(schema: Mapping[str, Any]) -> list[Any]:
    """All values of an enum or Boolean schema."""
    return [*_listed(schema, "enum")] or ([True, False] if kind_of(schema) == "boolean" else [])


def _listed(schema: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = schema.get(key)
    return value if isinstance(value, list | tuple) else ()


def _made(schema: Mapping[str, Any], wanted: Any) -> Any:
    """A value made from its description."""
    kind = kind_of(schema)
    if isinstance(wanted, Size):
        return _words(wanted.length) if kind == "string" else _items(schema, wanted.length)
    if not isinstance(wanted, With):
        return wanted
    if kind == "string":
        return f"{wanted.part} {TEXT}"
    return wanted.part if not kind and isinstance(wanted.part, str) else [wanted.part]


def _words(length: int) -> str:
    return (TEXT * (1 + length // len(TEXT)))[:length]


def _may_be(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value does not obviously violate its schema."""
    kind = kind_of(schema)
    if isinstance(value, list):
        return kind in {"", "array"} and schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1_000)
    if isinstance(value, str):
        return kind in {"", "string"}
    if isinstance(value, bool):
        return kind in {"", "boolean"}
    if isinstance(value, int | float):
        return kind in {"", "number", "integer"} and schema.get("minimum", value) <= value <= schema.get(
            "maximum", value
        )
    return True


def _with(base: Any, chosen: Iterable[tuple[Path, Any]]) -> Any:
    for path, value in chosen:
        base = _put(base, path, value)
    return base


def _put(base: Any, path: Path, value: Any) -> Any:
    """The value with another one at a path; missing objects on the way are created."""
    if not path:
        return None if isinstance(value, Absent) else value
    key, rest = path[0], path[1:]
    if key == EACH or isinstance(key, int):
        return [_put(one, rest, value) for one in base] if isinstance(base, list) else base
    known = dict(base) if isinstance(base, Mapping) else {}
    before = known.pop(key, None)
    is_left_out = isinstance(value, Absent) and not rest
    return known if is_left_out else {**known, key: _put(before, rest, value)}


def _distinct(values: Iterable[Any]) -> list[Any]:
    known: dict[Any, Any] = {}
    for value in values:
        known.setdefault(value if isinstance(value, Absent) else canonical_bytes(value), value)
    return list(known.values())
