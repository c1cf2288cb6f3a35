"""Replays a whole stream into its projection rows, for audit and repair.

No I/O. A stream's name says whether it is of a run, a plan, or the store."""

from __future__ import annotations

from collections.abc import Iterable

from handrail.domain.journal.event import PLAN_PREFIX, RUN_PREFIX, Entry
from handrail.domain.journal.projection import NO_CHANGE, Change
from handrail.domain.plan import Plan, project_plan, replay_plan
from handrail.domain.project import plan_in
from handrail.domain.run.state import Run, project, replay


def change_of(stream: str, entries: Iterable[Entry]) -> Change:
    """The projection rows of a stream's events; none for streams without projections."""
    if stream.startswith(RUN_PREFIX):
        run = replay(entries, Run(id=stream))
        return project(run, run.steps) if run.n else NO_CHANGE
    if stream.startswith(PLAN_PREFIX):
        owner, plan_id = plan_in(stream)
        plan = replay_plan(entries, Plan(id=plan_id, project=owner))
        return project_plan(plan) if plan.versions else NO_CHANGE
    return NO_CHANGE
