"""`handrail db copy|key|admit|era`: a journal that several machines share: move a home into it, and admit nodes."""

from __future__ import annotations

import os
from pathlib import Path

import click

from handrail.assembly.moving import admit_node, move_home, node_key, open_era
from handrail.domain.errors import Invalid
from handrail.domain.plural import plural
from handrail.foundation.address_text import without_password
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer
from handrail.interfaces.cli.words.terminal_edge import say


@click.command()
@click.argument("source", type=click.Path(path_type=Path, resolve_path=True))
@click.argument("target", default="")
@json_option
@click.pass_context
@reports_errors
async def copy(ctx: click.Context, source: Path, target: str, as_json: bool) -> None:
    """Copy the journal of this home, SOURCE, into the empty database TARGET, and verify the copy.

    SOURCE is HANDRAIL_HOME/journal.db, TARGET is postgresql://user:password@host/database. Without TARGET, it is the
    one in HANDRAIL_STORE: there no other user of the machine sees the password."""
    settings = settings_of(ctx)
    if not _is_same(source, settings.journal):
        raise Invalid(f"{source} is not the journal of this home", hint=f"handrail --home {source.parent} db copy ...")
    address = target or settings.choices.store
    moved = await move_home(settings, address)
    data = {"events": moved.events, "streams": moved.streams, "definitions": moved.definitions}

    def print_text() -> None:
        what = f"{plural(moved.events, 'event')} of {plural(moved.streams, 'stream')}"
        say(f"copied and verified {what} to {without_password(address)}")
        say("  what to do: set HANDRAIL_STORE to it; the journal in the file is as it was")

    answer(data, as_json=as_json, as_text=print_text)


def _is_same(source: Path, journal: Path) -> bool:
    return str(source) == os.path.realpath(journal)


@click.command()
@json_option
@click.pass_context
@reports_errors
async def key(ctx: click.Context, as_json: bool) -> None:
    """Print the public key of this node, with which another can admit it."""
    public = node_key(settings_of(ctx))
    answer({"key": public}, as_json=as_json, as_text=lambda: say(public))


@click.command()
@click.argument("key")
@click.option("--name", required=True, help="How to call the node.")
@json_option
@click.pass_context
@reports_errors
async def admit(ctx: click.Context, key: str, name: str, as_json: bool) -> None:
    """Admit the node with this KEY (`handrail db key` there) to the shared store; it becomes an event."""
    await admit_node(settings_of(ctx), key, name=name, actor=person())
    answer({"admitted": name, "key": key}, as_json=as_json, as_text=lambda: say(f"{name} is admitted"))


@click.command()
@json_option
@click.pass_context
@reports_errors
async def era(ctx: click.Context, as_json: bool) -> None:
    """Open the next era: events of streams that are born from now on go into a new partition.

    Once a quarter is often enough; runs that are open stay where they are."""
    number = await open_era(settings_of(ctx))
    answer({"era": number}, as_json=as_json, as_text=lambda: say(f"era {number} is open"))
