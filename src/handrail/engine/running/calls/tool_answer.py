"""The result of one tool call, within limits of time and size.

Async. A tool may fail, hang, raise anything or return nonsense; here all of that becomes one value. The result is
journaled in attempt.py."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from msgspec.structs import replace as with_

from handrail.domain.definition.duration import duration_text
from handrail.domain.definition.model import Category
from handrail.domain.run.tool_question import ToolQuestion
from handrail.engine.tool import Later, PlanTool, ToolAsks, ToolCall, ToolFailed

OUTPUT_BYTES_MAX: Final = 900_000
MESSAGE_LENGTH_MAX: Final = 2_000
HEARTBEATS_MAX: Final = 10
"""How many times its timeout a tool may take at most, however often it reports progress."""
CANCEL_WAIT_S: Final = 1.0
"""How long to wait for a cancelled call to end."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class ToolAnswer:
    """The result of a call: an output, a failure with its category, a request to be called later, or a question."""

    output: Any = None
    category: Category | None = None
    message: str = ""
    retry_after_ms: int | None = None
    later_ms: int | None = None
    question: ToolQuestion | None = None
    """What a person must answer before the call can be made again."""
    took_ms: int = 0
    late: Any = None
    """The answer of a call that ended after its timeout."""

    @property
    def error(self) -> str:
        """What went wrong, in one word; empty if nothing did."""
        return self.category.value if self.category is not None else ""


async def answer_of(tool: PlanTool, call: ToolCall, *, timeout_ms: int, is_undo: bool = False) -> ToolAnswer:
    """Call the tool and wait for its answer, up to its timeout."""
    loop = asyncio.get_running_loop()
    started = heard = loop.time()

    def timed(answer: ToolAnswer) -> ToolAnswer:
        return replace(answer, took_ms=round(1_000 * (loop.time() - started)))

    def progress(words: str) -> None:
        nonlocal heard
        heard = loop.time()
        call.progress(words)

    heeded = with_(call, progress=progress)
    work = loop.create_task(_said(tool.undo if is_undo else tool.call, heeded))
    try:
        while True:
            # Progress restarts the timeout, but only up to a limit: a tool must not run forever by reporting.
            until = min(heard + timeout_ms / 1_000, started + HEARTBEATS_MAX * timeout_ms / 1_000)
            await asyncio.wait({work}, timeout=max(0.0, until - loop.time()))
            if work.done():
                return timed(work.result())
            if loop.time() >= min(heard + timeout_ms / 1_000, started + HEARTBEATS_MAX * timeout_ms / 1_000):
                return timed(await _given_up(work, timeout_ms))
    finally:
        work.cancel()


async def instant_answer(tool: PlanTool, call: ToolCall) -> ToolAnswer:
    """Call a tool that waits for nothing."""
    return await _said(tool.call, call)


async def _given_up(work: asyncio.Task[ToolAnswer], timeout_ms: int) -> ToolAnswer:
    work.cancel()
    await asyncio.wait({work}, timeout=CANCEL_WAIT_S)
    timed_out = ToolAnswer(category=Category.TIMEOUT, message=f"no answer within {duration_text(timeout_ms)}")
    # Some tools finish instead of stopping. That they did have an effect must not be lost: it is journaled as late.
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
    except Exception as error:  # tools are foreign code: anything they raise is a failed call, not a crash
        message = f"{type(error).__name__}: {error}"[:MESSAGE_LENGTH_MAX]
        return ToolAnswer(category=Category.INTERNAL, message=message)
    if isinstance(output, Later):
        return ToolAnswer(later_ms=output.delay_ms)
    return _sized(output)


def _sized(output: Any) -> ToolAnswer:
    try:
        # Measured here: a journal entry that is too large would be refused later, when the effect has happened.
        size = len(_encode(output))
    except (TypeError, ValueError, RecursionError) as error:
        return ToolAnswer(category=Category.TOOL_ERROR, message=f"the output is not JSON: {error}"[:MESSAGE_LENGTH_MAX])
    if size > OUTPUT_BYTES_MAX:
        message = f"the output has {size} bytes; the limit is {OUTPUT_BYTES_MAX}"
        return ToolAnswer(category=Category.TOOL_ERROR, message=message)
    return ToolAnswer(output=output)
