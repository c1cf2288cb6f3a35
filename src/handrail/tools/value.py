"""`value.set`: a value as the output of a step, for later steps."""

from __future__ import annotations

from typing import Any

from handrail.domain.definition.model import Effect
from handrail.engine.tool import ToolCall, ToolSpec
from handrail.tools.arguments import closed
from handrail.tools.python.function_tool import FunctionTool

SPEC = ToolSpec(
    name="value.set",
    description="Pass a value on: the step's output is the value itself.",
    effect=Effect.NONE,
    args=closed({"value": {}}, required=["value"]),
    idempotent=True,
    is_instant=True,
)


async def _set(call: ToolCall) -> Any:
    return call.args["value"]


def value_tools() -> list[FunctionTool]:
    """The tools of this family."""
    return [FunctionTool(spec=SPEC, do=_set)]
