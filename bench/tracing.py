"""What tracing costs a run: without a collector, and with one that is there.

    python bench/tracing.py

Both in one process, in turns; a run of instant steps, since nothing hides a cost there. Without a collector the
difference is too small to be seen in runs, so what is added to each step is also timed alone."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from handrail.assembly.opening import open_assembly
from handrail.domain.definition.authoring import definition_from
from handrail.domain.run.state import Run
from handrail.engine.tracing.tracer import NO_TRACING, CallAbout, Tracer
from handrail.settings import read_settings
from handrail.traces.otel_tracer import GivenIds, OtelTracer

STEPS = 300
ROUNDS = 3
CALLS = 200_000
PART_MOST = 0.01


class Nowhere(SpanExporter):
    """A collector that takes everything at once: what is measured is making the spans."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


async def step_us(tracer: Tracer) -> float:
    """The CPU time of a step, in a run of many."""
    definition = definition_from(
        {
            "id": "many",
            "steps": [{"id": f"s{one}", "tool": "value.set", "args": {"value": one}} for one in range(STEPS)],
        }
    )
    with TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        (Path(folder) / "project").mkdir()
        settings = read_settings({"home": str(home), "project": str(Path(folder) / "project")}, {})
        async with open_assembly(settings, picks_up=False) as parts:
            parts.writer.dispatch.tracer = tracer
            started_s = time.process_time()
            run = await parts.worker.start(definition, {}, actor="person:bench")
            await parts.worker.settled(run.id)
            return 1e6 * (time.process_time() - started_s) / STEPS


def alone_us() -> float:
    """What the facade itself adds to a step without a collector: one call of a tool, one append."""
    run = Run(id="run_bench")
    definition = definition_from({"id": "x", "steps": [{"id": "s", "tool": "value.set", "args": {"value": 1}}]})
    started_s = time.perf_counter()
    for _ in range(CALLS):
        with NO_TRACING.calling(run, CallAbout("value.set", "s", 1, False, "key")) as trace:
            trace.note("")
        NO_TRACING.appended(run, (), definition)
    return 1e6 * (time.perf_counter() - started_s) / CALLS


async def main() -> int:
    provider = TracerProvider(id_generator=GivenIds(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    tracers: dict[str, Tracer] = {"off": NO_TRACING, "off, again": NO_TRACING, "on": OtelTracer(provider, "bench")}
    found: dict[str, list[float]] = {name: [] for name in tracers}
    for _ in range(ROUNDS):
        for name, tracer in tracers.items():
            found[name].append(await step_us(tracer))
    for name, values in found.items():
        print(f"{name:12} {median(values):8.1f} us CPU a step   (from {min(values):.1f} to {max(values):.1f})")
    part = alone_us() / median(found["off"])
    is_ok = part <= PART_MOST
    print(
        f"what is added to a step without a collector, timed alone: {part:.2%} of it (at most {PART_MOST:.0%})", end=" "
    )
    print("ok" if is_ok else "missed")
    return int(not is_ok)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
