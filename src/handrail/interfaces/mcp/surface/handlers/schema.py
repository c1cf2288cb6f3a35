"""The JSON Schema of each tool's arguments, as short as possible, because models read it in every chat.

Pure. Generated from the classes in arguments.py, so that the two can't differ."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from handrail.interfaces.mcp.surface.handlers.arguments import ToolArguments

NOISE: Final = frozenset({"title", "$defs"})
BOUNDS: Final = frozenset({"maxLength", "minLength", "maxItems"})
"""Limits that normal calls never reach: enforced, but not shown to models."""
OF_APP: Final = "x-app"
"""Marks an argument that only a page in the client's window sends: models don't see it."""
EMPTY: Final[tuple[Any, ...]] = ("", [], (), {}, False, None)


@lru_cache(64)
def input_schema(kind: type[ToolArguments]) -> Mapping[str, Any]:
    """The short schema that models see."""
    shortened: Mapping[str, Any] = _short(strict_schema(kind))
    own = {name: part for name, part in shortened["properties"].items() if OF_APP not in part}
    return {**shortened, "properties": own}


@lru_cache(64)
def app_schema(kind: type[ToolArguments]) -> Mapping[str, Any] | None:
    """The same with what a page sends; None if it sends nothing more."""
    shortened: Mapping[str, Any] = _short(strict_schema(kind))
    return shortened if shortened["properties"].keys() != input_schema(kind)["properties"].keys() else None


@lru_cache(64)
def strict_schema(kind: type[ToolArguments]) -> Mapping[str, Any]:
    """The same with every limit: arguments are checked against this one."""
    schema = msgspec.json.schema(kind)
    known = schema.get("$defs", {})
    whole: dict[str, Any] = _inlined(schema, known)
    whole.pop("description", None)
    return whole


def _inlined(part: Any, known: Mapping[str, Any]) -> Any:
    """A schema without references, titles and empty defaults. Titles are our class names: no use to a model."""
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
    """An optional value may be left out; null is not offered."""
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
