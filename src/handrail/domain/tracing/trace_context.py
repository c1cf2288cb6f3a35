"""The trace that a run belongs to: what its caller sent (W3C Trace Context and Baggage), and the ids of its spans.

Pure. The ids of a run's spans are computed from what the journal has, so that any process, after any restart, can add a
span to the same trace without knowing more than that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from handrail.domain.tracing.names import BAGGAGE, CARRIED, TRACEPARENT, TRACESTATE

TRACESTATE_MAX: Final = 512
BAGGAGE_MAX: Final = 8_192
ID_BITS: Final = 128
SPAN_BITS: Final = 64

_traceparent = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_newer = re.compile(r"(?!00)[0-9a-f]{2}.{53}(?:-.{0,200})?", re.DOTALL)
_printable = re.compile(r"[\x20-\x7e]+")


def carried(given: Mapping[str, Any] | None) -> dict[str, str]:
    """The trace context in `_meta`, headers or the journal; empty if there is none, or it is not valid."""
    if not given or not (parent := _parent(given.get(TRACEPARENT))):
        return {}
    found = {TRACEPARENT: parent}
    for name, length_max in ((TRACESTATE, TRACESTATE_MAX), (BAGGAGE, BAGGAGE_MAX)):
        value = given.get(name)
        if isinstance(value, str) and len(value) <= length_max and _printable.fullmatch(value):
            found[name] = value
    return found


def carried_by_headers(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """The trace context in the headers of a request, in lower case as ASGI has them."""
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name in _HEADERS}
    return carried(found) if found else found


def trace_id_in(context: Mapping[str, Any]) -> str:
    """The trace id of a context that `carried` returned or the journal has; empty if there is none."""
    parent = _parent(context.get(TRACEPARENT)) if context else ""
    return parent.split("-")[1] if parent else ""


def own_trace_id(run: str, started: int) -> str:
    """The trace id of a run whose caller sent none."""
    return sha256(f"handrail/{run}/{started}".encode()).hexdigest()[: ID_BITS // 4]


def span_id(trace: str, run: str, key: str) -> int:
    """The id of one of a run's spans, which `key` names."""
    return int.from_bytes(sha256(f"{trace}/{run}/{key}".encode()).digest()[: SPAN_BITS // 8], "big") or 1


def _parent(value: Any) -> str:
    """A traceparent as version 00 writes it: later versions only add to the end."""
    if not isinstance(value, str) or (_traceparent.fullmatch(value) is None and _newer.fullmatch(value) is None):
        return ""
    begin = value[:55]
    return f"00{begin[2:]}" if _traceparent.fullmatch(begin) is not None else ""


_HEADERS: Final = frozenset(name.encode() for name in CARRIED)
