"""Answers about plans and workflows. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handrail.domain.checks.finding import Finding
from handrail.engine.reading.run_lines import RunLine
from handrail.engine.reading.step_view import Shown
from handrail.interfaces.http.contract.given.runs import Graph


class PlanSummary(Shown, frozen=True):
    """A plan in a list."""

    id: str
    name: str
    version: int
    steps: int
    saved: str
    retired: str = ""


class PlanPage(Shown, frozen=True):
    """A page of plans."""

    plans: tuple[PlanSummary, ...] = ()
    total: int = 0
    cursor: str = ""


class PlanVersionView(Shown, frozen=True):
    """One version of a plan."""

    number: int
    hash: str
    saved: str
    by: str
    note: str = ""
    steps: int = 0


class PlanView(Shown, frozen=True):
    """A plan, with the text of one version."""

    id: str
    version: int
    versions: tuple[PlanVersionView, ...]
    definition: Mapping[str, Any]
    waves: tuple[tuple[str, ...], ...] = ()
    retired: str = ""
    receipt: str = ""


class SavedPlan(Shown, frozen=True):
    """A plan that was saved."""

    plan: str
    version: int
    hash: str
    receipt: str
    waves: tuple[tuple[str, ...], ...] = ()
    findings: tuple[Finding, ...] = ()
    repeated: bool = False


class Checked(Shown, frozen=True):
    """The findings on a definition or an output."""

    valid: bool
    findings: tuple[Finding, ...] = ()
    waves: tuple[tuple[str, ...], ...] = ()


class WorkflowSummary(Shown, frozen=True):
    """A workflow in a list."""

    id: str
    name: str
    steps: int
    version: str = ""
    description: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    source: str = ""
    shadows: tuple[str, ...] = ()
    runs: int = 0
    ended: int = 0
    completed: int = 0
    """How many runs of it there were so far, how many of them have ended, and how many of those are completed."""


class BrokenFile(Shown, frozen=True):
    """A workflow file that can't be read."""

    file: str
    message: str


class LibraryPage(Shown, frozen=True):
    """A page of workflows."""

    workflows: tuple[WorkflowSummary, ...] = ()
    total: int = 0
    categories: tuple[str, ...] = ()
    broken: tuple[BrokenFile, ...] = ()
    cursor: str = ""


class WorkflowView(Shown, frozen=True):
    """A workflow: what it is for, what it takes, what it does."""

    id: str
    name: str
    version: str = ""
    description: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    license: str = ""
    source: str = ""
    file: str = ""
    preconditions: tuple[str, ...] = ()
    clarify: tuple[str, ...] = ()
    guidance: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = {}
    definition: Mapping[str, Any] = {}
    graph: Graph | None = None
    findings: tuple[Finding, ...] = ()
    """What stands in the way of running it here."""
    runs: tuple[RunLine, ...] = ()
    """The latest runs of it."""
    ended: int = 0
    completed: int = 0
    """Of all its runs: how many have ended, and how many of those are completed."""
    command: str = ""
    """How to start it on the command line."""
