"""What routes give, where no other interface has it: pages of lists, and views that only the API needs.

Values only. What a run, a step and an approval look like is decided in engine/reading/."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from handrail.domain.checks.finding import Finding
from handrail.domain.definition.model import Effect
from handrail.domain.journal.chain import Break
from handrail.domain.journal.event import EffectAhead
from handrail.domain.preview.values import CallAhead, ControlPreview
from handrail.domain.project import Project
from handrail.domain.rehearsal.dry_run import Rehearsed
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.engine.reading.run_view import ProjectView, RunSummary, Status
from handrail.engine.reading.step_view import Shown, StepView
from handrail.engine.reading.time_view import TryView

# --- the whole ------------------------------------------------------------------------------------


class EventView(Shown, frozen=True):
    """One event of the journal; `run` is the name of its stream."""

    run: str
    n: int
    at: str
    kind: str
    actor: str
    hash: str
    data: Mapping[str, Any] = {}
    step: str = ""
    attempt: int = 0
    erased: bool = False
    seq: int = 0
    """Its place in the whole store, where that is known."""
    project: str = ""
    """The id of the project of its stream, in the live feed."""


class WaitingItem(Shown, frozen=True):
    """Something that waits for a person or an agent."""

    run: str
    workflow: str
    step: str
    kind: str
    text: str = ""
    since: str = ""
    expires: str = ""
    by: tuple[str, ...] = ()
    goal: str = ""
    may_answer: bool = False
    """Whether it waits for the person who asks."""
    project: ProjectView | None = None


class Home(Shown, frozen=True):
    """What waits for me, runs, failed, needs attention."""

    waiting_for_me: tuple[WaitingItem, ...] = ()
    waiting_for_others: tuple[WaitingItem, ...] = ()
    running: tuple[RunSummary, ...] = ()
    failed: tuple[RunSummary, ...] = ()
    """The latest that failed, or whose undo failed."""
    ended: tuple[RunSummary, ...] = ()
    """The latest that ended well or were undone."""
    counts: Mapping[str, int] = {}
    """Runs by status."""
    attention: tuple[str, ...] = ()
    """What else needs a hand: servers that are not called, settings that are not trusted."""


class RunPage(Shown, frozen=True):
    """A page of a list of runs, newest first."""

    runs: tuple[RunSummary, ...] = ()
    cursor: str = ""
    looked_at: int = 0
    """How many runs were looked at for this page."""


# --- a run ----------------------------------------------------------------------------------------


class LegalAction(Shown, frozen=True):
    """An action that is legal now, on a step or on the run."""

    action: Action
    step: str = ""


class RunView(Shown, frozen=True):
    """A run: its status, what is legal now, and what it is an execution of."""

    status: Status
    name: str = ""
    """The name of its definition."""
    definition: str = ""
    """The content hash of its definition."""
    version: str = ""
    mode: str = ""
    starter: str = ""
    actions: tuple[LegalAction, ...] = ()
    inputs: Mapping[str, Any] = {}
    vars: Mapping[str, Any] = {}
    n: int = 0
    """The number of its last event."""


class StepPage(Shown, frozen=True):
    """Steps of a run, in written order."""

    steps: tuple[StepView, ...] = ()
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


class Comparison(Shown, frozen=True):
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

    a: RunSummary
    b: RunSummary
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


# --- approvals ------------------------------------------------------------------------------------


class AnsweredView(Shown, frozen=True):
    """An answer that was given."""

    by: str
    answer: str
    reason: str = ""
    at: str = ""
    channel: str = ""
    n: int = 0


class ApprovalView(Shown, frozen=True):
    """What a person is asked, and whether you may answer."""

    run: str
    step: str
    workflow: str
    text: str
    digest: str
    goal: str = ""
    since: str = ""
    expires: str = ""
    by: tuple[str, ...] = ()
    approvals: int = 1
    approved_by: tuple[str, ...] = ()
    not_by: str = ""
    schema: Any = None
    """The form of the answer, if a yes or no is not enough."""
    effects: tuple[EffectAhead, ...] = ()
    """What a yes lets happen."""
    unshown: int = 0
    done: tuple[StepView, ...] = ()
    """What is done already, in a single approval."""
    may_answer: bool = False
    why_not: str = ""
    hint: str = ""
    needs_passphrase: bool = False
    project: ProjectView | None = None


class ApprovalPage(Shown, frozen=True):
    """Approvals that wait, and the latest that were answered."""

    approvals: tuple[ApprovalView, ...] = ()
    answered: tuple[EventView, ...] = ()
    cursor: str = ""


# --- plans and the library ------------------------------------------------------------------------


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


class PlanSaved(Shown, frozen=True):
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
    completed: int = 0
    """How many runs of it there were so far, and how many were completed."""


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
    runs: tuple[RunSummary, ...] = ()
    """The latest runs of it."""
    command: str = ""
    """How to start it on the command line."""


# --- tools, rules ---------------------------------------------------------------------------------


class ToolView(Shown, frozen=True):
    """A tool that plans can call."""

    name: str
    description: str
    effect: Effect
    args: Mapping[str, Any] = {}
    output: Any = None
    server: str = ""
    undo: str = ""
    idempotent: bool = False
    off: str = ""
    """Why every call of it is refused."""


class ToolFiguresView(Shown, frozen=True):
    """The calls of a tool so far."""

    tool: str
    calls: int = 0
    failures: Mapping[str, int] = {}
    retries: int = 0
    p50_ms: int | None = None
    p95_ms: int | None = None
    p99_ms: int | None = None
    max_ms: int | None = None
    last: str = ""
    is_undo: bool = False


class OutageView(Shown, frozen=True):
    """A time in which a server was not called."""

    opened: str
    reason: str
    failures: int
    openings: int = 1
    probes: int = 0
    lasted_ms: int = 0
    closed: str = ""
    until: str = ""


class ServerState(StrEnum):
    """Whether a server is called."""

    USED = "used"
    """It is called."""
    UNASKED = "unasked"
    """It has not been asked for its tools yet."""
    OPEN = "open"
    """It is not called for a while, because it failed."""
    HALF_OPEN = "half_open"
    """The next call tries it again."""
    UNTRUSTED = "untrusted"
    """It is the project's own, and nobody has trusted it."""


