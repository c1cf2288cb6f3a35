"""`handrail tools`: what plans can call, and a call by hand."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click
import msgspec

from handrail.assembly import toolbox_of
from handrail.domain.definition import Category, Effect
from handrail.domain.errors import Conflict, Forbidden, HandrailError, Invalid, Limited, NotFound, Unavailable
from handrail.engine.clock import new_id, system_entropy
from handrail.engine.tool import Later, Tool, ToolCall, ToolFailed, ToolSpec
from handrail.interfaces.cli.answer import answer, tell_table
from handrail.interfaces.cli.program import json_option, settings_of, told
from handrail.interfaces.cli.runnable import value_of
from handrail.tools.registry import Registry

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
    """List what plans can call, and call one by hand."""


@command.command("list")
@json_option
@click.pass_context
@told
async def list_(ctx: click.Context, as_json: bool) -> None:
    """All tools that plans of this project can call; plugins that can't be used, with the reason."""
    toolbox = toolbox_of(settings_of(ctx))
    specs, broken = toolbox.specs(), dict(toolbox.broken)
    data = {"tools": [_as_data(spec) for spec in specs], "broken": broken}

    def words() -> None:
        cells = [(spec.name, spec.effect.value, _idempotent(spec), _limits(spec), spec.description) for spec in specs]
        tell_table(("tool", "effect", "idempotent", "limits", "what it does"), cells)
        for name, reason in broken.items():
            click.secho(f"plugin {name} can't be used: {reason}", fg="red", err=True)

    answer(data, as_json=as_json, words=words)


def _as_data(spec: ToolSpec) -> dict[str, Any]:
    fields = msgspec.to_builtins(spec)
    return {name: value for name, value in fields.items() if value is not None}


def _idempotent(spec: ToolSpec) -> str:
    return "yes" if spec.idempotent or spec.effect is Effect.NONE else "no"


def _limits(spec: ToolSpec) -> str:
    limits = (
        ("timeout", spec.timeout),
        ("at once", spec.concurrency),
        ("rate", spec.rate),
        ("tries", spec.retry.attempts if spec.retry else None),
    )
    return ", ".join(f"{name} {value}" for name, value in limits if value is not None)


@command.command()
@click.argument("name")
@click.option("-a", "--arg", "typed", multiple=True, metavar="NAME=VALUE", help="An argument.")
@click.option("--args", "text", metavar="JSON", help="All arguments as one JSON object.")
@click.option("--yes", is_flag=True, help="Do not ask, even if the tool changes something.")
@json_option
@click.pass_context
@told
async def call(
    ctx: click.Context, name: str, typed: tuple[str, ...], text: str | None, yes: bool, as_json: bool
) -> None:
    """Call one tool by hand, outside any run: nothing of it is journaled, and nothing undoes it."""
    toolbox = toolbox_of(settings_of(ctx))
    try:
        output = await _called(toolbox, name, typed, text, is_agreed=yes)
    finally:
        await toolbox.close()
    answer(output, as_json=as_json, words=lambda: _tell(output))


async def _called(toolbox: Registry, name: str, typed: tuple[str, ...], text: str | None, *, is_agreed: bool) -> Any:
    tool = toolbox.find(name)
    args = _arguments(tool.spec, typed, text)
    if wrong := tool.misfits(args):
        hint = f"it takes: {', '.join(tool.spec.args.get('properties', {})) or 'nothing'}"
        raise Invalid(f"{name}: {'; '.join(wrong)}", hint=hint)
    if tool.effect(args) is not Effect.NONE and not is_agreed:
        _require_yes(name, tool.effect(args))
    click.echo(f"{name} is called outside any run: nothing is journaled", err=True)
    return await _answered(tool, args)


async def _answered(tool: Tool, args: Mapping[str, Any]) -> Any:
    key = new_id("call_", system_entropy)
    call = ToolCall(tool=tool.spec.name, args=args, key=key, run=key, step="call")
    try:
        output = await tool.call(call)
    except ToolFailed as failure:
        kind = ERROR_OF.get(failure.category, HandrailError)
        message = f"{tool.spec.name} failed ({failure.category.value}): {failure.message}"
        raise kind(message, hint="mend what it says, then call it again") from failure
    if isinstance(output, Later):
        return {"again_in_ms": output.delay_ms}
    return output


def _arguments(spec: ToolSpec, typed: tuple[str, ...], text: str | None) -> dict[str, Any]:
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


def _require_yes(name: str, effect: Effect) -> None:
    if not _is_terminal():
        raise Forbidden(f"{name} changes something ({effect.value})", hint="add --yes if you mean it")
    if not click.confirm(f"{name} changes something ({effect.value}). Call it?", err=True):
        raise Forbidden(f"{name} was not called", hint="nothing was changed")


def _tell(output: Any) -> None:
    if isinstance(output, str):
        click.echo(output)
    else:
        click.echo(msgspec.json.format(msgspec.json.encode(output), indent=2).decode())


def _is_terminal() -> bool:
    return sys.stdin.isatty()
