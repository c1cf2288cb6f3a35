"""Signatures: which parameters the function of a rule takes, as JSON Schemas and as a shape for their values.

Reads type hints; calls nothing."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, get_type_hints

import msgspec
from msgspec import Struct

PLAIN_KINDS: Final = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})
TAKEN: Final = frozenset({"message", "of", "rule", "severity", "timeout", "when"})
"""What every check can say beside its rule's own parameters."""


class Signature(Struct, frozen=True, kw_only=True):
    """What the function of a rule wants beside its context."""

    shape: type[Struct]
    context: str
    """The name of the parameter that gets the context; empty if there is none."""
    schemas: Mapping[str, Any]
    """By name: the JSON Schema of a parameter."""
    required: tuple[str, ...]

    def arguments(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters as the function's types; a ValueError for those that don't fit."""
        found = msgspec.convert(parameters, self.shape)
        return {name: getattr(found, name) for name in self.shape.__struct_fields__}


def signature_of(function: Callable[..., Any], context: type) -> Signature:
    """What a function wants, if one of its parameters may be a context; TypeError for one that no check could call."""
    hints = get_type_hints(function, include_extras=True)
    every = inspect.signature(function).parameters.values()
    named = next((one.name for one in every if hints.get(one.name) is context), "")
    wanted = [one for one in every if one.name != named]
    for one in wanted:
        _require_plain(function.__qualname__, one, hints)
    shape = msgspec.defstruct("Parameters", list(_fields(wanted, hints)), kw_only=True, forbid_unknown_fields=True)
    return Signature(
        shape=shape,
        context=named,
        schemas=_schemas(function.__qualname__, shape, wanted),
        required=tuple(one.name for one in wanted if one.default is inspect.Parameter.empty),
    )


def _require_plain(name: str, one: inspect.Parameter, hints: Mapping[str, Any]) -> None:
    if one.kind not in PLAIN_KINDS:
        raise TypeError(f"{name}: the parameter `{one.name}` can't be named by a check; write plain parameters")
    if one.name not in hints:
        raise TypeError(f"{name}: the parameter `{one.name}` has no type; write `{one.name}: str` or the like")
    if one.name in TAKEN:
        raise TypeError(f"{name}: every check has its own `{one.name}`; give the parameter another name")


def _fields(
    wanted: list[inspect.Parameter], hints: Mapping[str, Any]
) -> Iterator[tuple[str, type] | tuple[str, type, Any]]:
    for one in wanted:
        if one.default is inspect.Parameter.empty:
            yield one.name, hints[one.name]
        elif isinstance(one.default, list | dict | set):
            yield (
                one.name,
                hints[one.name],
                msgspec.field(default_factory=partial(copy.deepcopy, copy.deepcopy(one.default))),
            )
        else:
            yield one.name, hints[one.name], one.default


def _schemas(name: str, shape: type[Struct], wanted: list[inspect.Parameter]) -> Mapping[str, Any]:
    try:
        (_,), parts = msgspec.json.schema_components([shape], ref_template="{name}")
    except TypeError as error:
        raise TypeError(f"{name}: {error}; use types that JSON has") from error
    if len(parts) > 1:
        # A check's parameters are one flat table: what refers to other parts has no place in it.
        raise TypeError(f"{name}: use str, int, float, bool, Literal, list and dict; no classes")
    schemas: dict[str, Any] = parts[shape.__name__]["properties"]
    for one in wanted:
        if isinstance(one.default, list | dict):
            schemas[one.name]["default"] = copy.deepcopy(one.default)
    return schemas
