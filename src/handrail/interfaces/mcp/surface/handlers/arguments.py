"""The arguments of the tools; the JSON Schemas that models see are generated from them (schema.py).

Descriptions in Meta are sent to models in every chat, and cost tokens: keep them short."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from handrail.domain.definition.duration import DURATION_PATTERN
from handrail.domain.run.legal_controls import Action

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


class ToolArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings that all arguments share."""


class WorkflowListArguments(ToolArguments, frozen=True):
    """Arguments of `workflow_list`."""

    of: Literal["workflows", "plans", "tools"] = "workflows"
    query: Annotated[Text, Meta(description="the task, in your own words")] = ""
    category: Name = ""
    tags: Names = ()
    limit: Page = 10
    cursor: Name = ""


class WorkflowGetArguments(ToolArguments, frozen=True):
    """Arguments of `workflow_get`."""

    id: Name
    version: Name = ""
    detail: Literal["overview", "full"] = "overview"


class WorkflowNextArguments(ToolArguments, frozen=True):
    """Arguments of `workflow_next`."""

    workflow: Annotated[Name, Meta(description="id or id@range: starts a run")] = ""
    inputs: Object = {}
    goal: Text = ""
    run: Name = ""
    step: Annotated[StepPath, Meta(description="left out: the only open one")] = ""
    output: Annotated[Any, Meta(description="the result of the step")] = UNSET
    outcome: Literal["done", "failed", "skipped"] = "done"
    vars: Annotated[Object, Meta(description="values for later steps")] = {}
    note: Text = ""
    confirmed: Annotated[bool, Meta(description="the user agreed")] = False
    agent: Annotated[Name, Meta(description="your name, if several agents share the run")] = ""


class WorkflowValidateArguments(ToolArguments, frozen=True):
    """Arguments of `workflow_validate`."""

    definition: Object | None = None
    run: Name = ""
    workflow: Name = ""
    step: StepPath = ""
    output: Any = UNSET


class SavePlanArguments(ToolArguments, frozen=True):
    """Arguments of `save_plan`."""

    plan: Object
    note: Text = ""


class ExecutePlanArguments(ToolArguments, frozen=True):
    """Arguments of `execute_plan`."""

    plan: Name = ""
    workflow: Name = ""
    definition: Object | None = None
    inputs: Object = {}
    dry_run: bool = False
    wait: Annotated[str, Meta(pattern=DURATION_PATTERN, description="at most 25s")] = "0s"
    idempotency_key: Name = ""


class StatusArguments(ToolArguments, frozen=True):
    """Arguments of `status`."""

    run: Name = ""
    detail: Literal["summary", "full"] = "summary"


class ControlArguments(ToolArguments, frozen=True):
    """Arguments of `control`."""

    run: Name
    action: Action
    reason: Said
    step: StepPath = ""
    by: Annotated[Name, Meta(description="who asked for it")] = ""
    output: Annotated[Any, Meta(description="with accept; with approve: the answer asked for")] = UNSET
    dry_run: bool = False
    card: Annotated[
        Name, Meta(description="only from the page that shows the question", extra_json_schema={"x-app": True})
    ] = ""


class RecordCompensationArguments(ToolArguments, frozen=True):
    """Arguments of `record_compensation`."""

    run: Name
    step: StepPath
    description: Said
    outcome: Literal["compensated", "not_needed", "failed"] = "compensated"
    details: Object = {}


class RecordPlanArguments(ToolArguments, frozen=True):
    """Arguments of `record_plan`."""

    plan: Object


class RecordExecutionStartArguments(ToolArguments, frozen=True):
    """Arguments of `record_execution_start`."""

    plan: Annotated[Name, Meta(description="its id")]
    inputs: Object = {}
    note: Text = ""


class RecordDecisionArguments(ToolArguments, frozen=True):
    """Arguments of `record_decision`."""

    run: Name
    decision: Said
    reason: Said
    step: StepPath = ""
    alternatives: Annotated[tuple[Text, ...], Meta(max_length=50)] = ()
    details: Object = {}


class RecordActionArguments(ToolArguments, frozen=True):
    """Arguments of `record_action`."""

    run: Name
    description: Said
    step: StepPath = ""
    outcome: Literal["started", "done", "failed", "skipped"] | UnsetType = UNSET
    kind: Literal["performed", "stopped", "cleaned_up", "notified", "rolled_back", "other"] = "performed"
    output: Any = UNSET
    details: Object = {}


class QueryLedgerArguments(ToolArguments, frozen=True):
    """Arguments of `query_ledger`."""

    run: Name = ""
    kinds: Annotated[Names, Meta(description="decision, action, step_failed ..")] = ()
    step: StepPath = ""
    actor: Name = ""
    text: Name = ""
    since: Instant = ""
    until: Instant = ""
    verify: bool = False
    limit: Page = 50
    cursor: Name = ""
