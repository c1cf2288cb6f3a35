"""`handrail tools list`: all tools that plans can call, with what is known of their servers.

Servers are met for this, all at once; one that can't be reached is told with the reason and hides no other."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec
from msgspec import Struct

from handrail.assembly import reading, toolbox_of
from handrail.domain.breaker import Breaker, BreakerStatus
from handrail.domain.definition import Effect
from handrail.domain.errors import HandrailError, NotFound, Unavailable
from handrail.domain.suggestion import did_you_mean
from handrail.engine.clock import instant_text, system_clock
from handrail.engine.tool import ToolSpec
from handrail.engine.tool_figures import breakers_of
from handrail.interfaces.cli.answer import answer, tell_table
from handrail.interfaces.cli.program import json_option, settings_of, told
from handrail.interfaces.pictures.caption import plain
from handrail.settings import Settings
from handrail.tools.registry import Registry

OUR_OWN = "-"
"""What stands in a table where other tools have a server."""


class Seen(Struct, frozen=True, kw_only=True):
    """The tools, and all there is to say about where they are."""

    specs: Sequence[ToolSpec]
    broken: Mapping[str, str]
    unreachable: Mapping[str, str]
    """By server, why it can't be reached."""
    breakers: Mapping[str, Breaker]
    now: int


@click.command("list")
@click.option("--server", metavar="NAME", default="", help="Only the tools of this server.")
@click.option("--built-in", "is_own", is_flag=True, help="Only tools of this process; no server is started.")
@json_option
@click.pass_context
@told
async def list_(ctx: click.Context, server: str, is_own: bool, as_json: bool) -> None:
    """All tools that plans of this project can call; servers and plugins that can't be used, with the reason."""
    if server and is_own:
        raise click.UsageError("--server and --built-in do not go together: leave one out")
    settings = settings_of(ctx)
    toolbox = toolbox_of(settings)
    try:
        seen = await _seen(toolbox, settings, server=server, is_own=is_own)
    finally:
        await toolbox.close()
    if server in seen.unreachable:
        hint = f"`handrail tools check {server}` says more"
        raise Unavailable(f"{server} can't be reached: {seen.unreachable[server]}", hint=hint)
    answer(_as_data(seen), as_json=as_json, words=lambda: _tell(seen))


async def _seen(toolbox: Registry, settings: Settings, *, server: str, is_own: bool) -> Seen:
    names = [] if is_own else required_servers(toolbox, server)
    unreachable: Mapping[str, str] = {}
    if toolbox.servers is not None and names:
        say(f"meeting {', '.join(names)}")
        unreachable = await toolbox.servers.meet(names)
    return Seen(
        specs=[spec for spec in toolbox.specs() if not server or spec.server == server],
        broken={} if server else dict(toolbox.broken),
        unreachable=unreachable,
        breakers=await _breakers(settings, names),
        now=system_clock(),
    )


def required_servers(toolbox: Registry, server: str) -> Sequence[str]:
    """The declared servers, or this one of them; NotFound with the nearest name."""
    names = sorted(toolbox.servers.names()) if toolbox.servers is not None else []
    if not server:
        return names
    if server not in names:
        hint = did_you_mean(server, names) or "declare it in .handrail/tools.json, under mcpServers"
        raise NotFound(f"no server {server!r} is declared", hint=hint)
    return [server]


def say(words: str) -> None:
    """A word for whoever waits at a terminal; scripts are not told."""
    if sys.stderr.isatty():
        click.secho(f"{words} ...", dim=True, err=True)


async def _breakers(settings: Settings, servers: Sequence[str]) -> Mapping[str, Breaker]:
    if not servers:
        return {}
    try:
        async with reading(settings) as look:
            return await breakers_of(look.store, servers)
    except HandrailError as error:  # what can be called is worth telling even when the journal is in trouble
        click.secho(f"the state of breakers is not known: {error}", fg="yellow", err=True)
        return {}


# --- as data ------------------------------------------------------------------------------------------


def _as_data(seen: Seen) -> dict[str, Any]:
    return {
        "tools": [_tool_data(spec, seen) for spec in seen.specs],
        "broken": seen.broken,
        "unreachable": seen.unreachable,
    }


def _tool_data(spec: ToolSpec, seen: Seen) -> dict[str, Any]:
    fields = {**msgspec.to_builtins(spec), "breaker": _breaker_data(spec, seen)}
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def _breaker_data(spec: ToolSpec, seen: Seen) -> dict[str, Any] | None:
    breaker = seen.breakers.get(spec.server)
    if breaker is None:
        return None
    if breaker.status is BreakerStatus.CLOSED:
        return {"status": breaker.status.value}
    return {"status": breaker.status.value, "until": instant_text(breaker.until), "reason": breaker.message}


# --- in words -----------------------------------------------------------------------------------------


def _tell(seen: Seen) -> None:
    head = ("server", "tool", "effect", "undo", "idempotent", "breaker", "limits", "what it does")
    tell_table(head, [_row(spec, seen) for spec in seen.specs])
    for name, reason in seen.unreachable.items():
        click.secho(f"server {name} can't be reached: {plain(reason)}", fg="red", err=True)
        click.echo(f"  what to do: `handrail tools check {name}` says more", err=True)
    for name, reason in seen.broken.items():
        click.secho(f"plugin {name} can't be used: {reason}", fg="red", err=True)


def _row(spec: ToolSpec, seen: Seen) -> tuple[str, ...]:
    return (
        spec.server or OUR_OWN,
        plain(spec.name),
        spec.effect.value,
        plain(spec.undo) or "-",
        "yes" if spec.idempotent or spec.effect is Effect.NONE else "no",
        breaker_words(seen.breakers.get(spec.server), seen.now),
        limits_of(spec) or "-",
        plain(spec.description),
    )


def breaker_words(breaker: Breaker | None, now: int) -> str:
    """Whether calls go through to a server."""
    if breaker is None:
        return "-"
    if breaker.status is BreakerStatus.OPEN:
        return f"open until {instant_text(breaker.until)}" if now < breaker.until else "open, next call tries"
    return "half-open" if breaker.status is BreakerStatus.HALF_OPEN else "closed"


def limits_of(spec: ToolSpec) -> str:
    """What bounds the calls of a tool, in words."""
    shared = spec.shared
    limits = (
        ("timeout", spec.timeout),
        ("at once", spec.concurrency),
        ("rate", spec.rate),
        ("tries", spec.retry.attempts if spec.retry else None),
        ("server at once", shared.concurrency if shared else None),
        ("server rate", shared.rate if shared else None),
    )
    return ", ".join(f"{name} {value}" for name, value in limits if value is not None)
