"""`wait.for`: waits for a duration. The engine does the waiting, so that it survives a restart."""

from __future__ import annotations

from handrail.domain.definition.duration import DURATION_PATTERN, duration_ms
from handrail.domain.definition.model import Effect
from handrail.engine.tool import Later, ToolCall, ToolSpec
from handrail.tools.arguments import closed
from handrail.tools.python.function_tool import FunctionTool

SPEC = ToolSpec(
    name="wait.for",
    description="Wait for a duration, e.g. 30s; survives restarts.",
    effect=Effect.NONE,
    args=closed({"duration": {"type": "string", "pattern": DURATION_PATTERN}}, required=["duration"]),
    idempotent=True,
    is_instant=True,
)


async def _wait(call: ToolCall) -> Later | None:
    delay_ms = duration_ms(call.args["duration"])
    return Later(delay_ms) if delay_ms and not call.deferred else None


def wait_tools() -> list[FunctionTool]:
    """The tools of this family."""
    return [FunctionTool(spec=SPEC, do=_wait)]
