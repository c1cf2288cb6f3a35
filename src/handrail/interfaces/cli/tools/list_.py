"""`handrail tools list`: all tools that plans can call, and the state of their servers.

No server is started: what a server has is known from the last time it was asked. `--connect` asks all servers now; one
that can't be reached is reported and does not hide the others."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from handrail.assembly.opening import open_reader
from handrail.assembly.tools import toolbox_of, tools_off
from handrail.domain.definition.model import Effect
from handrail.domain.errors import Forbidden, HandrailError, NotFound, Unavailable
from handrail.domain.instant import instant_text
from handrail.domain.scheduling.breaker import Breaker, BreakerStatus
from handrail.domain.suggestion import did_you_mean
from handrail.domain.trust.decision import COMMAND
from handrail.engine.clock import system_clock
from handrail.engine.reading.tool_stats import breakers_of
from handrail.engine.tool import ToolSpec
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.own_command import advise
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.words.times import TimeFormat, utc_option
from handrail.interfaces.pictures.caption import plain
from handrail.settings import Settings
from handrail.tools.mcp.servers import Recalled
from handrail.tools.registry import Registry

NO_SERVER = "-"
"""Shown for built-in tools, which have no server."""


class ToolOverview(Struct, frozen=True, kw_only=True):
    """The tools, and the state of their servers."""

    specs: Sequence[ToolSpec]
    off: Mapping[str, str]
    """Why every call of a tool is refused, by its name."""
    broken: Mapping[str, str]
    unreachable: Mapping[str, str]
    """Why a server can't be reached, by its name."""
    untrusted: Mapping[str, str]
    """Why a server of the project is not started, by its name."""
    shadowed: Mapping[str, Sequence[str]]
    """Files whose entry for a server does not count, because HANDRAIL_HOME has one of that name."""
    unasked: Sequence[str]
    """Servers that have not been asked for their tools yet."""
    breakers: Mapping[str, Breaker]
    now: int


@click.command("list")
@click.option("--server", metavar="NAME", default="", help="Only the tools of this server.")
@click.option("--built-in", "is_own", is_flag=True, help="Only built-in tools.")
@click.option("--connect", is_flag=True, help="Start the servers, and ask them now.")
@utc_option
@json_option
@click.pass_context
@reports_errors
async def list_(ctx: click.Context, server: str, is_own: bool, connect: bool, is_utc: bool, as_json: bool) -> None:
    """List all tools that plans of this project can call, and why some servers and plugins can't be used.

    Starts no server unless --connect is given: it lists what each server had when it was last asked."""
    if is_own and (server or connect):
        raise click.UsageError("--built-in can't be combined with --server or --connect")
    settings = settings_of(ctx)
    toolbox = toolbox_of(settings)
    try:
        names = [] if is_own else required_servers(toolbox, server)
        overview = await _overview(toolbox, settings, names, is_one=bool(server), connect=connect)
    finally:
        await toolbox.close()
    if server in overview.untrusted:
        raise Forbidden(overview.untrusted[server], hint=f"look at it, then run `{COMMAND}`")
    if server in overview.unreachable:
        hint = f"run `handrail tools check {server}` for details"
        raise Unavailable(f"{server} can't be reached: {overview.unreachable[server]}", hint=hint)
    answer(
        _as_data(overview),
        as_json=as_json,
        as_text=lambda: _print(overview, TimeFormat(now=overview.now, is_utc=is_utc)),
    )


