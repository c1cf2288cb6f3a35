"""Signatures of rules: which parameters the function of a rule takes, and their JSON Schemas.

The function itself is read in foundation/call_signature.py."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from handrail.foundation.call_signature import CallSignature, call_signature

TAKEN: Final = frozenset({"message", "of", "rule", "severity", "timeout", "when"})
"""The keys that every check has besides its rule's own parameters."""


def signature_of(function: Callable[..., Any], context: type) -> CallSignature:
    """The signature of a rule's function, which may take a context; TypeError if no check could call it."""
    signature = call_signature(function, shape="Parameters", context=context, caller="a check")
    if taken := [one.name for one in signature.parameters if one.name in TAKEN]:
        name = function.__qualname__
        raise TypeError(f"{name}: every check has its own `{taken[0]}`; give the parameter another name")
    return signature


def required_in(signature: CallSignature) -> tuple[str, ...]:
    """The parameters without a default."""
    return tuple(one.name for one in signature.parameters if one.default is inspect.Parameter.empty)


def parameter_schemas(name: str, signature: CallSignature) -> Mapping[str, Any]:
    """The JSON Schema of each parameter by name; TypeError for types that JSON does not have."""
    shape = signature.shape
    try:
        (_,), parts = msgspec.json.schema_components([shape], ref_template="{name}")
    except TypeError as error:
        raise TypeError(f"{name}: {error}; use types that JSON has") from error
    if len(parts) > 1:
        # The parameters of a check are one flat table, with no place for schemas that refer to others.
        raise TypeError(f"{name}: use str, int, float, bool, Literal, list and dict; no classes")
    schemas: dict[str, Any] = parts[shape.__name__]["properties"]
    for one in signature.parameters:
        if isinstance(one.default, list | dict):
            schemas[one.name]["default"] = copy.deepcopy(one.default)
    return schemas
