"""The parameters of a Python function, as a struct type that its arguments are converted to.

Reads type hints and calls nothing. The JSON Schemas are made in tools/python/signature.py and
rules/plugins/signature.py."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, get_type_hints

import msgspec
from msgspec import Struct

PLAIN_KINDS: Final = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})

Field: TypeAlias = tuple[str, Any] | tuple[str, Any, Any]


class CallSignature(Struct, frozen=True, kw_only=True):
    """The parameters of a function, without its context."""

    shape: type[Struct]
    context: str
    """The name of the parameter that gets the context; empty if there is none."""
    parameters: tuple[inspect.Parameter, ...]

    @property
    def names(self) -> frozenset[str]:
        """The names of its parameters."""
        return frozenset(self.shape.__struct_fields__)

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments converted to the function's types; ValueError if they don't fit."""
        found = msgspec.convert(given, self.shape)
        return {name: getattr(found, name) for name in self.shape.__struct_fields__}


def call_signature(
    function: Callable[..., Any], *, shape: str, context: type, caller: str, besides: Collection[str] = ()
) -> CallSignature:
    """The signature of a function without its context and the parameters `besides`; TypeError if it can't be called.

    Messages about wrong arguments use the name `shape`; `caller` says who passes the arguments, such as "a plan"."""
    hints = get_type_hints(function, include_extras=True)
    every = inspect.signature(function).parameters.values()
    context_name = next((one.name for one in every if hints.get(one.name) is context), "")
    wanted = tuple(one for one in every if one.name != context_name and one.name not in besides)
    fields = list(_fields(function.__qualname__, wanted, hints, caller))
    return CallSignature(
        shape=msgspec.defstruct(shape, fields, kw_only=True, forbid_unknown_fields=True),
        context=context_name,
        parameters=wanted,
    )


def _fields(name: str, wanted: Collection[inspect.Parameter], hints: Mapping[str, Any], caller: str) -> Iterator[Field]:
    for one in wanted:
        if one.kind not in PLAIN_KINDS:
            raise TypeError(f"{name}: {caller} can't pass the parameter `{one.name}` by name; write plain parameters")
        if one.name not in hints:
            raise TypeError(f"{name}: the parameter `{one.name}` has no type; write `{one.name}: str`, for example")
        if one.default is inspect.Parameter.empty:
            yield one.name, hints[one.name]
        elif isinstance(one.default, list | dict | set):
            # Copied twice: the function may change its own default, and a call must not change the next one's.
            default = copy.deepcopy(one.default)
            yield one.name, hints[one.name], msgspec.field(default_factory=partial(copy.deepcopy, default))
        else:
            yield one.name, hints[one.name], one.default
