"""The fourteen tools as models see them: when to call each, with what, and what comes back.

Values only: no handler, no protocol. The order never changes, so that prompt caches hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from handrail.interfaces.mcp.surface import arguments as args
from handrail.interfaces.mcp.surface.offer import Hints, Tool, Toolset
from handrail.interfaces.mcp.surface.schema import input_schema

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
}
_PLAN: Final = _answer("plan", "version", "hash", plan=TEXT, version=NUMBER, hash=TEXT, waves=LIST, receipt=TEXT)
_RECEIPT: Final = _answer("run", "receipt", run=TEXT, receipt=TEXT, status=TEXT)

_GUIDE: Final = (
    (
        "workflow_list",
        "Call first when a task may have an agreed way of doing it: finds workflows by your words, best match first.",
        args.ListWorkflows,
        _answer("workflows", "total", workflows=LIST, total=NUMBER, cursor=TEXT),
        READS,
    ),
    (
        "workflow_get",
        "Call to see a workflow before starting it: its inputs and steps. `full` gives the whole definition.",
        args.GetWorkflow,
        _answer("id", id=TEXT, inputs=OBJECT, steps=LIST, definition=OBJECT),
        READS,
    ),
    (
        "workflow_next",
        (
            "Call to start, continue or resume guided work; it answers with the next step for you. "
            'Start: {"workflow":"code-review","inputs":{..},"goal":".."}. '
            'Hand in: {"run":"run_..","step":"notes","output":{..}}; what is not accepted comes back with findings: '
            "mend, hand in again. Resume in a new chat: {run} alone gives the step and a recap. "
            "With nothing: the open runs. Tool steps between yours are run for you."
        ),
        args.NextStep,
        _answer(run=TEXT, status=TEXT, progress=OBJECT, step=OBJECT, accepted=FLAG, findings=LIST, ready=LIST),
        ADDS,
    ),
    (
        "workflow_validate",
        (
            "Call before saving a definition, or before handing in an output (run or workflow, with step and output). "
            "Changes nothing."
        ),
        args.ValidateWorkflow,
        _answer("valid", "findings", valid=FLAG, findings=LIST),
        READS,
    ),
)
_RUN: Final = (
    (
        "save_plan",
        (
            "Call to keep a plan of tool calls that execute_plan will run. "
            'Example: {"plan":{"name":"Tag it","steps":[{"id":"w","tool":"file.write","args":{"path":"a","text":"x"}},'
            '{"id":"ok","approve":"Go on?"}]}}. Steps follow each other unless `after` says otherwise; '
            "{{ steps.w.output.path }} passes values; on_failure is ask, compensate, continue or stop."
        ),
        args.SavePlan,
        _PLAN,
        ONCE,
    ),
    (
        "execute_plan",
        (
            "Call to run a saved plan, a workflow, or a definition; it goes on by itself after the answer. "
            "dry_run shows what would run; wait lets a short run end first; an idempotency_key makes repeating safe."
        ),
        args.ExecutePlan,
        _answer("status", **_STATUS, waves=LIST),
        Hints(destructive=True),
    ),
    (
        "status",
        (
            "Call to see where a run stands, what it waits for and, after a failure, which calls are possible now. "
            "Without run: the open runs."
        ),
        args.GetStatus,
        _answer(**_STATUS, steps=LIST, runs=LIST),
        READS,
    ),
    (
        "control",
        (
            "Call to steer a run: take an option that status offers, pause, resume, cancel (offers compensate), "
            "or fork from a step. Approvals are for people: the user is asked. The reason is kept."
        ),
        args.ControlRun,
        _answer("run", "status", **_STATUS),
        Hints(destructive=True, idempotent=True),
    ),
    (
        "record_compensation",
        "Call when you undid a step by hand, outside handrail, so that the run knows.",
        args.RecordCompensation,
        _RECEIPT,
        ADDS,
    ),
)
_JOURNAL: Final = (
    (
        "record_plan",
        (
            "Call before work that you do with your own tools, to write the plan down: "
            '{"plan":{"name":"Fix #42","steps":["reproduce it","fix it"]}}.'
        ),
        args.RecordPlan,
        _PLAN,
        ONCE,
    ),
    (
        "record_execution_start",
        "Call when you begin a recorded plan; it answers with the run to report on by record_action.",
        args.RecordStart,
        _answer("run", "ready", run=TEXT, status=TEXT, ready=LIST, receipt=TEXT),
        ADDS,
    ),
    (
        "record_decision",
        "Call when you choose between ways, with the reason and what you ruled out.",
        args.RecordDecision,
        _RECEIPT,
        ADDS,
    ),
    (
        "record_action",
        (
            "Call after (or, with outcome started, before) each thing you do in a run; "
            "it answers with the steps that may come next."
        ),
        args.RecordAction,
        _answer("run", "receipt", run=TEXT, receipt=TEXT, status=TEXT, ready=LIST),
        ADDS,
    ),
    (
        "query_ledger",
        (
            "Call to look up what was planned, decided and done, of one run or (newest first) of all; "
            "verify proves that nothing was changed."
        ),
        args.QueryLedger,
        _answer("events", events=LIST, cursor=TEXT, verified=OBJECT),
        READS,
    ),
)

ARGUMENTS: Final[Mapping[str, type[args.Arguments]]] = {row[0]: row[2] for row in (*_GUIDE, *_RUN, *_JOURNAL)}
"""The arguments of each tool, by its name."""

TOOLS: Final[Sequence[Tool]] = tuple(
    Tool(name=name, description=text, input=input_schema(kind), output=answer, hints=hints, toolset=toolset)
    for toolset, rows in ((Toolset.GUIDE, _GUIDE), (Toolset.RUN, _RUN), (Toolset.JOURNAL, _JOURNAL))
    for name, text, kind, answer, hints in rows
)
"""Every tool, in the order that clients see."""

INSTRUCTIONS: Final = """\
handrail keeps long work on track: it guides you step by step, runs plans of tool calls with real undo, and remembers \
every plan, decision and action in a journal that can't be changed unseen.

- A task with an agreed way: workflow_list with the task in your words, then workflow_next to start. Do exactly the \
step you are given, hand in its output, take the next. What is not accepted comes back with findings: mend it.
- Tool calls to be run for you: save_plan, then execute_plan; watch with status. On a failure status lists the \
possible calls; choose one with control (retry, skip, accept, compensate, cancel).
- Work you do with your own tools: record_plan, record_execution_start, then record_action for each step and \
record_decision for each choice.
- New chat, lost answer or lost thread: workflow_next or status with nothing lists the open runs; with the run it \
tells where you were. Runs go on without you. Repeating a call does no harm and says so; only what starts a run is \
looked for among the open ones first, or given an idempotency_key.
- Errors carry `hint` and often `next`: a ready call that mends it. Approvals and confirmations are the user's to \
give: ask them.
- handrail://guide tells more."""
