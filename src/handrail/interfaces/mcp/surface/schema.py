"""The JSON Schema of arguments, in as few characters as say it: models read it in every chat.

Pure. Made from the argument values themselves, so that the two can't differ."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from handrail.interfaces.mcp.surface.arguments import Arguments

NOISE: Final = frozenset({"title", "$defs"})
BOUNDS: Final = frozenset({"maxLength", "minLength", "maxItems"})
"""Limits that nobody reaches by accident: they are enforced, but not told."""
EMPTY: Final[tuple[Any, ...]] = ("", [], (), {}, False, None)


@lru_cache(64)
def input_schema(kind: type[Arguments]) -> Mapping[str, Any]:
    """What a model is told of a tool's arguments."""
    shortened: Mapping[str, Any] = _short(strict_schema(kind))
    return shortened


@lru_cache(64)
def strict_schema(kind: type[Arguments]) -> Mapping[str, Any]:
    """The same with every limit: what arguments are held against."""
    schema = msgspec.json.schema(kind)
    known = schema.get("$defs", {})
    whole: dict[str, Any] = _inlined(schema, known)
    whole.pop("description", None)
    return whole


def _inlined(part: Any, known: Mapping[str, Any]) -> Any:
    """A schema without references and titles; defaults that only say "nothing" are left out."""
    if isinstance(part, list):
        return [_inlined(one, known) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        target = dict(known[part["$ref"].rpartition("/")[2]])
        target.pop("description", None)
        return _inlined({**target, **{key: value for key, value in part.items() if key != "$ref"}}, known)
    kept = {
        key: _properties(value, known) if key == "properties" else _inlined(value, known)
        for key, value in part.items()
        if key not in NOISE and not (key == "default" and value in EMPTY)
    }
    if all(isinstance(value, str) for value in kept.get("enum", [None])):
        kept = {"type": "string", **kept}
    return _without_null(kept)


def _properties(properties: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _inlined(schema, known) for name, schema in properties.items()}


def _without_null(part: dict[str, Any]) -> dict[str, Any]:
    """An optional value is left out rather than null."""
    choices = [one for one in part.get("anyOf", ()) if one != {"type": "null"}]
    if len(choices) == 1:
        rest = {key: value for key, value in part.items() if key != "anyOf"}
        return {**choices[0], **rest}
    return part


def _short(part: Any) -> Any:
    if isinstance(part, list):
        return [_short(one) for one in part]
    if not isinstance(part, dict):
        return part
    return {key: _short(value) for key, value in part.items() if key not in BOUNDS and key != "pattern"}
