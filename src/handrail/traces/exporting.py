"""Exporting: sends spans to the collector in the background, in batches, and leaves out what must not leave.

One provider a process, since the MCP SDK finds it by a global of OpenTelemetry. Spans wait in a bounded queue; if the
collector is away, they are dropped, and the log says so once. Nothing here makes a run wait."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from opentelemetry import trace as api
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status

from handrail.foundation.address_text import without_password
from handrail.traces.otel_tracer import SCOPE, GivenIds, OtelTracer

TIMEOUT_S: Final = 5
FLUSH_S: Final = 2.0
"""How long the end of a process waits for the last spans."""
NAME: Final = "OTEL_SERVICE_NAME"
ATTRIBUTES: Final = "OTEL_RESOURCE_ATTRIBUTES"

log = logging.getLogger(__name__)

# Without a handler, its warnings would be printed to our standard error, as often as the collector is away.
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())


class PlainExporter(SpanExporter):
    """Sends spans without the words of others: those of errors may quote arguments, outputs or secrets."""

    def __init__(self, inner: SpanExporter, collector: str) -> None:
        self._inner, self._collector = inner, collector
        self._is_away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch, in the thread of the exporter."""
        result = self._inner.export([plain(span) for span in spans])
        is_away = result is not SpanExportResult.SUCCESS
        if is_away and not self._is_away:
            log.warning("spans can't be sent to %s: they are dropped until it answers", self._collector)
        elif self._is_away and not is_away:
            log.info("spans are sent to %s again", self._collector)
        self._is_away = is_away
        return result

    def shutdown(self) -> None:
        """Stop trying."""
        self._inner.shutdown()


def plain(span: ReadableSpan) -> ReadableSpan:
    """A span without what it says in words; ours have none."""
    if span.instrumentation_scope is not None and span.instrumentation_scope.name == SCOPE:
        return span
    return ReadableSpan(
        span.name,
        span.context,
        span.parent,
        span.resource,
        span.attributes,
        (),
        span.links,
        span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


class Exporting:
    """The tracer of this process, and what it has not sent yet."""

    def __init__(self, collector: str, version: str) -> None:
        self._provider = TracerProvider(
            resource=_resource(version, os.environ), id_generator=GivenIds(), shutdown_on_exit=False
        )
        exporter = PlainExporter(OTLPSpanExporter(endpoint=collector, timeout=TIMEOUT_S), without_password(collector))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self.tracer = OtelTracer(self._provider, version)
        if isinstance(api.get_tracer_provider(), api.ProxyTracerProvider):  # an application has none of its own
            api.set_tracer_provider(self._provider)

    def flush(self) -> None:
        """Send what is waiting; give up after a while. Call it in a thread."""
        # A thread of its own, which does not keep the process: sending can take longer than anyone wants to wait.
        sending = threading.Thread(target=self._provider.force_flush, daemon=True, name="handrail-last-spans")
        sending.start()
        sending.join(FLUSH_S)


@cache  # bounded: one process has one collector
def exporting(collector: str, version: str) -> Exporting:
    """What sends spans of this process to the collector."""
    return Exporting(collector, version)


def _resource(version: str, environment: Mapping[str, str]) -> Resource:
    attributes: dict[str, str | int] = {"service.version": version, "process.pid": os.getpid()}
    if not environment.get(NAME) and "service.name=" not in environment.get(ATTRIBUTES, ""):
        attributes["service.name"] = "handrail"
    return Resource.create(attributes)
