"""For testing tools: calls them as handrail does, and checks what they declare.

For authors of plugins; nothing here is used when plans run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.definition.model import Effect
from handrail.engine.tool import Later, PlanTool, ToolCall, ToolFailed
from handrail.tools.arguments import ArgumentSchema
from handrail.tools.python.python_tool import built
from handrail.tools.sdk import PythonTool


class CompletedCall(Struct, frozen=True):
    """A call that was made: its output, and the call with its capture, to repeat or undo it."""

    output: Any
    call: ToolCall


async def call(
    tool: PlanTool | PythonTool,
    args: Mapping[str, Any],
    *,
    key: str = "test-key",
    run: str = "run_test2222",
    **more: Any,
) -> Any:
    """The output of one call with its capture; ToolFailed as in a plan."""
    return (await done(tool, args, key=key, run=run, **more)).output


async def done(
    tool: PlanTool | PythonTool,
    args: Mapping[str, Any],
    *,
    key: str = "test-key",
    run: str = "run_test2222",
    **more: Any,
) -> CompletedCall:
    """The same, with what `repeat` and `undo` need."""
    whole = as_tool(tool)
    asked = ToolCall(tool=whole.spec.name, args=args, key=key, run=run, step=more.pop("step", "a-step"), **more)
    capture = msgspec.json.decode(msgspec.json.encode(await whole.capture(asked)))  # it goes through the journal
    asked = replace(asked, capture=capture)
    return CompletedCall(await whole.call(asked), asked)


async def undo(tool: PlanTool | PythonTool, made: CompletedCall) -> Any:
    """Undo a call."""
    return await as_tool(tool).undo(replace(made.call, key=f"{made.call.key}:undo"))


def as_tool(tool: PlanTool | PythonTool) -> PlanTool:
    """The tool as handrail sees it."""
    return built(tool) if isinstance(tool, PythonTool) else tool


async def check(
    tool: PlanTool | PythonTool,
    args: Mapping[str, Any],
    *,
    snapshot: Callable[[], Any] | None = None,
) -> list[str]:
    """What the tool declares but does not do; it is called, repeated and undone with these arguments.

    `snapshot` returns the state that the tool changes; without it, only the outputs can be checked."""
    whole = as_tool(tool)
    broken = _schema_flaws(whole, args)
    if broken:
        return broken
    look = snapshot or (lambda: None)
    before = look()
    try:
        made = await done(whole, args)
        broken += _output_flaws(made.output)
        after = look()
        broken += _effect_flaws(whole, args, is_changed=before != after)
        broken += await _repeat_flaws(whole, made, look)
        broken += await _undo_flaws(whole, made, look, before)
    except ToolFailed as error:
        broken.append(f"it fails: {error.category.value}: {error.message}")
    return broken


def _schema_flaws(tool: PlanTool, args: Mapping[str, Any]) -> list[str]:
    if tool.spec.args.get("type") != "object" or tool.spec.args.get("additionalProperties") is not False:
        return ["the schema of its arguments is not an object with additionalProperties false"]
    flaws = [f"the arguments don't fit: {words}" for words in tool.misfits(args)]
    if not ArgumentSchema(tool.spec.args).misfits({**args, "no such argument": 1}):
        flaws.append("it accepts unknown arguments")
    return flaws


def _output_flaws(output: Any) -> list[str]:
    if isinstance(output, Later):
        return []
    try:
        same = msgspec.json.decode(msgspec.json.encode(output)) == output
    except (TypeError, ValueError):
        same = False
    return [] if same else ["its output is not plain JSON"]


def _effect_flaws(tool: PlanTool, args: Mapping[str, Any], *, is_changed: bool) -> list[str]:
    says_none = tool.effect(args) is Effect.NONE
    return ["it declares `effect: none` but has an effect"] if says_none and is_changed else []


async def _repeat_flaws(tool: PlanTool, made: CompletedCall, look: Callable[[], Any]) -> list[str]:
    """A crash in the middle is repeated under the same key, with the same capture."""
    if not tool.spec.idempotent:
        return []
    after = look()
    await tool.call(replace(made.call, attempt=2))
    return [] if look() == after else ["it declares `idempotent` but has its effect twice"]


async def _undo_flaws(tool: PlanTool, made: CompletedCall, look: Callable[[], Any], before: Any) -> list[str]:
    if tool.effect(made.call.args) is not Effect.REVERSIBLE:
        return []
    await undo(tool, made)
    if look() != before:
        return ["its undo does not restore the state from before"]
    await undo(tool, made)
    return [] if look() == before else ["its undo has another result if it is done twice"]
