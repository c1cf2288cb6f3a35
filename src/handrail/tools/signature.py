"""Signatures of tools: what the Python function of a tool may know of its call, and the JSON Schema of its arguments.

Reading the function itself is foundation/call_signature.py's work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from handrail.engine.tool import Progress
from handrail.foundation.call_signature import CallSignature, call_signature


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


def signature_of(function: Callable[..., Any], *, besides: Collection[str] = ()) -> CallSignature:
    """What a function wants, leaving aside some parameters; TypeError for one that no plan could call."""
    return call_signature(function, shape="Arguments", context=ToolContext, caller="a plan", besides=besides)


def arguments_schema(signature: CallSignature) -> Mapping[str, Any]:
    """The JSON Schema of the arguments."""
    (found,), parts = msgspec.json.schema_components([signature.shape], ref_template="#/definitions/{name}")
    top = parts.pop(str(found["$ref"]).rpartition("/")[2])
    top.pop("title", None)
    return {**top, "definitions": parts} if parts else top
