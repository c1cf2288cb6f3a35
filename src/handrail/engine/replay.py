"""Replay: a whole stream folded into its projection rows, for proof and repair.

No I/O. What a stream is, its name says: a run, a plan, or the store's own."""

from __future__ import annotations

from collections.abc import Iterable

from handrail.domain.event import PLAN_PREFIX, RUN_PREFIX, Entry
from handrail.domain.plan import Plan, project_plan, replay_plan
from handrail.domain.projection import NO_CHANGE, Change
from handrail.domain.run import Run, project, replay


def change_of(stream: str, entries: Iterable[Entry]) -> Change:
    """The projection rows that a stream's events stand for; none for streams that have no projection."""
    if stream.startswith(RUN_PREFIX):
        run = replay(entries, Run(id=stream))
        return project(run, run.steps) if run.n else NO_CHANGE
    if stream.startswith(PLAN_PREFIX):
        plan = replay_plan(entries, Plan(id=stream.removeprefix(PLAN_PREFIX)))
        return project_plan(plan) if plan.versions else NO_CHANGE
    return NO_CHANGE
