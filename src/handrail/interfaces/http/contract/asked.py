"""What routes take: the queries of reads and the bodies of writes. Values only; every text and list has a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from handrail.domain.history.subject import EventSubject
from handrail.domain.journal.mark import TEXT_LENGTH_MAX
from handrail.domain.run.status import RunStatus, StepStatus

LIMIT_MAX: Final = 500
STEPS_MAX: Final = 10_000
"""Every page of steps costs a look at the whole run: a long one is better read at once."""

Name: TypeAlias = Annotated[str, Meta(max_length=300)]
Text: TypeAlias = Annotated[str, Meta(max_length=2_000)]
LongText: TypeAlias = Annotated[str, Meta(max_length=20_000)]
Reason: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2_000, description="Why; it is recorded.")]
Cursor: TypeAlias = Annotated[
    str, Meta(max_length=500, description="The cursor of the last answer; leave it out first.")
]
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=LIMIT_MAX)]
Entry: TypeAlias = Annotated[
    int, Meta(ge=0, le=10**9, description="As it was after this event of the run; without it, as it is now.")
]
Instant: TypeAlias = Annotated[str, Meta(max_length=40, description="RFC 3339, or an age as 30m, 12h, 7d.")]
Names: TypeAlias = Annotated[tuple[Name, ...], Meta(max_length=50)]
RunStates: TypeAlias = Annotated[tuple[RunStatus, ...], Meta(max_length=50)]
StepStates: TypeAlias = Annotated[tuple[StepStatus, ...], Meta(max_length=50)]
ProjectId: TypeAlias = Annotated[
    str,
    Meta(
        max_length=300,
        description="The id of a project; without it, the project that the session was opened for, else the server's"
        " own. Lists also take `*`, for all.",
    ),
]
Values: TypeAlias = Annotated[Mapping[str, Any], Meta(max_length=500)]


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of everything that is asked: an unknown name is refused, not ignored."""


class ProjectQuery(Asked, frozen=True):
    """In which project: one that is open in this server."""

    project: ProjectId = ""


# --- runs -----------------------------------------------------------------------------------------


class HomeQuery(ProjectQuery, frozen=True):
    """Of which project; `*` for all."""


class RunsQuery(ProjectQuery, frozen=True):
    """Which runs to list, newest first."""

    state: RunStates = ()
    workflow: Name = ""
    by: Name = ""
    """Who started it: the actor, or its name."""
    q: Text = ""
    """Words in the id, the workflow or the goal."""
    since: Instant = ""
    until: Instant = ""
    limit: Limit = 50
    cursor: Cursor = ""


class StartBody(Asked, frozen=True):
    """What to start: exactly one of workflow, plan and definition."""

    workflow: Name = ""
    plan: Name = ""
    definition: Values | None = None
    inputs: Values = {}
    goal: Text = ""
    priority: Annotated[int, Meta(ge=-100, le=100)] = 0


class StartOneBody(Asked, frozen=True):
    """How to start a workflow that the path names."""

    inputs: Values = {}
    goal: Text = ""
    priority: Annotated[int, Meta(ge=-100, le=100)] = 0


class DryRunQuery(Asked, frozen=True):
    """Whether to change nothing, and answer with what would happen."""

    dry_run: bool = False


class AtQuery(Asked, frozen=True):
    """When to look at a run."""

    at: Entry = 0


class RunQuery(AtQuery, frozen=True):
    """How much of a run to show."""

    steps: bool = False
    """With every step that is known so far."""


class StartQuery(ProjectQuery, frozen=True):
    """In which project to start it, and whether to change nothing and answer with what would happen."""

    dry_run: bool = False


class StepsQuery(AtQuery, frozen=True):
    """Which steps of a run to list, in written order."""

    state: StepStates = ()
    q: Text = ""
    limit: Annotated[int, Meta(ge=1, le=STEPS_MAX)] = 600
    cursor: Cursor = ""


class PreviewQuery(Asked, frozen=True):
    """What a control would be used on."""

    step: Name = ""


class ControlBody(Asked, frozen=True):
    """A control of a run."""

    reason: Annotated[str, Meta(max_length=2_000)] = ""
    """Why; it is recorded. Needed unless dry_run."""
    step: Name = ""
    output: Any = None
    """With accept: the output of the step."""
    passphrase: Annotated[str, Meta(max_length=1_000)] | None = None
    """With skip, where the step is an approval and approvals need a passphrase."""


class SubmitBody(Asked, frozen=True):
    """What is submitted for a prompt step."""

    step: Name
    output: Any | UnsetType = UNSET
    outcome: Literal["done", "failed", "skipped"] = "done"
    vars: Values = {}
    note: LongText = ""
    confirmed: bool = False


class DecisionBody(Asked, frozen=True):
    """A decision to record."""

    decision: Annotated[str, Meta(min_length=1, max_length=20_000)]
    reason: Annotated[str, Meta(min_length=1, max_length=20_000)]
    step: Name = ""
    alternatives: Annotated[tuple[Text, ...], Meta(max_length=50)] = ()
    details: Values = {}


