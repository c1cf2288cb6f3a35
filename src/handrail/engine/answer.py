"""An answer: what came of one call of a tool, within its time and size, whatever the tool does.

Async. A tool may fail, hang, raise anything or answer nonsense; here all of that becomes one value. Nothing is
journaled here: that is attempt.py's work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from msgspec.structs import replace as with_

from handrail.domain.definition import Category
from handrail.domain.duration import duration_text
from handrail.domain.question import ToolQuestion
from handrail.engine.tool import Later, PlanTool, ToolAsks, ToolCall, ToolFailed

OUTPUT_BYTES_MAX: Final = 900_000
MESSAGE_LENGTH_MAX: Final = 2_000
HEARTBEATS_MAX: Final = 10
"""How many times its timeout a tool may take at most, however often it says that it is still at work."""
GOODBYE_S: Final = 1.0
"""How long a call that was given up may take to end."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class ToolAnswer:
    """What came of a call: an output, a failure with its category, a wish to be called again later, or a question."""

    output: Any = None
    category: Category | None = None
    message: str = ""
    retry_after_ms: int | None = None
    later_ms: int | None = None
    question: ToolQuestion | None = None
    """What a person must say before the call can be made again."""
    took_ms: int = 0
    late: Any = None
    """A task of a call that was given up and has not ended yet."""


async def answer_of(tool: PlanTool, call: ToolCall, *, timeout_ms: int, is_undo: bool = False) -> ToolAnswer:
    """Call the tool and wait for what it says, as long as its timeout allows."""
    loop = asyncio.get_running_loop()
    began = heard = loop.time()

    def timed(answer: ToolAnswer) -> ToolAnswer:
        return replace(answer, took_ms=round(1_000 * (loop.time() - began)))

    def progress(words: str) -> None:
        nonlocal heard
        heard = loop.time()
        call.progress(words)

    heeded = with_(call, progress=progress)
    work = loop.create_task(_said(tool.undo if is_undo else tool.call, heeded))
    try:
        while True:
            until = min(heard + timeout_ms / 1_000, began + HEARTBEATS_MAX * timeout_ms / 1_000)
            await asyncio.wait({work}, timeout=max(0.0, until - loop.time()))
            if work.done():
                return timed(work.result())
            if loop.time() >= min(heard + timeout_ms / 1_000, began + HEARTBEATS_MAX * timeout_ms / 1_000):
                return timed(await _given_up(work, timeout_ms))
    finally:
        work.cancel()


async def instant_answer(tool: PlanTool, call: ToolCall) -> ToolAnswer:
    """Call a tool that waits for nothing."""
    return await _said(tool.call, call)


async def _given_up(work: asyncio.Task[ToolAnswer], timeout_ms: int) -> ToolAnswer:
    work.cancel()
    await asyncio.wait({work}, timeout=GOODBYE_S)
    timed_out = ToolAnswer(category=Category.TIMEOUT, message=f"no answer within {duration_text(timeout_ms)}")
    if work.done() and not work.cancelled():
        return replace(timed_out, late=work.result())
    return timed_out


async def _said(deed: Callable[[ToolCall], Awaitable[Any]], call: ToolCall) -> ToolAnswer:
    try:
        # Called here, not by the caller: a task that is cancelled before it starts would leave the coroutine unawaited.
        output = await deed(call)
    except ToolFailed as failure:
        return ToolAnswer(
            category=failure.category,
            message=failure.message[:MESSAGE_LENGTH_MAX],
            retry_after_ms=failure.retry_after_ms,
        )
    except ToolAsks as asking:
        return ToolAnswer(question=asking.question)
    except Exception as error:  # a tool is not ours: whatever it raises is a fact about the call, not a crash
        message = f"{type(error).__name__}: {error}"[:MESSAGE_LENGTH_MAX]
        return ToolAnswer(category=Category.INTERNAL, message=message)
    if isinstance(output, Later):
        return ToolAnswer(later_ms=output.delay_ms)
    return _sized(output)


def _sized(output: Any) -> ToolAnswer:
    try:
        size = len(_encode(output))
    except (TypeError, ValueError, RecursionError) as error:
        return ToolAnswer(category=Category.TOOL_ERROR, message=f"the output is no JSON: {error}"[:MESSAGE_LENGTH_MAX])
    if size > OUTPUT_BYTES_MAX:
        message = f"the output has {size} bytes; at most {OUTPUT_BYTES_MAX} fit into the journal"
        return ToolAnswer(category=Category.TOOL_ERROR, message=message)
    return ToolAnswer(output=output)
