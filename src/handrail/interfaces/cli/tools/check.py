"""`handrail tools check`: connect to each declared server, and report what is wrong with it or with tools.json.

fit.py compares tools.json with a server's tools."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from handrail.assembly.tools import toolbox_of
from handrail.engine.tool import ToolFailed
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.tools.fit import left_out, misfits
from handrail.interfaces.cli.tools.list_ import print_progress, required_servers
from handrail.interfaces.cli.words.answer import Exit, answer
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.pictures.caption import plain
from handrail.tools.mcp.declaration import Declared
from handrail.tools.mcp.servers import Servers
from handrail.tools.mcp.tool_server import ToolServer
from handrail.tools.registry import Registry


class ServerCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a server, and what is wrong."""

    server: str
    is_reached: bool
    origin: str
    """The file that declares it."""
    started_ms: int = 0
    version: str = ""
    software: str = ""
    """What the server calls itself, and its version."""
    tools: int = 0
    left_out: Sequence[str] = ()
    """The tools that `allow` and `deny` exclude."""
    listed_twice: Sequence[str] = ()
    """The tools that the server lists more than once: they are not offered."""
    misfits: Sequence[str] = ()
    """What tools.json says about tools that the server does not have."""
    missing: Sequence[str] = ()
    """Missing secrets and variables, each with how to set it."""
    error: str = ""
    log: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether there is nothing to fix."""
        return self.is_reached and not (self.misfits or self.missing or self.listed_twice)


@click.command()
@click.argument("name", required=False, default="")
@json_option
@click.pass_context
@reports_errors
async def check(ctx: click.Context, name: str, as_json: bool) -> None:
    """Connect to the declared servers, or to NAME, and report what is wrong with them or with tools.json.

    Exit code 8 if one can't be reached, 1 if something else is wrong."""
    toolbox = toolbox_of(settings_of(ctx))
    try:
        checked = await _checked(toolbox, required_servers(toolbox, name))
    finally:
        await toolbox.close()
    is_ok = all(one.is_ok for one in checked)
    answer({"ok": is_ok, "servers": checked}, as_json=as_json, as_text=lambda: _print(checked))
    if not is_ok:
        sys.exit(Exit.FAILED if all(one.is_reached for one in checked) else Exit.UNAVAILABLE)


async def _checked(toolbox: Registry, names: Sequence[str]) -> Sequence[ServerCheck]:
    servers = toolbox.servers
    if servers is None or not names:
        return []
    print_progress(f"connecting to {', '.join(names)}")
    unreachable = await servers.connect(names)
    return [await _server_check(servers, name, unreachable.get(name, "")) for name in names]


async def _server_check(servers: Servers, name: str, error: str) -> ServerCheck:
    """The state of a server, without secrets: its name, version and tools are its own words."""
    server = servers.server(name)
    found = await _seen(server, error)
    return msgspec.convert(server.vault.scrubbed(msgspec.to_builtins(found)), ServerCheck)


async def _seen(server: ToolServer, error: str) -> ServerCheck:
    declared, status = server.declared, server.connection.status
    if error:
        return ServerCheck(
            server=server.name,
            is_reached=False,
            origin=declared.origin,
            missing=_missing(server),
            error=error,
            log=status.log,
        )
    schemas = await _schemas(server)
    return ServerCheck(
        server=server.name,
        is_reached=True,
        origin=declared.origin,
        started_ms=status.started_ms,
        version=status.version,
        software=status.server,
        tools=len(schemas),
        left_out=left_out(declared, schemas),
        listed_twice=server.connection.status.listed_twice,
        misfits=misfits(declared, schemas),
        log=status.log,
    )


async def _schemas(server: ToolServer) -> Mapping[str, Mapping[str, Any]]:
    try:
        return {one.name: one.args for one in await server.connection.listing()}
    except ToolFailed:  # it ended just after it answered: the next check reports that
        return {}


def _missing(server: ToolServer) -> Sequence[str]:
    """All secrets and variables of a declaration that are not set; a start reports only the first one."""
    wrong: dict[str, None] = {}
    for text in _texts(server.declared):
        try:
            server.vault.text(text, server=server.name)
        except ToolFailed as failed:
            wrong[failed.message] = None
    return list(wrong)


def _texts(declared: Declared) -> Iterator[str]:
    yield from (declared.command, *declared.args, declared.cwd, declared.url)
    yield from declared.env.values()
    yield from declared.headers.values()


# --- for people -----------------------------------------------------------------------------------------


HEAD: Final = (
    Column("server"),
    Column("state"),
    Column("started in", 3),
    Column("protocol", 2),
    Column("tools", 1),
    Column("excluded", 4),
    Column("software"),
)


def _print(checked: Sequence[ServerCheck]) -> None:
    if not checked:
        say("no servers declared; add them to .handrail/tools.json, under mcpServers", err=True)
        return
    print_table(HEAD, [_row(one) for one in checked])
    for one in checked:
        _print_wrong(one)


def _row(one: ServerCheck) -> tuple[object, ...]:
    if not one.is_reached:
        return (one.server, "unreachable", "-", "-", "-", "-", "-")
    state = "ok" if one.is_ok else "see below"
    return (
        one.server,
        state,
        f"{one.started_ms} ms",
        plain(one.version) or "-",
        one.tools,
        len(one.left_out) or "-",
        plain(one.software) or "-",
    )


def _print_wrong(one: ServerCheck) -> None:
    if one.error:
        first, *more = one.error.splitlines()
        say(f"{one.server} can't be reached: {plain(first)}", fg="red", err=True)
        for line in more:
            say(f"    {plain(line)}", err=True)
        say(f"  what to do: fix it in {one.origin}; its log is {one.log}", err=True)
    for words in one.missing:
        say(f"{one.server}: {plain(words)}", fg="red", err=True)
    if one.listed_twice:
        say(f"{one.server}: listed twice, so not offered: {', '.join(one.listed_twice)}", fg="red", err=True)
    for words in one.misfits:
        say(f"{one.server}: {one.origin}: {plain(words)}", fg="yellow", err=True)
    if one.left_out:
        say(f"{one.server}: excluded by allow and deny: {plain(', '.join(one.left_out))}", err=True)
