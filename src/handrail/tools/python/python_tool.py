"""How a Python function is called as a tool: its arguments, its thread, its output, and its exceptions.

Authors use sdk.py; plugin.py finds what they wrote."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec

from handrail.domain.definition.model import Category
from handrail.engine.tool import Later, Progress, ToolCall, ToolFailed
from handrail.foundation.call_signature import CallSignature
from handrail.tools.python.function_tool import CallHandler, FunctionTool
from handrail.tools.python.signature import ToolContext
from handrail.tools.sdk import CAPTURED, Function, PythonTool

OUTPUT_BYTES_MAX: Final = 1_000_000
MESSAGE_MAX: Final = 1_000
CATEGORIES: Final[Mapping[type[Exception], Category]] = {
    TimeoutError: Category.TIMEOUT,
    PermissionError: Category.PERMISSION,
    FileNotFoundError: Category.NOT_FOUND,
    FileExistsError: Category.CONFLICT,
    OSError: Category.TRANSIENT,
    ValueError: Category.INVALID_INPUT,
}
"""The category of an exception, the narrower types first. A TypeError or KeyError is a bug of the tool itself."""


def built(made: PythonTool) -> FunctionTool:
    """The tool that calls an author's function."""
    instant = made.spec.is_instant
    captures, undoes = made.captures, made.undoes
    return FunctionTool(
        spec=made.spec,
        do=_handler(made.function, made.signature, instant=instant),
        capture_with=_looking(_handler(*captures, instant=instant) if captures else None) if undoes else None,
        undo_with=_handler(*undoes, instant=instant, captured=True) if undoes else None,
    )


def _looking(handler: CallHandler | None) -> CallHandler:
    """A handler for the capture. It always returns something: that marks a tool with its own undo."""

    async def capture_with(call: ToolCall) -> Any:
        return {CAPTURED: await handler(call) if handler else None}

    return capture_with


def _handler(function: Function, signature: CallSignature, *, instant: bool, captured: bool = False) -> CallHandler:
    wants_captured = captured and CAPTURED in inspect.signature(function).parameters

    async def handler(call: ToolCall) -> Any:
        try:
            named = signature.arguments({one: call.args[one] for one in call.args if one in signature.names})
        except ValueError as error:
            raise ToolFailed(Category.INVALID_INPUT, f"{call.tool}: {error}") from error
        if wants_captured:
            named[CAPTURED] = call.capture[CAPTURED]
        if signature.context:
            named[signature.context] = _context(call, is_threaded=not _is_inline(function, instant=instant))
        try:
            found = await _called(function, named, instant=instant)
        except (ToolFailed, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # an author's code: whatever it raises fails the call, not handrail
            raise ToolFailed(category_of(error), error_line(error)) from error
        return _output(call.tool, found)

    return handler


async def _called(function: Function, named: dict[str, Any], *, instant: bool) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**named)
    return function(**named) if instant else await asyncio.to_thread(partial(function, **named))


def _is_inline(function: Function, *, instant: bool) -> bool:
    return instant or inspect.iscoroutinefunction(function)


def _context(call: ToolCall, *, is_threaded: bool) -> ToolContext:
    progress: Progress = call.progress
    if is_threaded:  # progress must be reported on the event loop
        progress = partial(_pass_on, asyncio.get_running_loop(), call.progress)
    return ToolContext(
        key=call.key, run=call.run, step=call.step, attempt=call.attempt, deferred=call.deferred, progress=progress
    )


def _pass_on(loop: asyncio.AbstractEventLoop, progress: Progress, words: str) -> None:
    loop.call_soon_threadsafe(progress, words)


def category_of(error: BaseException) -> Category:
    """The failure category of an author's exception."""
    return next((category for kind, category in CATEGORIES.items() if isinstance(error, kind)), Category.TOOL_ERROR)


def error_line(error: BaseException) -> str:
    """An exception in one line; the journal never gets a traceback."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if words else ''}{words}"[:MESSAGE_MAX]


def _output(name: str, found: Any) -> Any:
    """The output as plain JSON, the same as the journal will return it."""
    if isinstance(found, Later):
        return found
    try:
        encoded = msgspec.json.encode(found)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise ToolFailed(Category.TOOL_ERROR, f"{name} returned something that is not JSON: {error}") from error
    if len(encoded) > OUTPUT_BYTES_MAX:
        message = f"{name} returned {len(encoded):,} bytes; at most {OUTPUT_BYTES_MAX:,} are allowed: return less"
        raise ToolFailed(Category.TOOL_ERROR, message)
    return msgspec.json.decode(encoded)
