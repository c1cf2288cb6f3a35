"""Limits that checks set on an output, written into its schema: so an agent knows them before it submits.

Pure, and only for showing: the output is judged by the checks themselves (judgement.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from handrail.domain.checks.finding import BLOCKING
from handrail.domain.definition.model import Check, Prompt
from handrail.domain.errors import Invalid

NAMES: Final = re.compile(r"(?:[^.\[\]]+(?:\.[^.\[\]]+)*)?")
"""A path of names only, or none: a limit on one item of a list can't be written into its schema."""
SIZES: Final = {"array": ("minItems", "maxItems"), "object": ("minProperties", "maxProperties")}
OF_TEXT: Final = ("minLength", "maxLength")
STRICTER: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **{low: max for low, _ in (*SIZES.values(), OF_TEXT)},
    **{high: min for _, high in (*SIZES.values(), OF_TEXT)},
}


def with_limits(work: Prompt, fill: Callable[[Any], Any]) -> Mapping[str, Any] | None:
    """The output schema with the limits of those checks that always apply and would refuse an output.

    `fill` fills in templates; a check that needs the output itself raises Invalid, and is left out."""
    schema = work.output
    for check in work.checks:
        if check.when is None and check.severity in BLOCKING[work.bar] and check.rule in _LIMITS:
            schema = _limited(schema, check, fill)
    return schema


def _limited(schema: Mapping[str, Any] | None, check: Check, fill: Callable[[Any], Any]) -> Mapping[str, Any] | None:
    of = str(check.parameters.get("of", ""))
    if not NAMES.fullmatch(of):
        return schema
    try:
        parameters = fill(check.parameters)
    except Invalid:
        return schema
    path = list(filter(None, of.split(".")))
    return _at(schema or {}, path, lambda part: _joined(part, _LIMITS[check.rule](parameters, part))) or schema


def _at(
    schema: Mapping[str, Any], path: Sequence[str], change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The schema with the part at a path changed; a part that a check reads is required."""
    if not path:
        return change(schema)
    properties = schema.get("properties", {})
    part = properties.get(path[0], {}) if isinstance(properties, Mapping) else None
    if not isinstance(part, Mapping):
        return schema
    changed = _at(part, path[1:], change)
    if changed == part:
        return schema
    required = [*schema.get("required", ())]
    required += [] if path[0] in required else [path[0]]
    return {**schema, "required": required, "properties": {**properties, path[0]: changed}}


def _joined(schema: Mapping[str, Any], limits: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with further limits: of two that exclude each other the stricter, else both."""
    joined = dict(schema)
    for key, value in limits.items():
        if key not in joined or joined[key] == value:
            joined[key] = value
        elif key in STRICTER:
            joined[key] = STRICTER[key](joined[key], value)
        else:
            joined["allOf"] = [*joined.get("allOf", ()), {key: value}]
    return joined


def _length(parameters: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    types = schema.get("type")
    low, high = SIZES.get(types, OF_TEXT) if isinstance(types, str) else OF_TEXT
    given = {low: parameters.get("min"), high: parameters.get("max")}
    return {
        key: value for key, value in given.items() if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _matches(parameters: Mapping[str, Any], _schema: Mapping[str, Any]) -> Mapping[str, Any]:
    pattern, flags = parameters.get("pattern"), parameters.get("flags", "")
    if not isinstance(pattern, str):
        return {}
    return {"matches": f"/{pattern}/{flags}"} if flags else {"pattern": pattern}  # a schema's patterns have no flags


def _equals(parameters: Mapping[str, Any], _schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"const": parameters["value"]} if "value" in parameters else {}


_LIMITS: Final[Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]]] = {
    "length": _length,
    "matches": _matches,
    "equals": _equals,
}
"""The rules whose limits can be shown, and how."""
