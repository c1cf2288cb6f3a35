"""Every name of spans and attributes, as the semantic conventions of OpenTelemetry have them (GenAI and MCP, status
Development), and our own under `handrail.`.

The one place: when the conventions change, this file does. Spans have names, numbers and words from closed sets; never
arguments, outputs or messages, which may have secrets in them."""

from __future__ import annotations

import re
from typing import Final

# --- of the conventions --------------------------------------------------------------------------------

OPERATION: Final = "gen_ai.operation.name"
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_WORKFLOW: Final = "invoke_workflow"
TOOL: Final = "gen_ai.tool.name"
PROMPT: Final = "gen_ai.prompt.name"
TOOL_CALL: Final = "gen_ai.tool.call.id"
WORKFLOW: Final = "gen_ai.workflow.name"
ERROR: Final = "error.type"
METHOD: Final = "mcp.method.name"
OTHER: Final = "_OTHER"
"""What stands for a name that somebody outside made up."""

# --- ours ----------------------------------------------------------------------------------------------

RUN: Final = "handrail.run.id"
RUN_STATUS: Final = "handrail.run.status"
VERSION: Final = "handrail.workflow.version"
PROJECT: Final = "handrail.project.id"
STEP: Final = "handrail.step.path"
STEP_KIND: Final = "handrail.step.kind"
STEP_STATUS: Final = "handrail.step.status"
ATTEMPT: Final = "handrail.attempt.number"
OUTCOME: Final = "handrail.attempt.outcome"
COMPENSATION: Final = "compensate"

# --- what requests carry ---------------------------------------------------------------------------------

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
BAGGAGE: Final = "baggage"
CARRIED: Final = (TRACEPARENT, TRACESTATE, BAGGAGE)

_round = re.compile(r"\[\d+\]")


def run_span(workflow: str) -> str:
    """The name of a run's span."""
    return f"{INVOKE_WORKFLOW} {workflow}"


def tool_span(tool: str) -> str:
    """The name of a tool call's span."""
    return f"{EXECUTE_TOOL} {tool}"


def step_span(path: str, *, is_attempt: bool = False, is_undo: bool = False) -> str:
    """The name of the span of a step, of one of its attempts, or of its undo: the same for all rounds of a loop."""
    step = _round.sub("", path)
    if is_undo:
        return f"undo {step}"
    return f"attempt {step}" if is_attempt else f"step {step}"
