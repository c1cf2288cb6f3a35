"""The routes of runs: list, start, show, control, submit, record; and the first page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from handrail.domain.policy.act import Act
from handrail.domain.run.legal_controls import Action
from handrail.engine.guiding.guide_view import Guided
from handrail.engine.reading.story_view import RunStory
from handrail.engine.reading.time_view import RunTimeline
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import journal as journal_given
from handrail.interfaces.http.contract.given import runs as runs_given
from handrail.interfaces.http.contract.route import CHECK_S, GET, PLAN_BYTES, POST, Route

CONTROLS: Final[Mapping[Action, tuple[str, tuple[Act, ...]]]] = {
    Action.PAUSE: ("Start no more steps of a run", (Act.PAUSE,)),
    Action.RESUME: ("Continue a run", (Act.RESUME, Act.RESUME_FOR_PERSON)),
    Action.CANCEL: ("End a run; what was done stays", (Act.CANCEL,)),
    Action.RETRY: ("Try a failed or uncertain step again", (Act.RETRY, Act.SUBMIT_AFTER_LIMIT, Act.COMPENSATE)),
    Action.SKIP: (
        "Continue without a step",
        (Act.SKIP, Act.SKIP_CHECKS, Act.SKIP_RESERVED, Act.SKIP_UNSKIPPABLE, Act.OVERRIDE, Act.SKIP_UNDO),
    ),
    Action.ACCEPT: ("Count an uncertain step as completed", (Act.ACCEPT, Act.ACCEPT_CHECKS)),
    Action.COMPENSATE: ("Undo what a run did", (Act.COMPENSATE,)),
    Action.FORK: ("Start a new run that shares what was done before a step", (Act.FORK,)),
}
"""The controls of a run, and what each can be to the policy. Approvals are answered below /approvals."""


def _control(action: Action) -> Route:
    summary, acts = CONTROLS[action]
    return Route(
        method=POST,
        path=f"/runs/{{run}}/{action.value}",
        name=f"{action.value}_run",
        summary=f"{summary}; with `dry_run=1` only shows what would happen",
        query=asked.DryRunQuery,
        body=asked.ControlBody,
        gives=runs_given.Done,
        dry=runs_given.Preview,
        acts=acts,
        tag="runs",
    )


OF_RUN: Final = ("show_run", "list_steps")
"""What every page of a run shows."""
AT: Final = ("at",)
"""A run is looked at as of one event on all of its pages."""

HOME: Final = (
    Route(
        method=GET,
        path="/home",
        name="home",
        summary="What waits for me, runs, failed",
        query=asked.HomeQuery,
        spans=True,
        gives=runs_given.Home,
        page="/",
        tag="home",
    ),
)

RUNS: Final = (
    Route(
        method=GET,
        path="/runs",
        name="list_runs",
        summary="Runs, newest first",
        query=asked.RunsQuery,
        spans=True,
        gives=runs_given.RunPage,
        page="/runs",
        tag="runs",
    ),
    Route(
        method=POST,
        path="/runs",
        name="start_run",
        summary="Start a workflow, a plan or a definition; with `dry_run=1` only shows what would run",
        query=asked.StartQuery,
        body=asked.StartBody,
        gives=runs_given.Done,
        dry=runs_given.DryRun,
        acts=(Act.START,),
        tag="runs",
        status=201,
        body_bytes=PLAN_BYTES,
    ),
    Route(
        method=GET,
        path="/runs/{run}",
        name="show_run",
        summary="A run: its status, and what is legal now",
        query=asked.RunQuery,
        gives=runs_given.RunView,
        page="/runs/{run}",
        shows=OF_RUN,
        shared=AT,
        tag="runs",
    ),
    Route(
        method=GET,
        path="/runs/{run}/steps",
        name="list_steps",
        summary="The steps of a run",
        query=asked.StepsQuery,
        gives=runs_given.StepPage,
        page="/runs/{run}/steps",
        shows=OF_RUN,
        shared=AT,
        tag="runs",
    ),
    Route(
        method=GET,
        path="/runs/{run}/steps/{step:path}",
        name="show_step",
        summary="One step: attempts, input, output, checks with evidence, undo",
        query=asked.AtQuery,
        gives=runs_given.StepDetail,
        page="/runs/{run}/steps/{step:path}",
        shows=(*OF_RUN, "show_step"),
        tag="runs",
    ),
    Route(
        method=GET,
        path="/runs/{run}/graph",
        name="run_graph",
        summary="The steps of a run and their order",
        query=asked.AtQuery,
        gives=runs_given.Graph,
        page="/runs/{run}/graph",
        shows=(*OF_RUN, "run_graph"),
        tag="runs",
    ),
    Route(
        method=GET,
        path="/runs/{run}/timeline",
        name="run_timeline",
        summary="What happened when in a run: work, tries, waits, undo",
        query=asked.AtQuery,
        gives=RunTimeline,
        page="/runs/{run}/timeline",
        shows=(*OF_RUN, "run_timeline"),
        tag="runs",
    ),
    Route(
        method=GET,
        path="/runs/{run}/story",
        name="run_story",
        summary="What happened in a run as a story, and why it is where it is",
        query=asked.AtQuery,
        gives=RunStory,
        shared=AT,
        tag="runs",
    ),
    Route(
        method=GET,
        path="/runs/{run}/journal",
        name="run_journal",
        summary="The events of a run, in order",
        query=asked.RunJournalQuery,
        gives=journal_given.EventPage,
        page="/runs/{run}/journal",
        shows=(*OF_RUN, "run_story"),
        tag="runs",
    ),
    Route(
        method=GET,
        path="/runs/{run}/journal/{n:int}",
        name="show_event",
        summary="One event of a run",
        gives=journal_given.EventView,
        page="/runs/{run}/journal/{n:int}",
        shows=(*OF_RUN, "run_story", "show_event"),
        tag="runs",
    ),
    Route(
        method=GET,
        path="/runs/{run}/values",
        name="compare_values",
        summary="What differs between two steps, two tries, before and after a step, or two runs",
        query=asked.ValuesQuery,
        gives=runs_given.ValueComparison,
        page="/runs/{run}/values",
        shows=OF_RUN,
        tag="runs",
    ),
    Route(
        method=GET,
        path="/runs/{run}/definition",
        name="run_definition",
        summary="The definition that a run is pinned to, and its inputs",
        gives=runs_given.DefinitionView,
        page="/runs/{run}/definition",
        shows=(*OF_RUN, "run_definition"),
        tag="runs",
    ),
    Route(
        method=GET,
        path="/runs/{run}/compare/{other}",
        name="compare_runs",
        summary="Two runs side by side",
        gives=runs_given.RunComparison,
        page="/runs/{run}/compare/{other}",
        shows=OF_RUN,
        tag="runs",
    ),
    Route(
        method=GET,
        path="/runs/{run}/do/{action}",
        name="preview",
        summary="What a control would do; nothing is changed",
        query=asked.PreviewQuery,
        own=True,
        gives=runs_given.Preview,
        page="/runs/{run}/do/{action}",
        shows=(*OF_RUN, "preview"),
        tag="runs",
    ),
    Route(
        method=GET,
        path="/runs/{run}/next",
        name="next_step",
        summary="What is to be done next in a run, with its prompt",
        own=True,
        gives=Guided,
        tag="runs",
    ),
    *(_control(action) for action in CONTROLS),
    Route(
        method=POST,
        path="/runs/{run}/submit",
        name="submit_step",
        summary="Submit the output of a prompt step; handrail checks it first",
        body=asked.SubmitBody,
        gives=Guided,
        acts=(Act.SUBMIT, Act.SUBMIT_AFTER_LIMIT, Act.SKIP, Act.SKIP_CHECKS, Act.SKIP_RESERVED, Act.SKIP_UNSKIPPABLE),
        tag="runs",
        body_bytes=PLAN_BYTES,
        within_s=CHECK_S,
    ),
    Route(
        method=POST,
        path="/runs/{run}/decision",
        name="record_decision",
        summary="Record a decision",
        body=asked.DecisionBody,
        gives=runs_given.Receipt,
        acts=(Act.RECORD,),
        tag="runs",
    ),
    Route(
        method=POST,
        path="/runs/{run}/action",
        name="record_action",
        summary="Record an action",
        body=asked.ActionBody,
        gives=runs_given.Receipt,
        acts=(Act.RECORD,),
        tag="runs",
    ),
    Route(
        method=POST,
        path="/runs/{run}/compensation",
        name="record_compensation",
        summary="Record that a step was undone by hand, or needs no undo",
        body=asked.CompensationBody,
        gives=runs_given.Done,
        acts=(Act.RECORD,),
        tag="runs",
    ),
)
