"""Answers about runs: pages of lists, one run and its parts, comparisons, previews, and writes. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handrail.domain.definition.model import Effect
from handrail.domain.preview.values import CallAhead, ControlPreview
from handrail.domain.rehearsal.dry_run import Rehearsed
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.engine.reading.check_view import JudgedOutput
from handrail.engine.reading.past_run import AsOf
from handrail.engine.reading.run_lines import RunLine, WaitingLine
from handrail.engine.reading.run_view import ProjectView, Status
from handrail.engine.reading.step_view import Shown, StepView
from handrail.engine.reading.story_view import WhyLine
from handrail.engine.reading.time_view import TryView
from handrail.interfaces.http.contract.given.journal import EventView


class WaitingItem(WaitingLine, frozen=True, kw_only=True):
    """Something that waits for a person or an agent."""

    run: str
    workflow: str
    name: str = ""
    """The name of its definition."""
    label: str = ""
    """The input that tells the run from others of its workflow."""
    goal: str = ""
    may_answer: bool
    """Whether it waits for the person who asks."""
    project: ProjectView | None = None


class Home(Shown, frozen=True):
    """What waits for me, runs, failed, needs attention."""

    waiting_for_me: tuple[WaitingItem, ...] = ()
    waiting_for_others: tuple[WaitingItem, ...] = ()
    open: tuple[RunLine, ...] = ()
    """The newest runs that have not ended."""
    running: tuple[RunLine, ...] = ()
    """Those that move by themselves."""
    failed: tuple[RunLine, ...] = ()
    """The latest that failed, or whose undo failed."""
    ended: tuple[RunLine, ...] = ()
    """The latest that ended well or were undone."""
    counts: Mapping[str, int] = {}
    """Runs by status."""
    today: Mapping[str, int] = {}
    """Those that started in the last 24 hours."""
    attention: tuple[str, ...] = ()
    """What else needs a hand: servers that are not called, settings that are not trusted."""
    elsewhere: int = 0
    """How many things wait for me in other projects that are open in this server."""


class RunPage(Shown, frozen=True):
    """A page of a list of runs, newest first."""

    runs: tuple[RunLine, ...] = ()
    cursor: str = ""
    looked_at: int = 0
    """How many runs were looked at for this page."""


class LegalAction(Shown, frozen=True):
    """An action that is legal now, on a step or on the run."""

    action: Action
    step: str = ""


class RunView(Status, frozen=True, kw_only=True):
    """A run: its status, what is legal now, and what it is an execution of."""

    name: str = ""
    """The name of its definition."""
    label: str = ""
    """The input that tells it from other runs of its workflow."""
    definition: str = ""
    """The content hash of its definition."""
    version: str = ""
    mode: str = ""
    starter: str = ""
    actions: tuple[LegalAction, ...] = ()
    """What is legal now, and can be done here; of a run of a project that is not open here, nothing: the hint of its
    `project` says what to do. Nothing either, if the run is shown as it was."""
    inputs: Mapping[str, Any] = {}
    vars: Mapping[str, Any] = {}
    n: int = 0
    """The number of its last event."""
    why: tuple[WhyLine, ...] = ()
    """Why it is where it is."""
    waited_ms: int = 0
    """How long it waited for people who then acted."""
    as_of: AsOf | None = None
    """The event that it is shown as of, if that is not the last."""
    archived: str = ""
    """The archive that its events were read from: it can be read and forked, and nothing else."""


class RunStep(StepView, frozen=True):
    """One step of a run, with what its definition says of it."""

    tool: str = ""
    effect: Effect | None = None
    """Of its calls so far, or as its author says."""
    has_undo: bool = False
    """Whether it says how to undo it."""


class StepPage(Shown, frozen=True):
    """Steps of a run, in written order."""

    steps: tuple[RunStep, ...] = ()
    total: int = 0
    counts: Mapping[str, int] = {}
    """All its steps by status."""
    cursor: str = ""


class CheckView(Shown, frozen=True):
    """One check of a step and what it left behind."""

    rule: str
    looks_at: str = ""
    """world or words."""
    passed: bool | None = None
    severity: str = ""
    parameters: Mapping[str, Any] = {}
    evidence: Mapping[str, Any] = {}
    findings: tuple[Mapping[str, Any], ...] = ()


class UndoView(Shown, frozen=True):
    """How a step is undone: what would be done, or was."""

    call: CallAhead | None = None
    """What would be done to undo it, as far as that is known now."""
    how: str = ""
    """executed, by_agent, recorded, not_needed, none; empty: it is not undone."""
    tries: tuple[TryView, ...] = ()
    message: str = ""


class StepDetail(Shown, frozen=True):
    """One step of a run, with all that is known of it."""

    step: StepView
    tries: tuple[TryView, ...] = ()
    judged: tuple[JudgedOutput, ...] = ()
    """The outputs that were accepted or refused, each with its checks."""
    outputs: Mapping[str, Any] = {}
    """The result of each tool call that its checks refused, by the number of the event."""
    input: Any = None
    """The arguments or the prompt that it was started with, or would be."""
    output: Any = None
    checks: tuple[CheckView, ...] = ()
    undo: UndoView | None = None
    actions: tuple[LegalAction, ...] = ()
    key: str = ""
    """The idempotency key of its calls."""
    definition: Mapping[str, Any] = {}
    """As its author wrote it."""
    events: tuple[EventView, ...] = ()
    """Its latest events."""


class GraphNode(Shown, frozen=True):
    """A step in a graph."""

    id: str
    title: str
    kind: str
    status: StepStatus | None = None
    parent: str = ""
    """The loop or inlined workflow that it is in."""
    effect: Effect | None = None
    undo: bool = False
    undo_order: int = 0
    """Its place in the order of undoing, from 1; 0: it is not undone."""
    attempts: int = 0
    round: int = 0
    rounds: int = 0
    hand: str = ""
    """Who does it: agent, handrail, person, or nothing for what only holds others."""


class GraphEdge(Shown, frozen=True):
    """That one step follows another."""

    source: str
    target: str


class Graph(Shown, frozen=True):
    """The steps of a definition and their order, with their state in a run."""

    nodes: tuple[GraphNode, ...] = ()
    edges: tuple[GraphEdge, ...] = ()
    is_cut: bool = False
    mermaid: str = ""


class DefinitionView(Shown, frozen=True):
    """A definition, as a run is pinned to it or as a file says."""

    id: str
    name: str
    version: str = ""
    hash: str = ""
    definition: Mapping[str, Any] = {}
    inputs: Mapping[str, Any] = {}
    """What the run was started with."""
    newest: str = ""
    """The version in the library, if it is another."""
    differs: bool = False
    """Whether the library has another text under this name."""


class ValueDifference(Shown, frozen=True):
    """One value that differs; what is missing on a side is not there."""

    where: str
    sign: str
    """+ only in b, - only in a, ~ in both, and different."""
    a: Any = None
    b: Any = None


class ValueComparison(Shown, frozen=True):
    """What differs between two values."""

    a: str
    b: str
    differences: tuple[ValueDifference, ...] = ()
    is_cut: bool = False


class StepComparison(Shown, frozen=True):
    """One step in two runs."""

    step: str
    a: StepStatus | None = None
    b: StepStatus | None = None
    attempts_a: int = 0
    attempts_b: int = 0
    worked_a_ms: int | None = None
    worked_b_ms: int | None = None
    output_differs: bool = False


class RunComparison(Shown, frozen=True):
    """Two runs side by side."""

    a: RunLine
    b: RunLine
    same_definition: bool = False
    inputs: tuple[ValueDifference, ...] = ()
    steps: tuple[StepComparison, ...] = ()
    first_difference: str = ""
    """The first step that went another way."""


class Preview(ControlPreview, frozen=True):
    """What a control would do, and the same control elsewhere."""

    cli: str = ""
    """As a command."""
    mcp: Mapping[str, Any] = {}
    """As an MCP call."""


class DryRun(Shown, frozen=True):
    """What a run would do, in waves; nothing was started."""

    workflow: str
    waves: tuple[tuple[Rehearsed, ...], ...]


class Done(Shown, frozen=True):
    """The answer to a write: where the run is now, with the receipt."""

    run: str
    status: RunStatus
    receipt: str
    repeated: bool = False
    """Whether the same was done before: nothing was changed."""
    view: Status | None = None


class Receipt(Shown, frozen=True):
    """That something was recorded."""

    run: str
    receipt: str
