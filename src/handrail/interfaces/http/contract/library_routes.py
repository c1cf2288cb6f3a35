"""The routes of approvals, plans, the library, tools and rules."""

from __future__ import annotations

from typing import Final

from handrail.domain.policy.act import Act
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import approvals as approvals_given
from handrail.interfaces.http.contract.given import library as library_given
from handrail.interfaces.http.contract.given import runs as runs_given
from handrail.interfaces.http.contract.given import tools as tools_given
from handrail.interfaces.http.contract.route import CHECK_S, GET, PLAN_BYTES, POST, Route

APPROVALS: Final = (
    Route(
        method=GET,
        path="/approvals",
        name="list_approvals",
        summary="Approvals that wait, and the latest answers",
        query=asked.ApprovalsQuery,
        spans=True,
        gives=approvals_given.ApprovalPage,
        page="/approvals",
        tag="approvals",
    ),
    Route(
        method=GET,
        path="/approvals/{run}/{step:path}",
        name="show_approval",
        summary="What a person is asked, the effects ahead, and whether you may answer",
        gives=approvals_given.ApprovalView,
        page="/approvals/{run}/{step:path}",
        shows=("list_approvals", "show_approval"),
        tag="approvals",
    ),
    Route(
        method=POST,
        path="/approvals/{run}/{step:path}",
        name="answer_approval",
        summary="Approve or reject exactly what was shown",
        body=asked.AnswerBody,
        gives=runs_given.Done,
        acts=(Act.ANSWER,),
        tag="approvals",
    ),
)

PLANS: Final = (
    Route(
        method=GET,
        path="/plans",
        name="list_plans",
        summary="Saved plans",
        query=asked.PlansQuery,
        gives=library_given.PlanPage,
        page="/plans",
        tag="plans",
    ),
    Route(
        method=POST,
        path="/plans",
        name="save_plan",
        summary="Save a version of a plan",
        query=asked.ProjectQuery,
        body=asked.PlanBody,
        gives=library_given.SavedPlan,
        acts=(Act.SAVE_PLAN,),
        tag="plans",
        status=201,
        body_bytes=PLAN_BYTES,
    ),
    Route(
        method=POST,
        path="/plans/check",
        name="check_plan",
        summary="The findings on a definition, or on an output before it is submitted; changes nothing",
        query=asked.ProjectQuery,
        body=asked.CheckBody,
        gives=library_given.Checked,
        tag="plans",
        body_bytes=PLAN_BYTES,
        within_s=CHECK_S,
    ),
    Route(
        method=GET,
        path="/plans/{plan}",
        name="show_plan",
        summary="A plan and its versions",
        query=asked.PlanQuery,
        gives=library_given.PlanView,
        page="/plans/{plan}",
        shows=("list_plans", "show_plan"),
        tag="plans",
    ),
    Route(
        method=POST,
        path="/plans/{plan}/retire",
        name="retire_plan",
        summary="Stop offering a plan; nothing is deleted",
        query=asked.ProjectQuery,
        body=asked.ReasonBody,
        gives=library_given.PlanView,
        acts=(Act.RETIRE_PLAN,),
        tag="plans",
    ),
)

LIBRARY: Final = (
    Route(
        method=GET,
        path="/library",
        name="list_workflows",
        summary="Workflows; with `q` the best match first",
        query=asked.LibraryQuery,
        gives=library_given.LibraryPage,
        page="/library",
        tag="library",
    ),
    Route(
        method=GET,
        path="/library/{workflow:path}/graph",
        name="workflow_graph",
        summary="The steps of a workflow and their order",
        query=asked.ProjectQuery,
        gives=runs_given.Graph,
        page="/library/{workflow:path}/graph",
        tag="library",
    ),
    Route(
        method=POST,
        path="/library/{workflow:path}/start",
        name="start_workflow",
        summary="Start a workflow; with `dry_run=1` only shows what would run",
        query=asked.StartQuery,
        body=asked.StartOneBody,
        gives=runs_given.Done,
        dry=runs_given.DryRun,
        acts=(Act.START,),
        tag="library",
        status=201,
    ),
    Route(
        method=GET,
        path="/library/{workflow:path}",
        name="show_workflow",
        summary="A workflow: purpose, inputs, definition, graph; `id` or `id@version`",
        query=asked.ProjectQuery,
        gives=library_given.WorkflowView,
        page="/library/{workflow:path}",
        shows=("list_workflows", "show_workflow"),
        tag="library",
    ),
)

TOOLS: Final = (
    Route(
        method=GET,
        path="/tools",
        name="list_tools",
        summary="Tool servers and their circuit breakers, and the tools that plans can call",
        query=asked.ToolsQuery,
        gives=tools_given.ToolPage,
        page="/tools",
        tag="tools",
    ),
    Route(
        method=GET,
        path="/tools/{server}",
        name="show_server",
        summary="A tool server: tools, figures, outages",
        query=asked.ServerQuery,
        gives=tools_given.ServerView,
        page="/tools/{server}",
        tag="tools",
    ),
    Route(
        method=GET,
        path="/rules",
        name="list_rules",
        summary="Rules that checks can name",
        query=asked.RulesQuery,
        gives=tools_given.RuleList,
        page="/rules",
        tag="tools",
    ),
    Route(
        method=GET,
        path="/rules/{rule}",
        name="show_rule",
        summary="One rule",
        query=asked.ProjectQuery,
        gives=tools_given.RuleView,
        page="/rules/{rule}",
        tag="tools",
    ),
)
