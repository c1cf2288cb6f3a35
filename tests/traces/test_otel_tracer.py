"""Spans as the SDK has them: ids that any process computes alike, the sampler's word, and nothing in words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import Status, StatusCode

from domain.facts import CHAIN, RUN, entries, started
from handrail.domain.journal.event import AttemptStarted, RunCompleted, StepCompleted
from handrail.domain.run.state import Run, replay
from handrail.engine.tracing.tracer import CallAbout
from handrail.traces.exporting import PlainExporter, plain
from handrail.traces.otel_tracer import GivenIds, OtelTracer

STORY = entries([started(), AttemptStarted(step="tag", attempt=1), StepCompleted(step="tag"), RunCompleted()])
CALL = CallAbout("git.tag", "tag", 1, False, "key")


class Node:
    """One process with a tracer of its own."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self.seen = InMemorySpanExporter()
        provider = TracerProvider(sampler=ParentBased(sampler), id_generator=GivenIds(), shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.seen))
        self.tracer = OtelTracer(provider, "1")

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {one.name: one for one in self.seen.get_finished_spans()}


def test_two_processes_make_one_trace_without_a_word_between_them() -> None:
    first, second = Node(), Node()
    run = replay(STORY[:2], Run(id=RUN))
    first.tracer.appended(Run(id=RUN), STORY[:2], CHAIN)
    with first.tracer.calling(replay(STORY[:1], Run(id=RUN)), CALL) as call:
        assert call.context["traceparent"].split("-")[1] == first.tracer.trace_id(run)
    second.tracer.appended(run, STORY[2:], CHAIN)
    assert set(first.spans) == {"execute_tool git.tag"}
    spans = {**first.spans, **second.spans}
    assert len({one.context.trace_id for one in spans.values()}) == 1
    parents = {name: one.parent.span_id if one.parent else None for name, one in spans.items()}
    assert parents["execute_tool git.tag"] == spans["attempt tag"].context.span_id
    assert parents["attempt tag"] == spans["step tag"].context.span_id
    assert parents["step tag"] == spans["invoke_workflow a-plan"].context.span_id
    assert parents["invoke_workflow a-plan"] is None
    assert spans["step tag"].start_time == 2_000 * 1_000_000


@pytest.mark.parametrize("part", [0.0, 1.0])
def test_the_sampler_decides_for_a_trace_as_a_whole(part: float) -> None:
    node = Node(TraceIdRatioBased(part))
    node.tracer.appended(Run(id=RUN), STORY, CHAIN)
    with node.tracer.calling(replay(STORY[:1], Run(id=RUN)), CALL) as call:
        assert call.context["traceparent"].endswith("-01" if part else "-00")
    assert len(node.spans) == (4 if part else 0)


def test_a_call_that_is_cancelled_or_fails_says_so_in_one_word() -> None:
    node = Node()
    with pytest.raises(KeyboardInterrupt), node.tracer.calling(Run(id=RUN), CALL):
        raise KeyboardInterrupt
    (span,) = node.spans.values()
    assert span.attributes is not None
    assert span.attributes["error.type"] == "KeyboardInterrupt"
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)


def test_a_span_of_another_library_loses_its_words_and_keeps_the_rest() -> None:
    seen = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(seen))
    with provider.get_tracer("mcp-python-sdk").start_as_current_span("tools/call x", attributes={"a": 1}) as span:
        span.record_exception(ValueError("hunter2"))
        span.set_status(Status(StatusCode.ERROR, "hunter2"))
    (given,) = seen.get_finished_spans()
    left = plain(given)
    assert "hunter2" not in left.to_json()
    assert (left.name, left.context, left.parent, left.attributes) == (
        given.name,
        given.context,
        given.parent,
        given.attributes,
    )
    assert left.status.status_code is StatusCode.ERROR


class Away(SpanExporter):
    """A collector that answers as it is told."""

    def __init__(self) -> None:
        self.answers = [SpanExportResult.FAILURE] * 3 + [SpanExportResult.SUCCESS] * 2 + [SpanExportResult.FAILURE]

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self.answers.pop(0)


def test_that_the_collector_is_away_is_said_once_each_time(caplog: pytest.LogCaptureFixture) -> None:
    exporter = PlainExporter(Away(), "http://here")
    with caplog.at_level("INFO", logger="handrail"):
        for _ in range(6):
            exporter.export(())
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "spans can't be sent to http",
        "spans are sent to http",
        "spans can't be sent to http",
    ]
