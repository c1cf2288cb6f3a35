"""Projections: rows of runs, steps and plans, for fast lists.

Values only. They are derived from events and can be rebuilt at any time, byte for byte. The functions that derive them
are `project` in domain/run/state.py and `project_plan` in domain/plan.py."""

from __future__ import annotations

from msgspec import Struct


class RunRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run at a glance, as of its event `n`."""

    id: str
    workflow: str
    definition: str
    mode: str
    status: str
    goal: str
    started: int
    updated: int
    ended: int | None
    done: int
    n: int
    head: bytes
    project: str = ""
    exceptions: int = 0
    """How many of its checks were skipped and approvals overridden by somebody."""


class RunCount(Struct, frozen=True):
    """How many runs of a project have a status."""

    project: str
    status: str
    runs: int


class StepRow(Struct, frozen=True, kw_only=True):
    """A step of a run at a glance; `due` is when its next attempt may start."""

    run: str
    path: str
    status: str
    attempts: int
    started: int | None
    ended: int | None
    due: int | None
    actor: str
    proof: str
    compensation: str
    category: str
    message: str


class PlanRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plan at a glance: its newest version and whether it has been retired. Its id is unique within its project."""

    id: str
    version: int
    definition: str
    name: str
    steps: int
    saved: int
    retired: int | None
    n: int
    head: bytes
    project: str = ""


class Change(Struct, frozen=True, kw_only=True):
    """What an append changes besides adding events, in the same transaction."""

    run: RunRow | None = None
    steps: tuple[StepRow, ...] = ()
    plan: PlanRow | None = None
    definitions: tuple[tuple[str, bytes], ...] = ()
    """Texts of definitions by content hash; written once, never changed."""


NO_CHANGE = Change()
