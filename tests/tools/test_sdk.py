"""The kit for tools in Python: signatures, threads, contexts, outputs, failures, captures and undos."""

from __future__ import annotations

import asyncio
import datetime
import threading
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import pytest

from handrail.domain.definition.model import Category, Effect, Retry
from handrail.domain.errors import Invalid
from handrail.engine.tool import Later
from handrail.tools.python.python_tool import built, category_of
from handrail.tools.sdk import ToolContext, fail, later, tool
from handrail.tools.testkit import call, check, done, undo
from tools.calls import Fails, call_of


class Size(msgspec.Struct):
    width: int
    height: int = 1


@tool("shape.area", effect="none", retry={"attempts": 5, "on": ["transient"]}, concurrency=2, rate="5/s")
async def area(size: Size, times: Annotated[int, msgspec.Meta(ge=1)] = 1, tags: list[str] = ["a"]) -> Any:  # noqa: B006
    tags.append("mine")
    return {"area": size.width * size.height * times, "size": size, "tags": tags}


async def test_a_function_gets_its_own_types_and_fresh_defaults() -> None:
    for _ in range(2):
        found = await call(area, {"size": {"width": 3}, "times": 2})
        assert found == {"area": 6, "size": {"width": 3, "height": 1}, "tags": ["a", "mine"]}
    assert area.spec.description == "shape.area"
    assert area.spec.retry == Retry(attempts=5, on=(Category.TRANSIENT,))
    assert (area.spec.concurrency, area.spec.rate, area.spec.effect) == (2, "5/s", Effect.NONE)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "`size` is missing"),
        ({"size": {"width": "3"}}, "`size.width`"),
        ({"size": {"width": 3}, "times": 0}, "`times`"),
        ({"size": {"width": 3}, "tiems": 1}, "did you mean `times`?"),
    ],
)
async def test_arguments_are_held_against_the_signature(args: dict[str, Any], words: str) -> None:
    with Fails(Category.INVALID_INPUT, words):
        await call(area, args)


async def test_what_only_the_types_can_judge_is_judged_too() -> None:
    @tool("day.of", effect="none")
    def day(when: datetime.date, length: datetime.timedelta = datetime.timedelta(1)) -> str:
        return (when + length).isoformat()

    assert await call(day, {"when": "2026-11-15"}) == "2026-11-16"
    for args in ({"when": "2026-02-31"}, {"when": "2026-11-15", "length": "long"}):
        with Fails(Category.INVALID_INPUT):
            await call(day, args)


async def test_a_plain_function_runs_in_a_thread_and_an_instant_one_does_not() -> None:
    @tool("where.am", effect="none")
    def away() -> bool:
        return threading.current_thread() is threading.main_thread()

    @tool("where.here", effect="none", instant=True)
    def here() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert (await call(away, {}), await call(here, {})) == (False, True)
    assert here() is True  # called as a function, it is one


@pytest.mark.parametrize("threaded", [True, False])
async def test_a_function_may_know_its_call_and_tell_of_progress(threaded: bool) -> None:
    said: list[tuple[str, bool]] = []

    def told(about: ToolContext) -> list[Any]:
        about.progress("half")
        return [about.key, about.run, about.step, about.attempt, about.deferred]

    async def told_async(about: ToolContext) -> list[Any]:
        return told(about)

    made = tool("context.tell", effect="none")(told if threaded else told_async)
    listening = call_of("context.tell", {}, attempt=2, deferred=1)
    main = threading.get_ident()
    listening = msgspec.structs.replace(
        listening, progress=lambda words: said.append((words, threading.get_ident() == main))
    )
    assert await built(made).call(listening) == ["key-1", "run_22222222", "a-step", 2, 1]
    await asyncio.sleep(0)
    assert said == [("half", True)]  # heard on the event loop, wherever it was said


