"""Time, chance and trust for tests: a clock that ticks when it is read, entropy that repeats itself, a person's yes."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

from handrail.assembly.tools import trust_decisions, trust_items
from handrail.domain.trust.decision import TrustDecision
from handrail.engine.passed_in import Clock, Entropy
from handrail.engine.record_writer import RecordWriter
from handrail.settings import read_settings, real_path

START = 1_763_230_000_000


def ticking_clock(start: int = START) -> Clock:
    ticks = itertools.count(start)
    return lambda: next(ticks)


def seeded_entropy(seed: int = 0) -> Entropy:
    draws = itertools.count()

    def draw(size: int) -> bytes:
        return hashlib.shake_128(f"{seed}:{next(draws)}".encode()).digest(size)

    return draw


def record_writer(seed: int = 0) -> RecordWriter:
    return RecordWriter(ticking_clock(), seeded_entropy(seed))


def trust_project(home: Path, project: Path) -> None:
    """What a person does with `handrail trust`: the project's files count as they are now."""
    settings = read_settings({"home": str(home), "project": str(project)}, {})
    decision = TrustDecision(
        project=real_path(settings.project),
        digest=settings.trust.digest,
        by="person:ada",
        at="2026-01-01T00:00:00Z",
        items=trust_items(settings),
    )
    trust_decisions(settings).keep(decision)
