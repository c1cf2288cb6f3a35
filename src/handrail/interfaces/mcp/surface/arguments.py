"""The arguments of the tools, as values; the JSON Schemas that models see are made from them.

What a field says in its Meta is read by models, in every chat: each word is paid for."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from handrail.domain.duration import DURATION_PATTERN
from handrail.domain.legal import Action

TEXT_MAX = 20_000
NAME_MAX = 200

Name = Annotated[str, Meta(max_length=NAME_MAX)]
StepPath = Annotated[str, Meta(max_length=1_000)]
Text = Annotated[str, Meta(max_length=TEXT_MAX)]
Said = Annotated[str, Meta(min_length=1, max_length=TEXT_MAX)]
Names = Annotated[tuple[Name, ...], Meta(max_length=100)]
Object = dict[str, Any]
Page = Annotated[int, Meta(ge=1, le=100)]
Instant = Annotated[str, Meta(max_length=40, description="RFC 3339")]


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The shape that all arguments share."""


class ListWorkflows(Arguments, frozen=True):
    """Of `workflow_list`."""

    query: Annotated[Text, Meta(description="the task, in your words")] = ""
    category: Name = ""
    tags: Names = ()
    limit: Page = 10
    cursor: Name = ""


class GetWorkflow(Arguments, frozen=True):
    """Of `workflow_get`."""

    id: Name
    version: Name = ""
    detail: Literal["overview", "full"] = "overview"


class NextStep(Arguments, frozen=True):
    """Of `workflow_next`."""

    workflow: Annotated[Name, Meta(description="id or id@range: starts a run")] = ""
    inputs: Object = {}
    goal: Text = ""
    run: Name = ""
    step: StepPath = ""
    output: Annotated[Any, Meta(description="what the step asks for")] = UNSET
    outcome: Literal["done", "failed", "skipped"] = "done"
    vars: Annotated[Object, Meta(description="values for later steps")] = {}
    note: Text = ""
    confirmed: Annotated[bool, Meta(description="the user agreed")] = False
    agent: Annotated[Name, Meta(description="your name, if several agents share the run")] = ""


class ValidateWorkflow(Arguments, frozen=True):
    """Of `workflow_validate`."""

    definition: Object | None = None
    run: Name = ""
    workflow: Name = ""
    step: StepPath = ""
    output: Any = UNSET


class SavePlan(Arguments, frozen=True):
    """Of `save_plan`."""

    plan: Object
    note: Text = ""


class ExecutePlan(Arguments, frozen=True):
    """Of `execute_plan`."""

    plan: Name = ""
    workflow: Name = ""
    definition: Object | None = None
    inputs: Object = {}
    dry_run: bool = False
    wait: Annotated[str, Meta(pattern=DURATION_PATTERN, description="at most 25s")] = "0s"
    idempotency_key: Name = ""


class GetStatus(Arguments, frozen=True):
    """Of `status`."""

    run: Name = ""
    detail: Literal["summary", "full"] = "summary"


class ControlRun(Arguments, frozen=True):
    """Of `control`."""

    run: Name
    action: Action
    reason: Said
    step: StepPath = ""
    by: Annotated[Name, Meta(description="for whom")] = ""
    output: Annotated[Any, Meta(description="with accept; with approve: the answer asked for")] = UNSET


class RecordCompensation(Arguments, frozen=True):
    """Of `record_compensation`."""

    run: Name
    step: StepPath
    description: Said
    outcome: Literal["compensated", "not_needed", "failed"] = "compensated"
    details: Object = {}


class RecordPlan(Arguments, frozen=True):
    """Of `record_plan`."""

    plan: Object


class RecordStart(Arguments, frozen=True):
    """Of `record_execution_start`."""

    plan: Annotated[Name, Meta(description="its id")]
    inputs: Object = {}
    note: Text = ""


class RecordDecision(Arguments, frozen=True):
    """Of `record_decision`."""

    run: Name
    decision: Said
    reason: Said
    step: StepPath = ""
    alternatives: Annotated[tuple[Text, ...], Meta(max_length=50)] = ()
    details: Object = {}


class RecordAction(Arguments, frozen=True):
    """Of `record_action`."""

    run: Name
    description: Said
    step: StepPath = ""
    outcome: Literal["started", "done", "failed", "skipped"] | UnsetType = UNSET
    kind: Literal["performed", "stopped", "cleaned_up", "notified", "rolled_back", "other"] = "performed"
    output: Any = UNSET
    details: Object = {}


class QueryLedger(Arguments, frozen=True):
    """Of `query_ledger`."""

    run: Name = ""
    kinds: Names = ()
    step: StepPath = ""
    actor: Name = ""
    text: Name = ""
    since: Instant = ""
    until: Instant = ""
    verify: bool = False
    limit: Page = 50
    cursor: Name = ""