class ServerView(Shown, frozen=True):
    """A tool server: whether it is called, its tools, its figures and its outages."""

    server: str
    state: ServerState
    tools: tuple[str, ...] = ()
    why: str = ""
    """Why it is not called."""
    until: str = ""
    failures: int = 0
    figures: tuple[ToolFiguresView, ...] = ()
    outages: tuple[OutageView, ...] = ()


class ToolPage(Shown, frozen=True):
    """Servers first, those in trouble before the others; then tools."""

    servers: tuple[ServerView, ...] = ()
    tools: tuple[ToolView, ...] = ()
    total: int = 0
    broken: Mapping[str, str] = {}
    """Why a plugin can't be used, by its name."""
    cursor: str = ""


class RuleView(Shown, frozen=True):
    """A rule that checks can name."""

    name: str
    summary: str
    looks_at: str
    """world or words."""
    reads: str
    parameters: Mapping[str, Any] = {}
    required: tuple[str, ...] = ()
    origin: str = ""
    version: str = ""
    timeout: str = ""
    example: Mapping[str, Any] = {}


class RuleList(Shown, frozen=True):
    """The rules, and the plugins that can't be used."""

    rules: tuple[RuleView, ...] = ()
    broken: Mapping[str, str] = {}


# --- the journal ----------------------------------------------------------------------------------


class EventPage(Shown, frozen=True):
    """A page of events."""

    events: tuple[EventView, ...] = ()
    cursor: str = ""
    total: int = 0
    """How many events the run has, in the journal of a run."""
    project: ProjectView | None = None


class Verified(Shown, frozen=True):
    """Whether the journal is what was written."""

    ok: bool
    events: int
    streams: int
    checkpoints: int
    signed_events: int
    at: str
    took_ms: int = 0
    breaks: tuple[Break, ...] = ()
    first_bad: Break | None = None
    notes: tuple[str, ...] = ()