class Odd(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (TimeoutError("late"), "timeout"),
        (ConnectionResetError("gone"), "transient"),
        (OSError("disk"), "transient"),
        (PermissionError("no"), "permission"),
        (FileNotFoundError("where"), "not_found"),
        (FileExistsError("there"), "conflict"),
        (ValueError("bad"), "invalid_input"),
        (TypeError("bug"), "tool_error"),
        (KeyError("bug"), "tool_error"),
        (Odd("a\n  b"), "tool_error"),
        (Odd(), "tool_error"),
        (SystemExit(3), "tool_error"),
        (BaseException("of its own"), "tool_error"),
    ],
)
async def test_an_exception_has_a_category_and_no_traceback(error: BaseException, category: str) -> None:
    @tool("always.fails", effect="none")
    def fails() -> None:
        raise error

    with Fails(Category(category), type(error).__name__) as failure:
        await call(fails, {})
    assert "\n" not in failure.failed.message
    assert "Traceback" not in failure.failed.message
    assert category_of(error) is Category(category)


async def test_a_function_may_fail_in_a_category_of_its_choice() -> None:
    @tool("always.busy", effect="none")
    def busy() -> None:
        fail("rate_limited", "not now", retry_after="30s")

    with Fails(Category.RATE_LIMITED, "not now") as failure:
        await call(busy, {})
    assert failure.failed.retry_after_ms == 30_000
    with pytest.raises(ValueError, match="mood"):
        fail("mood", "?")


async def test_a_function_may_ask_to_be_called_later() -> None:
    @tool("job.await", effect="none")
    async def wait(context: ToolContext) -> Any:
        return "done" if context.deferred else later("5m")

    assert await call(wait, {}) == Later(300_000)
    assert await call(wait, {}, deferred=1) == "done"
    assert await check(wait, {}) == []


@pytest.mark.parametrize("output", [object(), {1, object()}, b"\xff" * 2_000_000, "x" * 1_000_001, "\ud800"])
async def test_an_output_that_the_journal_can_not_hold_is_a_fault_of_the_tool(output: Any) -> None:
    @tool("wrong.output", effect="none")
    def wrong() -> Any:
        return output

    with Fails(Category.TOOL_ERROR, "wrong.output returned"):
        await call(wrong, {})


async def test_an_async_function_can_be_cancelled() -> None:
    @tool("long.work", effect="none")
    async def work() -> None:
        await asyncio.Event().wait()

    task = asyncio.ensure_future(call(work, {}))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def untyped(name) -> None:  # type: ignore[no-untyped-def]
    """No type."""


def starred(*names: str) -> None:
    """Any number."""


@pytest.mark.parametrize(("function", "words"), [(untyped, "has no type"), (starred, "by name")])
def test_a_signature_that_no_plan_could_call_is_refused(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        tool("bad.one", effect="none")(function)


def test_promises_are_read_at_once() -> None:
    for name in ("hello", "Greet.hello", "greet.", "a.b.c", "greet.héllo", "greet.hello\n", ""):
        with pytest.raises(ValueError, match="not a tool name"):
            tool(name, effect="none")
    with pytest.raises(ValueError, match="harmless"):
        tool("a.b", effect="harmless")(lambda: None)
    with pytest.raises(Invalid):
        tool("a.b", effect="none", timeout="long")
    with pytest.raises(ValueError, match="atempts"):
        tool("a.b", effect="none", retry={"atempts": 3})(lambda: None)


async def test_a_tool_with_an_undo_of_its_own_takes_its_work_back() -> None:
    shelf = ["old"]

    @tool("shelf.put", effect="reversible")
    def put(word: str, size: int = 1) -> None:
        shelf.append(word * size)

    @put.capture
    async def look() -> int:
        return len(shelf)

    @put.undo
    def take_off(captured: int, context: ToolContext) -> str:
        del shelf[captured:]
        return context.key

    made = await done(put, {"word": "new"})
    assert (shelf, made.call.capture) == (["old", "new"], {"captured": 1})
    assert await undo(put, made) == "test-key:undo"
    assert await undo(put, made) == "test-key:undo"
    assert shelf == ["old"]
    with pytest.raises(TypeError, match="has no argument `wrod`; it has: size, word"):

        @put.undo
        def misspelt(wrod: str) -> None: ...
