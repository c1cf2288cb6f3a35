"""Signatures: what a Python function wants to be called with, as a JSON Schema and as a shape for its arguments.

Reads type hints; calls nothing."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final, get_type_hints

import msgspec
from msgspec import Struct

from handrail.engine.tool import Progress

PLAIN_KINDS: Final = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a function may know of the call that it is in: a parameter `context: ToolContext` gets it."""

    key: str
    """The idempotency key: the same over all attempts and restarts."""
    run: str
    step: str
    attempt: int
    deferred: int
    """How often the tool has asked to be called again later."""
    progress: Progress
    """Say in a few words that the work goes on; the timeout starts anew."""


class Signature(Struct, frozen=True, kw_only=True):
    """What a function wants."""

    shape: type[Struct]
    names: frozenset[str]
    context: str
    """The name of the parameter that gets the context; empty if there is none."""

    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments."""
        (found,), parts = msgspec.json.schema_components([self.shape], ref_template="#/definitions/{name}")
        top = parts.pop(str(found["$ref"]).rpartition("/")[2])
        top.pop("title", None)
        return {**top, "definitions": parts} if parts else top

    def arguments(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function's types; a ValueError for those that don't fit."""
        chosen = {name: value for name, value in args.items() if name in self.names}
        found = msgspec.convert(chosen, self.shape)
        return {name: getattr(found, name) for name in self.shape.__struct_fields__}


def signature_of(function: Callable[..., Any], *, besides: Collection[str] = ()) -> Signature:
    """What a function wants, leaving aside some parameters; TypeError for one that no plan could call."""
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    context = next((one.name for one in parameters if hints.get(one.name) is ToolContext), "")
    wanted = [one for one in parameters if one.name != context and one.name not in besides]
    fields = list(_fields(function.__qualname__, wanted, hints))
    shape = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
    return Signature(shape=shape, names=frozenset(one.name for one in wanted), context=context)


def _fields(
    name: str, wanted: Collection[inspect.Parameter], hints: Mapping[str, Any]
) -> Iterator[tuple[str, type] | tuple[str, type, Any]]:
    for one in wanted:
        if one.kind not in PLAIN_KINDS:
            raise TypeError(f"{name}: the parameter `{one.name}` can't be named by a plan; write plain parameters")
        if one.name not in hints:
            raise TypeError(f"{name}: the parameter `{one.name}` has no type; write `{one.name}: str` or the like")
        if one.default is inspect.Parameter.empty:
            yield one.name, hints[one.name]
        elif isinstance(one.default, list | dict | set):
            yield one.name, hints[one.name], msgspec.field(default_factory=partial(copy.deepcopy, one.default))
        else:
            yield one.name, hints[one.name], one.default
