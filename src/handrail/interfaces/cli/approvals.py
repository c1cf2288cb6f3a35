"""`handrail approvals`: what people are asked to approve, here or in all projects; and the passphrase for answers."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from typing import Any

import click

from handrail.assembly.opening import open_reader
from handrail.assembly.people import answer_rules, passphrase_of
from handrail.domain.errors import Forbidden, Invalid
from handrail.domain.policy.answering import TERMINAL
from handrail.engine.reading.approvals import PendingApproval
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.run.answering import COMMAND
from handrail.interfaces.cli.words.all_projects import all_projects_option, with_project_column
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.asking import can_ask
from handrail.interfaces.cli.words.own_command import own_program
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
    channel = TERMINAL if can_ask() else COMMAND
    async with open_reader(settings_of(ctx)) as look:
        waiting = look.approvals()
        asked = await waiting.pending(actor=person(), channel=channel, limit=limit, all_projects=all_projects)
    data = [_data(one) for one in asked]

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
                one.run,
                one.step,
                ", ".join(one.asked.by),
                shown.ago(one.asked.since),
                expiry_words(one.asked.expires, shown),
                plain(one.asked.text),
            )
            for one in asked
        ]
        if all_projects:
            head, cells = with_project_column(head, cells, [one.project for one in asked])
        print_table(head, cells)
        say(f"to answer: {own_program()} approve RUN STEP    (or: {own_program()} reject ...)", err=True)

    answer(listing("approvals", data), as_json=as_json, as_text=print_text)


def _data(one: PendingApproval) -> dict[str, Any]:
    """A pending approval as data: what is asked, what a yes lets happen, and whether this person may answer."""
    asked = one.asked
    return {
        "run": one.run,
        "step": one.step,
        "text": asked.text,
        "effects": asked.effects,
        "unshown": asked.unshown,
        "digest": asked.digest,
        "workflow": one.workflow,
        "by": asked.by,
        "approvals": asked.approvals,
        "approved_by": asked.approved_by,
        "not_by": asked.not_by or None,
        "since": asked.since,
        "expires": asked.expires or None,
        "ahead": one.ahead,
        "done": one.done,
        "answers": one.answers,
        "may_answer": one.may_answer,
        **({"why_not": one.why_not, "who_may": one.who_may} if not one.may_answer else {}),
        **({"passphrase": True} if one.passphrase else {}),
        **({"project": one.project} if one.project is not None else {}),
    }


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
