"""The trace context that the present request brought along: set where it comes in, read where a run starts.

A context variable: tasks inherit it, and two requests in one process don't mix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from handrail.domain.tracing.trace_context import trace_id_in
from handrail.foundation.log_context import logging_as

NOTHING: Final[Mapping[str, str]] = {}
_received: ContextVar[Mapping[str, str]] = ContextVar("handrail_trace_context", default=NOTHING)


@contextmanager
def receiving(context: Mapping[str, str]) -> Iterator[None]:
    """Within this block, runs start in this trace, and log lines have its id; neither, if it is empty."""
    token = _received.set(context)
    try:
        with logging_as(trace_id=trace_id_in(context)):
            yield
    finally:
        _received.reset(token)


def received() -> Mapping[str, str]:
    """What the present request brought along; empty if it brought nothing."""
    return _received.get()
