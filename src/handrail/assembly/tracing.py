"""Which tracer this process has: one that tells a collector, if an address is set and the extra is installed."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from handrail.domain.errors import Invalid
from handrail.engine.tracing.tracer import NO_TRACING, Tracer
from handrail.settings import Settings
from handrail.traces.address import collector_of

log = logging.getLogger(__name__)


@asynccontextmanager
async def tracing(settings: Settings) -> AsyncIterator[Tracer]:
    """The tracer, as long as a store is open; what it has not sent by then is sent at the end."""
    try:
        collector = collector_of(settings.choices.trace_endpoint, os.environ)
    except Invalid as error:  # tracing is no reason not to work
        log.warning("nothing is traced: %s; %s", error, error.hint)
        collector = ""
    if not collector:
        yield NO_TRACING
        return
    try:
        # Imported late: the SDK takes 60 ms of CPU (measured), which only those who trace should pay.
        from handrail.traces.exporting import exporting
    except ImportError as error:
        log.warning("nothing is traced: %s is not installed; install handrail[otel]", error.name)
        yield NO_TRACING
        return
    exports = exporting(collector, version("handrail"))
    try:
        yield exports.tracer
    finally:
        await asyncio.to_thread(exports.flush)