class ActionBody(Asked, frozen=True):
    """An action to record; in a run that is only recorded its outcome moves the step."""

    description: Annotated[str, Meta(min_length=1, max_length=20_000)]
    step: Name = ""
    outcome: Literal["", "started", "done", "failed", "skipped"] = ""
    kind: Literal["performed", "stopped", "cleaned_up", "notified", "rolled_back", "other"] = "performed"
    output: Any = None
    details: Values = {}


class CompensationBody(Asked, frozen=True):
    """That a step was undone by hand, or needs no undo."""

    step: Annotated[str, Meta(min_length=1, max_length=300)]
    description: Annotated[str, Meta(min_length=1, max_length=20_000)]
    outcome: Literal["compensated", "not_needed"] = "compensated"
    details: Values = {}


class ValuesQuery(Asked, frozen=True):
    """What to compare: two steps or tries (`step` or `step:2`) of a run, or of two runs."""

    a: Name = ""
    b: Name = ""
    mode: Literal["steps", "tries", "around", "runs"] = "steps"
    run: Name = ""
    """The other run, with mode runs."""


# --- approvals ------------------------------------------------------------------------------------


class ApprovalsQuery(ProjectQuery, frozen=True):
    """Which approvals to list."""

    limit: Limit = 100
    cursor: Cursor = ""


class AnswerBody(Asked, frozen=True):
    """An answer to an approval: to exactly what was shown."""

    answer: Literal["approve", "reject"]
    reason: Reason
    digest: Annotated[str, Meta(max_length=200)] = ""
    """Of what was shown; an approval needs it."""
    output: Any = None
    """The filled form, if the question has one."""
    passphrase: Annotated[str, Meta(max_length=1_000)] | None = None


# --- plans and the library ------------------------------------------------------------------------


class PlansQuery(ProjectQuery, frozen=True):
    """Which plans to list."""

    q: Text = ""
    retired: bool = False
    limit: Limit = 200
    cursor: Cursor = ""


class PlanQuery(ProjectQuery, frozen=True):
    """Which version of a plan to show; the newest without it."""

    version: Annotated[int, Meta(ge=1)] | None = None


class PlanBody(Asked, frozen=True):
    """A plan to save."""

    plan: Values
    note: Text = ""


class CheckBody(Asked, frozen=True):
    """A definition to check, or an output of a step of a run or a workflow."""

    definition: Values | None = None
    run: Name = ""
    workflow: Name = ""
    step: Name = ""
    output: Any | UnsetType = UNSET


class ReasonBody(Asked, frozen=True):
    """Why."""

    reason: Reason


class LibraryQuery(ProjectQuery, frozen=True):
    """Which workflows to list; with `q` the best match first."""

    q: Text = ""
    category: Name = ""
    tag: Names = ()
    limit: Limit = 200
    cursor: Cursor = ""


# --- tools, rules, journal ------------------------------------------------------------------------


class ToolsQuery(ProjectQuery, frozen=True):
    """Which tools to list."""

    q: Text = ""
    server: Name = ""
    limit: Limit = 500
    cursor: Cursor = ""


class StatisticsQuery(ProjectQuery, frozen=True):
    """From when on, and of which workflow."""

    since: Instant = ""
    workflow: Name = ""


class ServerQuery(ProjectQuery, frozen=True):
    """From when on."""

    since: Instant = ""


class RulesQuery(ProjectQuery, frozen=True):
    """Which rules to list."""

    q: Text = ""


class JournalQuery(ProjectQuery, frozen=True):
    """Which events to return: of one run in order, or of the whole store, newest first."""

    run: Name = ""
    kind: Names = ()
    step: Name = ""
    actor: Name = ""
    text: Text = ""
    since: Instant = ""
    until: Instant = ""
    limit: Limit = 100
    cursor: Cursor = ""


class RunJournalQuery(Asked, frozen=True):
    """Which events of a run to return, in order."""

    kind: Names = ()
    about: EventSubject | None = None
    """Only what is about this."""
    step: Name = ""
    actor: Name = ""
    text: Text = ""
    limit: Limit = 200
    cursor: Cursor = ""


class VerifyQuery(Asked, frozen=True):
    """What to verify: the whole journal, or one run."""

    run: Name = ""
    replay: bool = False
    receipt: Names = ()


class ExportQuery(Asked, frozen=True):
    """What to export: the whole journal, or one run."""

    run: Name = ""


class CheckpointsQuery(Asked, frozen=True):
    """How many of the latest checkpoints to show."""

    limit: Limit = 50


class EventsQuery(Asked, frozen=True, rename={"from_": "from"}):
    """Which events to receive, and after which mark of the store; `Last-Event-ID` goes before `from`."""

    run: Names = ()
    project: Name = ""
    kind: Names = ()
    from_: Annotated[str, Meta(max_length=TEXT_LENGTH_MAX, pattern=r"^[0-9][0-9.-]*$")] | None = None


# --- getting in -----------------------------------------------------------------------------------


class TicketBody(Asked, frozen=True):
    """For which project a link is: the folder of one, which is opened; without it, the server's own."""

    project: Annotated[str, Meta(max_length=4_096)] = ""
