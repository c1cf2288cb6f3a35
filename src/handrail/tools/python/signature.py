"""Signatures of Python tools: the context that a function can receive, and the JSON Schema of its arguments.

The function's parameters are read in foundation/call_signature.py."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from handrail.engine.tool import Progress
from handrail.foundation.call_signature import CallSignature, call_signature


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a function can know about its call: a parameter `context: ToolContext` receives it."""

    key: str
    """The idempotency key: the same for all attempts and restarts."""
    run: str
    step: str
    attempt: int
    deferred: int
    """How often the tool has asked to be called again later."""
    progress: Progress
    """Report progress in a few words; this restarts the timeout."""


def signature_of(function: Callable[..., Any], *, besides: Collection[str] = ()) -> CallSignature:
    """The signature of a function without the parameters `besides`; TypeError if no plan could call it."""
    return call_signature(function, shape="Arguments", context=ToolContext, caller="a plan", besides=besides)


def arguments_schema(signature: CallSignature) -> Mapping[str, Any]:
    """The JSON Schema of the arguments."""
    (found,), parts = msgspec.json.schema_components([signature.shape], ref_template="#/definitions/{name}")
    top = parts.pop(str(found["$ref"]).rpartition("/")[2])
    top.pop("title", None)
    return {**top, "definitions": parts} if parts else top