async def _overview(
    toolbox: Registry, settings: Settings, names: Sequence[str], *, is_one: bool, connect: bool
) -> ToolOverview:
    """The tools of these servers, and, unless only one was asked for, all others."""
    servers = toolbox.servers
    off = {name: why for name, why in (servers.off() if servers is not None else {}).items() if name in names}
    askable = [name for name in names if name not in off]
    unreachable: Mapping[str, str] = {}
    if servers is not None and askable and connect:
        print_progress(f"connecting to {', '.join(askable)}")
        unreachable = await servers.connect(askable)
    recalled = servers.recalled(askable) if servers is not None else Recalled()
    ours = [] if is_one else [spec for spec in toolbox.specs() if not spec.server]
    return ToolOverview(
        specs=sorted((*ours, *recalled.specs), key=lambda spec: spec.name),
        off={} if is_one else tools_off(settings),
        broken={} if is_one else dict(toolbox.broken),
        unreachable=unreachable,
        untrusted=off,
        shadowed={name: files for name, files in (servers.shadowed() if servers else {}).items() if name in names},
        unasked=sorted(recalled.unasked - unreachable.keys()),
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


def print_progress(text: str) -> None:
    """Print progress, at a terminal only."""
    if sys.stderr.isatty():
        say(f"{text} ...", dim=True, err=True)


async def _breakers(settings: Settings, servers: Sequence[str]) -> Mapping[str, Breaker]:
    if not servers:
        return {}
    try:
        async with open_reader(settings) as look:
            return await breakers_of(look.store, servers, project=look.project.id)
    except HandrailError as error:  # the list of tools is useful even when the journal can't be read
        say(f"the state of the circuit breakers is unknown: {error}", fg="yellow", err=True)
        return {}


# --- as data ------------------------------------------------------------------------------------------


def _as_data(overview: ToolOverview) -> dict[str, Any]:
    tools = [_tool_data(spec, overview) for spec in overview.specs]
    return listing(
        "tools",
        tools,
        off=overview.off,
        broken=overview.broken,
        unreachable=overview.unreachable,
        untrusted=overview.untrusted,
        shadowed=overview.shadowed,
        unasked=overview.unasked,
    )


def _tool_data(spec: ToolSpec, overview: ToolOverview) -> dict[str, Any]:
    fields = {**msgspec.to_builtins(spec), "breaker": _breaker_data(spec, overview)}
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def _breaker_data(spec: ToolSpec, overview: ToolOverview) -> dict[str, Any] | None:
    breaker = overview.breakers.get(spec.server)
    if breaker is None:
        return None
    if breaker.status is BreakerStatus.CLOSED:
        return {"status": breaker.status.value}
    return {"status": breaker.status.value, "until": instant_text(breaker.until), "reason": breaker.message}


# --- for people -----------------------------------------------------------------------------------------


HEAD: Final = (
    Column("tool"),
    Column("effect", 1),
    Column("undo", 3),
    Column("idempotent", 4),
    Column("server", 6),
    Column("breaker", 2),
    Column("limits", 5),
    Column("description"),
)


def _print(overview: ToolOverview, shown: TimeFormat) -> None:
    print_table(HEAD, [_row(spec, overview, shown) for spec in overview.specs])
    _print_off(overview)
    for name, reason in overview.unreachable.items():
        say(f"server {name} can't be reached: {plain(reason)}", fg="red", err=True)
        advise(f"  what to do: run `handrail tools check {name}` for details")
    for name, files in overview.shadowed.items():
        say(f"server {name}: your own entry counts, not that of {plain(', '.join(files))}", err=True)
    if overview.unasked:
        say(f"tools not known yet: {', '.join(overview.unasked)}; ask with --connect", err=True)
    for name, reason in overview.broken.items():
        say(f"plugin {name} can't be used: {reason}", fg="red", err=True)


def _print_off(overview: ToolOverview) -> None:
    """Print what is off because the project is not trusted: a person can do something about it."""
    off = {name: why for name, why in overview.off.items() if COMMAND in why}
    off |= {f"server {name}": why for name, why in overview.untrusted.items()}
    for name, reason in off.items():
        say(f"{name} is off: {plain(reason)}", fg="yellow", err=True)
        say(f"  what to do: look at it, then run `{COMMAND}`", err=True)


def _row(spec: ToolSpec, overview: ToolOverview, shown: TimeFormat) -> tuple[str, ...]:
    return (
        plain(spec.name),
        spec.effect.value,
        plain(spec.undo) or "-",
        "yes" if spec.idempotent or spec.effect is Effect.NONE else "no",
        spec.server or NO_SERVER,
        breaker_words(overview.breakers.get(spec.server), shown),
        limits_of(spec) or "-",
        f"(off) {plain(spec.description)}" if spec.name in overview.off else plain(spec.description),
    )


def breaker_words(breaker: Breaker | None, shown: TimeFormat) -> str:
    """Whether calls go through to a server."""
    if breaker is None:
        return "-"
    if breaker.status is BreakerStatus.OPEN:
        return f"open until {shown.at(breaker.until)}" if shown.now < breaker.until else "open, next call tries"
    return "half-open" if breaker.status is BreakerStatus.HALF_OPEN else "closed"


def limits_of(spec: ToolSpec) -> str:
    """The limits on calls of a tool, for people."""
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