class CheckpointView(Shown, frozen=True):
    """A signed checkpoint."""

    number: int
    at: str
    events: int
    streams: int
    digest: str
    previous: str = ""
    key: str = ""
    is_restart: bool = False


class WitnessView(Shown, frozen=True):
    """How far a witness is."""

    name: str
    number: int = 0
    at: str = ""
    failed_at: str = ""
    reason: str = ""


class StreamHead(Shown, frozen=True):
    """Where a stream ends."""

    stream: str
    n: int
    hash: str


class Proof(Shown, frozen=True):
    """What vouches for the journal: checkpoints, witnesses, the key, the latest streams."""

    events: int
    key: str = ""
    checkpoints: tuple[CheckpointView, ...] = ()
    signed_events: int = 0
    witnesses: tuple[WitnessView, ...] = ()
    streams: tuple[StreamHead, ...] = ()


class CheckpointMade(Shown, frozen=True):
    """Whether a checkpoint was signed now, and the newest one."""

    new: bool
    checkpoint: CheckpointView | None = None


# --- figures, doctor, settings --------------------------------------------------------------------


class WorkflowFigures(Shown, frozen=True):
    """The runs of one workflow so far."""

    workflow: str
    runs: int = 0
    statuses: Mapping[str, int] = {}
    p50_ms: int | None = None
    p95_ms: int | None = None


class DayFigures(Shown, frozen=True):
    """The runs that started on one day, by how they are now."""

    day: str
    statuses: Mapping[str, int] = {}


class Statistics(Shown, frozen=True):
    """The figures so far, from the journal."""

    runs: int = 0
    statuses: Mapping[str, int] = {}
    workflows: tuple[WorkflowFigures, ...] = ()
    days: tuple[DayFigures, ...] = ()
    tools: tuple[ToolFiguresView, ...] = ()
    since: str = ""
    is_cut: bool = False


class DoctorFinding(Shown, frozen=True):
    """One check of this installation."""

    name: str
    level: str
    """ok, warn or fail."""
    message: str
    fix: str = ""


class DoctorReport(Shown, frozen=True):
    """Whether everything works."""

    ok: bool
    checks: tuple[DoctorFinding, ...] = ()
    at: str = ""


class SettingView(Shown, frozen=True):
    """One setting, its value, and where it comes from."""

    setting: str
    value: Any
    origin: str
    is_off: bool = False
    """Whether it does not count until a person has trusted the project."""


class SettingList(Shown, frozen=True):
    """The settings in effect."""

    settings: tuple[SettingView, ...] = ()
    trust: str = ""
    hint: str = ""


class ProjectEntry(Shown, frozen=True):
    """A project of this home."""

    id: str
    name: str
    folder: str = ""
    is_here: bool = False
    exists: bool = False
    open: int = 0
    runs: int = 0


class ProjectList(Shown, frozen=True):
    """The projects of this home."""

    projects: tuple[ProjectEntry, ...] = ()


class ClientView(Shown, frozen=True):
    """An agent, person or worker that was heard of: connected now, or last seen in the journal."""

    name: str
    kind: str
    """agent, person, worker."""
    connected: bool = False
    heard: str = ""
    client: str = ""
    """What its MCP client calls itself."""
    transport: str = ""


class ClientList(Shown, frozen=True):
    """Who takes part."""

    clients: tuple[ClientView, ...] = ()


class About(Shown, frozen=True):
    """This server: version, folders, who asks."""

    version: str
    python: str
    home: str
    project: Project
    person: str
    url: str
    started: str
    events: int = 0
    journal_bytes: int = 0
    readers: int = 0
    """How many receive the live feed."""
    channels: tuple[str, ...] = ()
    """By which ways an answer to an approval counts here."""
    needs_passphrase: bool = False
    note: str = ""


class Session(Shown, frozen=True):
    """Who asks, and how they came in."""

    person: str
    channel: str
    expires: str = ""


class Ticket(Shown, frozen=True):
    """A link that opens the console, once."""

    url: str
    seconds: int


class Ended(Shown, frozen=True):
    """That the session is over."""

    ended: bool
