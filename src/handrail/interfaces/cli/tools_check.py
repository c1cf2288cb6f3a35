"""`handrail tools check`: start each declared server, and say in words what is wrong with it or with tools.json.

What fits and what does not is judged in tools_fit.py; here servers are met, and it is told."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
from msgspec import Struct

from handrail.assembly import toolbox_of
from handrail.engine.tool import ToolFailed
from handrail.interfaces.cli.answer import Exit, answer, tell_table
from handrail.interfaces.cli.program import json_option, settings_of, told
from handrail.interfaces.cli.tools_fit import left_out, misfits
from handrail.interfaces.cli.tools_list import required_servers, say
from handrail.interfaces.pictures.caption import plain
from handrail.tools.mcp.declaration import Declared
from handrail.tools.mcp.servers import Servers
from handrail.tools.mcp.tool_server import ToolServer
from handrail.tools.registry import Registry


class Checked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a server is, and what is wrong."""

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
    """The tools that its lists keep out."""
    misfits: Sequence[str] = ()
    """What tools.json says of tools, and can't be so."""
    missing: Sequence[str] = ()
    """Secrets and variables that are not there, each with how to set it."""
    error: str = ""
    log: str = ""

    @property
    def is_well(self) -> bool:
        """Whether there is nothing to mend."""
        return self.is_reached and not self.misfits and not self.missing


@click.command()
@click.argument("name", required=False, default="")
@json_option
@click.pass_context
@told
async def check(ctx: click.Context, name: str, as_json: bool) -> None:
    """Start the declared servers, or the one of that NAME, and say what is wrong with them or with tools.json.

    Exit code 8 if one can't be reached, 1 if something else is wrong."""
    toolbox = toolbox_of(settings_of(ctx))
    try:
        checked = await _checked(toolbox, required_servers(toolbox, name))
    finally:
        await toolbox.close()
    is_well = all(one.is_well for one in checked)
    answer({"ok": is_well, "servers": checked}, as_json=as_json, words=lambda: _tell(checked))
    if not is_well:
        sys.exit(Exit.FAILED if all(one.is_reached for one in checked) else Exit.UNAVAILABLE)


async def _checked(toolbox: Registry, names: Sequence[str]) -> Sequence[Checked]:
    servers = toolbox.servers
    if servers is None or not names:
        return []
    say(f"meeting {', '.join(names)}")
    unreachable = await servers.meet(names)
    return [await _examined(servers, name, unreachable.get(name, "")) for name in names]


async def _examined(servers: Servers, name: str, error: str) -> Checked:
    server = servers.server(name)
    declared, standing = server.declared, server.connection.standing
    if error:
        return Checked(
            server=name,
            is_reached=False,
            origin=declared.origin,
            missing=_missing(server),
            error=error,
            log=standing.log,
        )
    schemas = await _schemas(server)
    return Checked(
        server=name,
        is_reached=True,
        origin=declared.origin,
        started_ms=standing.started_ms,
        version=standing.version,
        software=standing.server,
        tools=len(schemas),
        left_out=left_out(declared, schemas),
        misfits=misfits(declared, schemas),
        log=standing.log,
    )


async def _schemas(server: ToolServer) -> Mapping[str, Mapping[str, Any]]:
    try:
        return {one.name: one.args for one in await server.connection.listing()}
    except ToolFailed:  # it died just after it was met: the next check will say so
        return {}


def _missing(server: ToolServer) -> Sequence[str]:
    """All references of a declaration that nothing can be filled in for; a start names the first one only."""
    wrong: dict[str, None] = {}
    for text in _texts(server.declared):
        try:
            server.vault.text(text)
        except ToolFailed as failed:
            wrong[failed.message] = None
    return list(wrong)


def _texts(declared: Declared) -> Iterator[str]:
    yield from (declared.command, *declared.args, declared.cwd, declared.url)
    yield from declared.env.values()
    yield from declared.headers.values()


# --- in words -----------------------------------------------------------------------------------------


def _tell(checked: Sequence[Checked]) -> None:
    if not checked:
        click.echo("no server is declared: write .handrail/tools.json, with mcpServers", err=True)
        return
    head = ("server", "state", "started in", "protocol", "tools", "left out", "what it calls itself")
    tell_table(head, [_row(one) for one in checked])
    for one in checked:
        _tell_wrong(one)


def _row(one: Checked) -> tuple[object, ...]:
    if not one.is_reached:
        return (one.server, "can't be reached", "-", "-", "-", "-", "-")
    state = "ok" if one.is_well else "see below"
    return (
        one.server,
        state,
        f"{one.started_ms} ms",
        plain(one.version) or "-",
        one.tools,
        len(one.left_out) or "-",
        plain(one.software) or "-",
    )


def _tell_wrong(one: Checked) -> None:
    if one.error:
        first, *more = one.error.splitlines()
        click.secho(f"{one.server} can't be reached: {plain(first)}", fg="red", err=True)
        for line in more:
            click.echo(f"    {plain(line)}", err=True)
        click.echo(f"  what to do: mend it in {one.origin}; all that it said is in {one.log}", err=True)
    for words in one.missing:
        click.secho(f"{one.server}: {plain(words)}", fg="red", err=True)
    for words in one.misfits:
        click.secho(f"{one.server}: {one.origin}: {plain(words)}", fg="yellow", err=True)
    if one.left_out:
        click.echo(f"{one.server}: left out by allow and deny: {plain(', '.join(one.left_out))}", err=True)
