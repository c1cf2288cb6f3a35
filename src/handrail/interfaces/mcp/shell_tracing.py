"""The trace of a request: the span that the SDK makes for it, with names from the catalogue, and its context for runs.

Part of the shell. The SDK makes a span for each request by itself (a real one only if spans are exported), below the
context in `_meta`; what it leaves out is here: the context of HTTP headers, baggage, and bounded names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import mcp_types as mt
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from opentelemetry.context import Context, attach, detach
from opentelemetry.propagate import extract, inject
from opentelemetry.trace import Span, get_current_span

from handrail.domain.journal.event import RUN_PREFIX
from handrail.domain.tracing import names
from handrail.domain.tracing.trace_context import carried
from handrail.engine.tracing.received import received, receiving

RUN_LENGTH_MAX: Final = 40
NAMED: Final = {"tools/call": names.TOOL, "prompts/get": names.PROMPT}


async def below_headers(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Around the SDK's span: it goes below what the headers say, unless `_meta` says something."""
    context = received()
    if not context or carried(ctx.meta):
        return await call_next(ctx)
    token = attach(extract(context, Context()))
    try:
        return await call_next(ctx)
    finally:
        detach(token)


class RequestTracing:
    """Inside the SDK's span: runs that start here are in its trace, and log lines have its id."""

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = frozenset(tools)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Handle one request."""
        span = get_current_span()
        if not span.get_span_context().is_valid:
            return await call_next(ctx)
        if span.is_recording():
            self._describe(span, ctx)
        context: dict[str, str] = {}
        inject(context)
        # The SDK drops it on the way from `_meta` to its span.
        baggage = (carried(ctx.meta) or received()).get(names.BAGGAGE)
        with receiving(carried({**context, names.BAGGAGE: baggage})):
            try:
                return await call_next(ctx)
            except MCPError as error:
                if error.error.code == mt.METHOD_NOT_FOUND:
                    span.update_name(names.OTHER)
                    span.set_attribute(names.METHOD, names.OTHER)
                elif ctx.method == "prompts/get":
                    _anonymise(span, ctx.method)
                raise

    def _describe(self, span: Span, ctx: ServerRequestContext[Any, Any]) -> None:
        params = ctx.params or {}
        if ctx.method == "tools/call" and params.get("name") not in self._tools:
            _anonymise(span, ctx.method)
        arguments = params.get("arguments")
        run = arguments.get("run") if isinstance(arguments, dict) else None
        if isinstance(run, str) and run.startswith(RUN_PREFIX) and len(run) <= RUN_LENGTH_MAX:
            span.set_attribute(names.RUN, run)


def _anonymise(span: Span, method: str) -> None:
    """Take out a name that is not in any catalogue: callers could make up any number of them."""
    span.update_name(f"{method} {names.OTHER}")
    span.set_attribute(NAMED[method], names.OTHER)
