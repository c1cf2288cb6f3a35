"""The fourteen tools as models see them: when to call each, its arguments and its answer.

Values only; the handlers are in *_tools.py. The order of tools never changes, because a changed list would invalidate
the prompt caches of clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from handrail.interfaces.mcp.surface.handlers import arguments as args
from handrail.interfaces.mcp.surface.handlers.schema import app_schema, input_schema
from handrail.interfaces.mcp.surface.offer import Hints, ToolOffer, Toolset
from handrail.interfaces.mcp.surface.views.app_page import APPROVAL_PAGE, RUN_PAGE

READS: Final = Hints(read_only=True)
ADDS: Final = Hints()
ONCE: Final = Hints(idempotent=True)

TEXT: Final = {"type": "string"}
NUMBER: Final = {"type": "integer"}
LIST: Final = {"type": "array"}
OBJECT: Final = {"type": "object"}
FLAG: Final = {"type": "boolean"}


def _answer(*required: str, **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


_STATUS: Final = {
    "run": TEXT,
    "status": TEXT,
    "progress": OBJECT,
    "waiting_for": LIST,
    "failure": OBJECT,
    "receipt": TEXT,
    "console": TEXT,
}
_PLAN: Final = _answer("plan", "version", "hash", plan=TEXT, version=NUMBER, hash=TEXT, waves=LIST, receipt=TEXT)
_RECEIPT: Final = _answer("run", "receipt", run=TEXT, receipt=TEXT, status=TEXT)

_GUIDE: Final = (
    (
        "workflow_list",
        (
            "Call first when a task may have a standard procedure: finds workflows by a description, best match first. "
            "`of`: saved plans, or the tools that plans can call, with arguments, output, effect and undo."
        ),
        args.WorkflowListArguments,
        _answer("total", workflows=LIST, plans=LIST, tools=LIST, total=NUMBER, cursor=TEXT),
        READS,
    ),
    (
        "workflow_get",
        "Call to see a workflow before starting it: its inputs and steps. `full` returns the whole definition.",
        args.WorkflowGetArguments,
        _answer("id", id=TEXT, inputs=OBJECT, steps=LIST, definition=OBJECT),
        READS,
    ),
    (
        "workflow_next",
        (
            "Call to start, continue or resume guided work; returns your next step. "
            'Start: {"workflow":"code-review","inputs":{..},"goal":".."}. '
            'Submit: {"run":"run_..","step":"notes","output":{..}}; if it is not accepted, fix the findings '
            "and submit again. Resume in a new chat: {run} alone returns the step and a recap. "
            "Without arguments: the open runs. Tool steps between yours are run for you."
        ),
        args.WorkflowNextArguments,
        _answer(
            run=TEXT,
            status=TEXT,
            progress=OBJECT,
            step=OBJECT,
            accepted=FLAG,
            findings=LIST,
            ready=LIST,
            console=TEXT,
        ),
        ADDS,
    ),
    (
        "workflow_validate",
        (
            "Call before saving a definition, or before submitting an output (run or workflow, with step and output). "
            "Changes nothing."
        ),
        args.WorkflowValidateArguments,
        _answer("valid", "findings", valid=FLAG, findings=LIST),
        READS,
    ),
)
_RUN: Final = (
    (
        "save_plan",
        (
            "Call to save a plan of tool calls for execute_plan. "
            'Example: {"plan":{"name":"Tag it","steps":[{"id":"w","tool":"file.write","args":{"path":"a","text":"x"}},'
            '{"id":"ok","approve":"Go on?"}]}}. Steps run in order unless `after` says otherwise; '
            "{{ steps.w.output.path }} passes values; on_failure is ask, compensate, continue or stop."
        ),
        args.SavePlanArguments,
        _PLAN,
        ONCE,
    ),
    (
        "execute_plan",
        (
            "Call to run a saved plan, a workflow, or a definition; it continues in the background. "
            "dry_run shows what would run; wait lets a short run end first; an idempotency_key makes repeating safe."
        ),
        args.ExecutePlanArguments,
        _answer("status", **_STATUS, waves=LIST),
        Hints(destructive=True),
    ),
    (
        "status",
        (
            "Call to see the progress of a run, what it waits for and, after a failure, which calls are possible now. "
            "Without run: the open runs."
        ),
        args.StatusArguments,
        _answer(**_STATUS, steps=LIST, runs=LIST),
        READS,
    ),
    (
        "control",
        (
            "Call to control a run: choose an option that status lists, pause, resume, cancel (offers compensate), "
            "or fork from a step. Only people approve: the user is asked. The reason is recorded."
        ),
        args.ControlArguments,
        _answer("run", "status", **_STATUS),
        Hints(destructive=True, idempotent=True),
    ),
    (
        "record_compensation",
        "Call after you undid a step by hand, outside handrail, to record it in the run.",
        args.RecordCompensationArguments,
        _RECEIPT,
        ADDS,
    ),
)
_JOURNAL: Final = (
    (
        "record_plan",
        (
            "Call before work that you do with your own tools, to record the plan: "
            '{"plan":{"name":"Fix #42","steps":["reproduce it","fix it"]}}.'
        ),
        args.RecordPlanArguments,
        _PLAN,
        ONCE,
    ),
    (
        "record_execution_start",
        "Call when you start a recorded plan; returns the run to report on with record_action.",
        args.RecordExecutionStartArguments,
        _answer("run", "ready", run=TEXT, status=TEXT, ready=LIST, receipt=TEXT),
        ADDS,
    ),
    (
        "record_decision",
        "Call when you choose between alternatives, with the reason and what you rejected.",
        args.RecordDecisionArguments,
        _RECEIPT,
        ADDS,
    ),
    (
        "record_action",
        ("Call after (or, with outcome started, before) each action in a run; returns the steps that are ready next."),
        args.RecordActionArguments,
        _answer("run", "receipt", run=TEXT, receipt=TEXT, status=TEXT, ready=LIST),
        ADDS,
    ),
    (
        "query_ledger",
        (
            "Call to look up what was planned, decided and done, in one run or (newest first) in all; "
            "verify proves that no event was changed."
        ),
        args.QueryLedgerArguments,
        _answer("events", events=LIST, cursor=TEXT, verified=OBJECT),
        READS,
    ),
)

ARGUMENTS: Final[Mapping[str, type[args.ToolArguments]]] = {row[0]: row[2] for row in (*_GUIDE, *_RUN, *_JOURNAL)}
"""The arguments of each tool, by tool name."""

APPS: Final[Mapping[str, str]] = {
    "workflow_next": RUN_PAGE,
    "execute_plan": RUN_PAGE,
    "status": RUN_PAGE,
    "control": APPROVAL_PAGE,
}
"""The page that shows the answers of a tool, in clients that show pages."""

TOOLS: Final[Sequence[ToolOffer]] = tuple(
    ToolOffer(
        name=name,
        description=text,
        input=input_schema(kind),
        output=answer,
        hints=hints,
        toolset=toolset,
        app=APPS.get(name, ""),
        app_input=app_schema(kind) if name in APPS else None,
    )
    for toolset, rows in ((Toolset.GUIDE, _GUIDE), (Toolset.RUN, _RUN), (Toolset.JOURNAL, _JOURNAL))
    for name, text, kind, answer, hints in rows
)
"""All tools, in the order that clients see."""

INSTRUCTIONS: Final = """\
handrail keeps long tasks on track: it guides you step by step, runs plans of tool calls with real undo, and records \
every plan, decision and action in a tamper-evident journal.

- A task with a standard procedure: workflow_list with the task in your own words, then workflow_next to start. Do \
exactly the step you are given, submit its output, get the next. If it is not accepted, fix the findings.
- Tool calls that handrail should run: save_plan, then execute_plan; follow with status. workflow_list {"of":"tools"} \
lists the tools. After a failure, status lists \
the possible calls; choose one with control (retry, skip, accept, compensate, cancel).
- Work you do with your own tools: record_plan, record_execution_start, then record_action for each step and \
record_decision for each choice.
- New chat, lost answer or lost context: workflow_next or status without arguments lists the open runs; with the run \
it shows where you were. Runs continue without you. Repeating a call is safe, and the answer says so; but before you \
start a run again, look at the open ones or give an idempotency_key.
- Errors carry `hint` and often `next`: a ready call that fixes the problem. Only the user gives approvals and \
confirmations: ask them.
- More in handrail://guide."""
