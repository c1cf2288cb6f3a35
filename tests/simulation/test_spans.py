"""The spans of simulated days: each once, below one that there is, and the same however the events were appended."""

from __future__ import annotations

import msgspec
import pytest

from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Definition
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import Entry
from handrail.domain.run.state import Run, apply, replay
from handrail.domain.run.status import RUN_ENDED
from handrail.domain.tracing.ended_spans import RUN_KEY, ended_spans
from simulation.day import Simulation, lived


@pytest.mark.usefixtures("unmeasured")
def test_each_span_is_told_once_below_one_that_there_is() -> None:
    seen = 0
    for seed in range(60):
        simulation = Simulation(seed)
        lived(simulation)
        for stream in sorted(simulation.witness.stories):
            entries = [entry_of(one) for one in simulation.store._places if one.stream == stream]
            pinned = simulation.store._definitions[replay(entries, Run(id=stream)).definition]
            seen += holds(stream, entries, definition_from(msgspec.json.decode(pinned)))
    assert seen > 1_000


def holds(stream: str, entries: list[Entry], definition: Definition) -> int:
    spans = ended_spans(Run(id=stream), entries, definition)
    run, single = Run(id=stream), []
    for entry in entries:
        single += ended_spans(run, [entry], definition)
        run = apply(run, entry)
    assert single == spans
    keys = [span.key for span in spans]
    twice = {key for key in keys if keys.count(key) > 1}
    assert not twice, [
        (one.n, one.at, one.event) for one in entries if f":{getattr(one.event, 'step', '')}:" in f"{twice}"
    ]
    assert all(span.start <= span.end for span in spans)
    if run.status in RUN_ENDED:
        assert keys.count(RUN_KEY) == 1
        assert {span.parent for span in spans} <= {"", *keys}, stream
    return len(spans)
