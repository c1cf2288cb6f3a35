"""What the fixture's tools do, as far as handrail's surface can say it: answers, errors, progress, questions, tasks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from handrail.interfaces.mcp.surface.caller import AskFirst, Caller, Response, TaskView, ToolReply, UserQuestion
from handrail.interfaces.mcp.surface.surface_protocol import SurfaceChange
from outside.conformance.feed import ListFeed
from outside.conformance.task_book import Broken, MemoryBook, Task, Work

Arguments = Mapping[str, Any]
Form = Mapping[str, Mapping[str, Any]]
Deed = Callable[[Arguments, Caller], Awaitable[ToolReply | TaskView]]

INTERNAL_ERROR = -32603
STEP_S = 0.05
JOB_S = 0.5
DONE = ToolReply(text="done")

TITLED = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
PLAIN = ["option1", "option2", "option3"]
CONTACT: Form = {"username": {"type": "string"}, "email": {"type": "string"}}
DEFAULTS: Form = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS: Form = {
    "untitledSingle": {"type": "string", "enum": PLAIN},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": PLAIN}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


def question(text: str, name: str, kind: str = "string") -> UserQuestion:
    """A question for one value."""
    return UserQuestion(text=text, form={name: {"type": kind}}, required=(name,))


NAME = question("What is your name?", "name")
COLOR = question("Which color?", "color")
CONFIRM = question("Go on?", "ok", "boolean")
WHO = question("Who is it for?", "user_name")


async def simple(_: Arguments, __: Caller) -> ToolReply:
    return ToolReply(text="plain text")


async def done(_: Arguments, __: Caller) -> ToolReply:
    return DONE


async def failing(_: Arguments, __: Caller) -> ToolReply:
    return ToolReply(text="this tool always fails", is_error=True)


async def with_progress(_: Arguments, caller: Caller) -> ToolReply:
    for part in (0, 50, 100):
        await caller.progress(part, 100)
        await asyncio.sleep(STEP_S)
    return DONE


async def region(arguments: Arguments, _: Caller) -> ToolReply:
    return ToolReply(text=str(arguments["region"]))


async def greet(arguments: Arguments, _: Caller) -> ToolReply:
    return ToolReply(text=f"Hello, {arguments.get('name')}!")


def asking(form: Form) -> Deed:
    """A tool that has a form filled in."""

    async def ask(arguments: Arguments, caller: Caller) -> ToolReply:
        text = str(arguments.get("message", "Please fill in"))
        answer = await caller.ask("form", UserQuestion(text=text, form=form), about="form")
        return ToolReply(text=f"answer: action={answer.response}, content={json.dumps(answer.content)}")

    return ask


async def name_first(_: Arguments, caller: Caller) -> ToolReply:
    answer = await caller.ask("user_name", NAME, about="name")
    if answer.response is not Response.ACCEPT or "name" not in answer.content:
        raise AskFirst("user_name", NAME, about="name")
    return ToolReply(text=f"Hello, {answer.content['name']}!")


async def confirm_first(_: Arguments, caller: Caller) -> ToolReply:
    answer = await caller.ask("confirm", CONFIRM, about="confirm")
    if answer.response is not Response.ACCEPT:
        raise AskFirst("confirm", CONFIRM, about="confirm")
    return ToolReply(text="state-ok")


async def two_rounds(_: Arguments, caller: Caller) -> ToolReply:
    try:
        await caller.ask("step2", COLOR, about="second round")
    except AskFirst as second:
        await caller.ask("step1", NAME, about="first round")
        raise second from None
    return ToolReply(text="both steps done")


def deeds_of(feed: ListFeed, book: MemoryBook) -> Mapping[str, Deed]:
    """All tools that the surface answers, by name."""
    return {
        "test_simple_text": simple,
        "test_error_handling": failing,
        "test_tool_with_progress": with_progress,
        "test_elicitation": asking(CONTACT),
        "test_elicitation_sep1034_defaults": asking(DEFAULTS),
        "test_elicitation_sep1330_enums": asking(ENUMS),
        "test_streaming_elicitation": name_first,
        "test_input_required_result_elicitation": name_first,
        "test_input_required_result_request_state": confirm_first,
        "test_input_required_result_tampered_state": confirm_first,
        "test_input_required_result_multi_round": two_rounds,
        "test_trigger_tool_change": _telling(feed, "tools"),
        "test_trigger_prompt_change": _telling(feed, "prompts"),
        "header_tool": region,
        "json_schema_2020_12_tool": done,
        "greet": greet,
        "slow_compute": _as_task(book, _computing),
        "failing_job": _as_task(book, _failing_job),
        "protocol_error_job": _as_task(book, _breaking),
        "confirm_delete": _as_task(book, _asks("Delete?")),
        "multi_input": _as_task(book, _asks("First?", "Second?")),
        "test_tool_with_task": _asking_then_task(book),
    }


def _telling(feed: ListFeed, which: str) -> Deed:
    async def tell(_: Arguments, __: Caller) -> ToolReply:
        feed.tell(SurfaceChange(lists=(which,)))
        return DONE

    return tell


def _as_task(book: MemoryBook, works: Callable[[Arguments], Work]) -> Deed:
    """A tool whose work becomes a task for clients that can follow one, and is waited for by the others."""

    async def call(arguments: Arguments, caller: Caller) -> ToolReply | TaskView:
        work = works(arguments)
        return book.start(work) if caller.wants_tasks else await work(Task())

    return call


def _computing(arguments: Arguments) -> Work:
    async def work(_: Task) -> ToolReply:
        await asyncio.sleep(float(arguments.get("seconds", 0)))
        return ToolReply(text="computed")

    return work


def _failing_job(_: Arguments) -> Work:
    async def work(_: Task) -> ToolReply:
        await asyncio.sleep(JOB_S)
        return ToolReply(text="the job failed", is_error=True)

    return work


def _breaking(_: Arguments) -> Work:
    async def work(_: Task) -> ToolReply:
        raise Broken(INTERNAL_ERROR, "broken")

    return work


def _asks(*texts: str) -> Callable[[Arguments], Work]:
    async def work(task: Task) -> ToolReply:
        await task.ask(*texts)
        return DONE

    return lambda _: work


def _asking_then_task(book: MemoryBook) -> Deed:
    async def call(_: Arguments, caller: Caller) -> ToolReply | TaskView:
        answer = await caller.ask("user_name", WHO, about="who")

        async def work(_: Task) -> ToolReply:
            return ToolReply(text=f"Hello {next(iter(answer.content.values()), '')}")

        return book.start(work)

    return call
