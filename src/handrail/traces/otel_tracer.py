"""The tracer that a collector hears of: our spans, by the OpenTelemetry SDK, and those that the MCP SDK makes.

Imports the SDK (60 ms of CPU), so it is imported only when an address is set. A span of a run is made when
it is over, from what the journal says, with ids computed from it: so a restart or another node goes on with the same
trace. Only the call of a tool has a span while it lasts, since what is called goes below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Final

from opentelemetry import trace as api
from opentelemetry.context import Context, attach, detach
from opentelemetry.propagate import extract, inject
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from handrail.domain.definition.model import Definition
from handrail.domain.journal.event import Entry
from handrail.domain.run.state import Run, replay
from handrail.domain.tracing import names
from handrail.domain.tracing.ended_spans import RUN_KEY, EndedSpan, attempt_key, ended_spans
from handrail.domain.tracing.trace_context import carried, own_trace_id, span_id, trace_id_in
from handrail.engine.tracing.tracer import CallAbout, CallTrace

SCOPE: Final = "handrail"
NS: Final = 1_000_000

_given: ContextVar[tuple[int, int] | None] = ContextVar("handrail_given_ids", default=None)


class GivenIds(RandomIdGenerator):
    """Ids of trace and span as they were computed; random ones for spans that are not ours."""

    def generate_trace_id(self) -> int:
        """The id of a new trace."""
        given = _given.get()
        return super().generate_trace_id() if given is None else given[0]

    def generate_span_id(self) -> int:
        """The id of a span."""
        given = _given.get()
        return super().generate_span_id() if given is None else given[1]


@contextmanager
def _with_ids(trace: int, span: int) -> Iterator[None]:
    token = _given.set((trace, span))
    try:
        yield
    finally:
        _given.reset(token)


class OtelTracer:
    """Makes spans."""

    def __init__(self, provider: TracerProvider, version: str) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer(SCOPE, version)

    def trace_id(self, run: Run) -> str:
        """The trace of the run's caller, or the run's own."""
        return trace_id_in(run.trace) or own_trace_id(run.id, run.started)

    def appended(self, before: Run, entries: Sequence[Entry], definition: Definition) -> None:
        """Make the spans that have ended."""
        if ended := ended_spans(before, entries, definition):
            run = before if before.n else replay(entries, before)  # only then it knows its trace
            for one in ended:
                self._make(run, one)

    def calling(self, run: Run, about: CallAbout) -> CallTrace:
        """A span for a call, below that of its attempt."""
        parent = self._below(run, attempt_key(about.path, about.attempt, is_undo=about.is_undo))
        attributes = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL: about.tool,
            names.TOOL_CALL: about.key,
            names.RUN: run.id,
            names.STEP: about.path,
        }
        span = self._tracer.start_span(names.tool_span(about.tool), parent, SpanKind.INTERNAL, attributes)
        return LiveCall(span, parent)

    def _make(self, run: Run, ended: EndedSpan) -> None:
        trace = self.trace_id(run)
        parent = self._below(run, ended.parent) if ended.parent else extract(carried(run.trace), Context())
        with _with_ids(int(trace, 16), span_id(trace, run.id, ended.key)):
            span = self._tracer.start_span(
                ended.name, parent, SpanKind.INTERNAL, ended.attributes, start_time=round(ended.start * NS)
            )
        if ended.error:
            _fail(span, ended.error)
        span.end(round(ended.end * NS))

    def _below(self, run: Run, key: str) -> Context:
        """The context of spans below one of the run's."""
        trace = self.trace_id(run)
        remote = extract(carried(run.trace), Context())
        caller = api.get_current_span(remote).get_span_context()
        is_sampled = caller.trace_flags.sampled if caller.is_valid else self._is_wanted(int(trace, 16))
        above = SpanContext(
            int(trace, 16),
            span_id(trace, run.id, key),
            is_remote=True,
            trace_flags=TraceFlags(TraceFlags.SAMPLED if is_sampled else TraceFlags.DEFAULT),
            trace_state=caller.trace_state,
        )
        return api.set_span_in_context(NonRecordingSpan(above), remote)

    def _is_wanted(self, trace: int) -> bool:
        """Whether the spans of a trace of our own are wanted, as the sampler of the run's span decides it, too."""
        return self._provider.sampler.should_sample(None, trace, RUN_KEY).decision is Decision.RECORD_AND_SAMPLE


class LiveCall:
    """The span of a call: the present one while the call lasts."""

    def __init__(self, span: api.Span, parent: Context) -> None:
        self._span = span
        self._context = api.set_span_in_context(span, parent)
        self._token: Token[Context] | None = None
        self.context: Mapping[str, str] = _injected(self._context)

    def note(self, error: str) -> None:
        """How it failed."""
        if error:
            _fail(self._span, error)

    def __enter__(self) -> CallTrace:
        self._token = attach(self._context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            detach(self._token)
        if kind is not None:
            _fail(self._span, kind.__qualname__)
        self._span.end()


def _fail(span: api.Span | Span, error: str) -> None:
    span.set_attribute(names.ERROR, error)
    span.set_status(Status(StatusCode.ERROR))


def _injected(context: Context) -> dict[str, str]:
    found: dict[str, str] = {}
    inject(found, context)
    return found
