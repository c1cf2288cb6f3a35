"""`handrail tools`: the group, and `call`, which calls one tool outside any run.

The other commands are in list_.py, check.py and stats.py."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click
import msgspec
from msgspec.structs import replace

from handrail.assembly.tools import toolbox_of
from handrail.domain.definition.model import Category, Effect
from handrail.domain.errors import Conflict, Forbidden, HandrailError, Invalid, Limited, NotFound, Unavailable
from handrail.domain.run.tool_question import PersonReply, ToolQuestion
from handrail.domain.secrets.secret_reference import reference_places
from handrail.engine.clock import new_id, system_entropy
from handrail.engine.tool import Later, PlanTool, ToolAsks, ToolCall, ToolFailed, ToolSpec
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.run.runnable import value_of
from handrail.interfaces.cli.tools.check import check
from handrail.interfaces.cli.tools.list_ import list_, print_progress
from handrail.interfaces.cli.tools.stats import stats
from handrail.interfaces.cli.words.answer import Exit, answer
from handrail.interfaces.cli.words.asking import require_yes
from handrail.interfaces.cli.words.terminal_edge import put, put_json, say
from handrail.interfaces.pictures.caption import plain
from handrail.tools.registry import Registry

QUESTIONS_MAX: Final = 20
"""The most questions of a tool that one call answers."""
ERROR_OF: Mapping[Category, type[HandrailError]] = {
    Category.NOT_FOUND: NotFound,
    Category.INVALID_INPUT: Invalid,
    Category.CONFLICT: Conflict,
    Category.PERMISSION: Forbidden,
    Category.RATE_LIMITED: Limited,
    Category.TRANSIENT: Unavailable,
    Category.TIMEOUT: Unavailable,
}


@click.group()
def command() -> None:
    """List the tools that plans can call, check their servers, show statistics, and call a tool by hand."""


for one in (check, list_, stats):
    command.add_command(one)


@command.command()
@click.argument("name")
@click.option("-a", "--arg", "typed", multiple=True, metavar="NAME=VALUE", help="An argument.")
@click.option("--args", "text", metavar="JSON", help="All arguments as one JSON object.")
@click.option("--answer", "answers", multiple=True, metavar="JSON", help="The answer if the tool asks; false: no.")
@click.option("--yes", is_flag=True, help="Do not ask before a tool that changes something.")
@json_option
@click.pass_context
@reports_errors
async def call(
    ctx: click.Context,
    name: str,
    typed: tuple[str, ...],
    text: str | None,
    answers: tuple[str, ...],
    yes: bool,
    as_json: bool,
) -> None:
    """Call one tool by hand, outside any run: the call is not journaled, and nothing undoes it."""
    replies = [_reply(one) for one in answers]
    toolbox = toolbox_of(settings_of(ctx))
    try:
        output = await _called(toolbox, name, _CallOptions(typed, text, replies), is_agreed=yes)
    except ToolAsks as asked:
        _print_question(name, asked.question, as_json=as_json)
        sys.exit(Exit.WAITING)
    finally:
        await toolbox.close()
    answer(output, as_json=as_json, as_text=lambda: _print(output))


class _CallOptions(msgspec.Struct, frozen=True):
    """The options of one call."""

    args: Sequence[str]
    text: str | None
    replies: Sequence[PersonReply]


async def _called(toolbox: Registry, name: str, typed: _CallOptions, *, is_agreed: bool) -> Any:
    if "." in name:
        print_progress(f"connecting to {name.partition('.')[0]}")
    await toolbox.connect([name])
    tool = toolbox.find(name)
    try:
        await tool.ready()
    except ToolFailed as failure:
        raise _error_of(name, failure) from failure
    args = _arguments(tool.spec, typed.args, typed.text)
    if wrong := tool.misfits(args):
        hint = f"its arguments: {', '.join(tool.spec.args.get('properties', {})) or 'nothing'}"
        raise Invalid(f"{name}: {'; '.join(wrong)}", hint=hint)
    if tool.effect(args) is not Effect.NONE and not is_agreed:
        change = f"{name} changes something ({tool.effect(args).value})"
        require_yes(change, f"{change}. Call it?")
    say(f"calling {name} outside any run: the call is not journaled", err=True)
    return await _answered(tool, args, typed.replies)


async def _answered(tool: PlanTool, args: Mapping[str, Any], replies: Sequence[PersonReply]) -> Any:
    """The tool's output; its questions get the replies in order; a question without a reply raises ToolAsks."""
    key = new_id("call_", system_entropy)
    call = ToolCall(
        tool=tool.spec.name,
        args=args,
        key=key,
        run=key,
        step="call",
        references=reference_places(args, args, is_top=False),
        progress=lambda words: say(f"  {plain(words)}", err=True),
    )
    for reply in (*replies[:QUESTIONS_MAX], None):
        try:
            return await _answer_of(tool, call)
        except ToolAsks as asked:
            if reply is None:
                raise
            call = replace(call, answers={**call.answers, asked.question.digest: reply})
    raise AssertionError("the last round returns or raises")


async def _answer_of(tool: PlanTool, call: ToolCall) -> Any:
    try:
        output = await tool.call(call)
    except ToolFailed as failure:
        raise _error_of(tool.spec.name, failure) from failure
    return {"again_in_ms": output.delay_ms} if isinstance(output, Later) else output


def _error_of(name: str, failure: ToolFailed) -> HandrailError:
    kind = ERROR_OF.get(failure.category, HandrailError)
    message = f"{name} failed ({failure.category.value}): {failure.message}"
    return kind(message, hint="fix what it reports, then call it again")


def _reply(text: str) -> PersonReply:
    try:
        said = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        hint = """write --answer '{"branch": "main"}', or --answer true, or --answer false"""
        raise Invalid(f"--answer is not JSON: {error}", hint=hint) from error
    if isinstance(said, bool):
        return PersonReply(agreed=said)
    return PersonReply(agreed=True, content=said)


def _print_question(name: str, question: ToolQuestion, *, as_json: bool) -> None:
    hint = f"""call it again with --answer '{"true" if question.schema is None else "{...}"}', or --answer false"""
    data = {"asks": {"text": question.text, "schema": question.schema}, "hint": hint}

    def print_text() -> None:
        say(f"{name} asks: {plain(question.text)}", fg="yellow", err=True)
        if question.schema is not None:
            say(f"  the answer must fit: {plain(msgspec.json.encode(question.schema).decode())}", err=True)
        say(f"  what to do: {hint}", err=True)

    answer(data, as_json=as_json, as_text=print_text)


def _arguments(spec: ToolSpec, typed: Sequence[str], text: str | None) -> dict[str, Any]:
    args: dict[str, Any] = {}
    if text is not None:
        try:
            args = msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise Invalid(
                f"--args is not a JSON object: {error}", hint="""write --args '{"path": "a.txt"}'"""
            ) from error
    for word in typed:
        name, equals, value = word.partition("=")
        if not equals:
            raise Invalid(f"{word!r} is not `name=value`", hint="write -a name=value")
        args[name] = value_of(value, spec.args.get("properties", {}).get(name))
    return args


def _print(output: Any) -> None:
    if isinstance(output, str):
        put(output)
    else:
        put_json(output)
