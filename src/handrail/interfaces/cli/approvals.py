"""`handrail approvals`: what people are asked to approve, here or in all projects; and the passphrase for answers."""

from __future__ import annotations

import getpass
from collections.abc import Sequence

import click

from handrail.assembly.opening import open_reader
from handrail.assembly.people import answer_rules, passphrase_of
from handrail.domain.errors import Forbidden, Invalid
from handrail.domain.run.status import RUN_SHOWN_ASKING
from handrail.engine.reading.run_view import WaitingKind
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.all_projects import all_projects_option, with_project_column
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.asking import can_ask
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.words.times import expiry_words, time_format, utc_option
from handrail.interfaces.pictures.caption import plain


@click.group(invoke_without_command=True)
@click.option("--limit", default=200, type=click.IntRange(1, 1000), help="Look at this many runs at most.")
@all_projects_option
@utc_option
@json_option
@click.pass_context
@reports_errors
async def command(ctx: click.Context, limit: int, all_projects: bool, is_utc: bool, as_json: bool) -> None:
    """List all pending approvals: the question of each and, with --json, the effects that follow and the digest."""
    if ctx.invoked_subcommand is not None:
        return
    async with open_reader(settings_of(ctx)) as look:
        rows = await look.run_reader().runs(status=RUN_SHOWN_ASKING, limit=limit, all_projects=all_projects)
    asked = [(row, one) for row in rows for one in row.waiting_for if one.kind is WaitingKind.APPROVAL]
    data = [
        {
            "run": row.run,
            "step": one.step,
            "text": one.text,
            "effects": one.effects,
            "unshown": one.unshown,
            "digest": one.digest,
            "workflow": row.workflow,
            "by": one.by,
            "approvals": one.approvals,
            "approved_by": one.approved_by,
            "not_by": one.not_by or None,
            "since": one.since,
            "expires": one.expires or None,
            **({"project": row.project} if row.project is not None else {}),
        }
        for row, one in asked
    ]

    def print_text() -> None:
        if not data:
            say("no pending approvals", err=True)
            return
        shown = time_format(is_utc=is_utc)
        head: list[str | Column] = [
            "run",
            "step",
            Column("by", 2),
            Column("since", 3),
            Column("expires", 1),
            "question",
        ]
        cells: list[Sequence[object]] = [
            (
                row.run,
                one.step,
                ", ".join(one.by),
                shown.ago(one.since),
                expiry_words(one.expires, shown),
                plain(one.text),
            )
            for row, one in asked
        ]
        if all_projects:
            head, cells = with_project_column(head, cells, [row.project for row, _ in asked])
        print_table(head, cells)
        say("to answer: handrail approve RUN STEP    (or: handrail reject ...)", err=True)

    answer(listing("approvals", data), as_json=as_json, as_text=print_text)


@command.command()
@json_option
@click.pass_context
@reports_errors
async def passphrase(ctx: click.Context, as_json: bool) -> None:
    """Set or change the passphrase for approvals. It is typed at a terminal, and only its hash is stored.

    Approvals need it once `passphrase = true` is in [approvals] of config.toml in HANDRAIL_HOME."""
    settings = settings_of(ctx)
    if not can_ask():
        raise Forbidden("a passphrase is only typed at a terminal", hint="run this command at a terminal")
    kept = passphrase_of(settings)
    was_set = kept.is_set()
    old = getpass.getpass("Old passphrase: ") if was_set else None
    new = getpass.getpass("New passphrase: ")
    if getpass.getpass("Again: ") != new:
        raise Invalid("the two are different: nothing was changed", hint="type the same passphrase twice")
    kept.keep(new, old=old)
    is_required = answer_rules(settings).passphrase
    words = "the passphrase was changed" if was_set else "the passphrase is set"
    note = "" if is_required else "; approvals need it once [approvals] has passphrase = true in config.toml"
    data = {"changed": was_set, "required": is_required}
    answer(data, as_json=as_json, as_text=lambda: say(f"{words}{note}"))
