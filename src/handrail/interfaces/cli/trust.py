"""`handrail trust`: a person looks at what a project's files would switch on, and decides.

What needs trust is decided in domain/trust/; here it is shown and asked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from handrail.assembly.tools import trust_decisions, trust_items
from handrail.domain.errors import Conflict, NotFound
from handrail.domain.instant import instant_text
from handrail.domain.trust.decision import (
    ItemChange,
    TrustDecision,
    TrustItem,
    TrustState,
    changes,
)
from handrail.engine.clock import system_clock
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import Exit, answer, listing
from handrail.interfaces.cli.words.excerpt import printable
from handrail.interfaces.cli.words.own_command import advise
from handrail.interfaces.cli.words.table import print_table
from handrail.interfaces.cli.words.terminal_edge import ask_yes, say
from handrail.interfaces.cli.words.times import time_format, utc_option
from handrail.settings import Settings, real_path

RESTART = "programs that are running keep what they were started with: restart them"


@click.group(invoke_without_command=True)
@click.option("--revoke", is_flag=True, help="Stop trusting this project.")
@click.option(
    "--digest", metavar="DIGEST", default="", help="Trust exactly the content with this digest, without asking."
)
@json_option
@click.pass_context
@reports_errors
async def command(ctx: click.Context, revoke: bool, digest: str, as_json: bool) -> None:
    """Show what this project's files would switch on, and trust them.

    Until then a project can tighten settings, but not loosen any, and its tool servers are not started. A file that
    changes is untrusted again. At a terminal you are asked; elsewhere the digest that was shown is needed. Exit code 4
    if the project is still not trusted."""
    if ctx.invoked_subcommand:
        return
    if revoke and digest:
        raise click.UsageError("--revoke and --digest can't be combined")
    settings = settings_of(ctx)
    if revoke:
        _revoke(settings, as_json=as_json)
        return
    items = trust_items(settings)
    is_asked = settings.trust.is_off and not digest and not as_json
    if is_asked:
        _print_items(settings, items)
    if settings.trust.is_off and _is_agreed(settings, digest, is_asked=is_asked):
        _keep(settings, items)
        is_trusted = True
    else:
        is_trusted = not settings.trust.is_off
    answer(_data(settings, items, is_trusted), as_json=as_json, as_text=lambda: _print_result(settings, is_trusted))
    sys.exit(Exit.OK if is_trusted else Exit.WAITING)


@command.command("list")
@utc_option
@json_option
@click.pass_context
@reports_errors
async def list_(ctx: click.Context, is_utc: bool, as_json: bool) -> None:
    """List the trusted projects: who trusted them, and when."""
    settings = settings_of(ctx)
    decisions = trust_decisions(settings).all()

    def print_text() -> None:
        if not decisions:
            advise("no project is trusted; `handrail trust` in a project's folder shows what its files would switch on")
            return
        shown = time_format(is_utc=is_utc)
        rows = [(printable(one.project), one.by, shown.ago(one.at), one.digest) for one in decisions]
        print_table(("project", "by", "since", "digest"), rows)

    answer(listing("projects", decisions), as_json=as_json, as_text=print_text)


def _revoke(settings: Settings, *, as_json: bool) -> None:
    project = real_path(settings.project)
    if not trust_decisions(settings).remove(project):
        raise NotFound(f"{project} is not trusted", hint="list the trusted projects: `handrail trust list`")
    answer(
        {"project": project, "trusted": False},
        as_json=as_json,
        as_text=lambda: say(f"{printable(project)} is no longer trusted; {RESTART}", err=True),
    )


def _is_agreed(settings: Settings, digest: str, *, is_asked: bool) -> bool:
    """Whether the person agrees to exactly this content."""
    if digest:
        if digest != settings.trust.digest:
            raise Conflict(
                "the files are not the ones with this digest",
                hint="look at them again: run `handrail trust` without a digest",
            )
        return True
    is_at_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return is_asked and is_at_terminal and ask_yes("Trust these files as they are now?")


def _keep(settings: Settings, items: Sequence[TrustItem]) -> None:
    trust_decisions(settings).keep(
        TrustDecision(
            project=real_path(settings.project),
            digest=settings.trust.digest,
            by=person(),
            at=instant_text(system_clock()),
            items=tuple(items),
        )
    )


def _data(settings: Settings, items: Sequence[TrustItem], is_trusted: bool) -> dict[str, Any]:
    trust = settings.trust
    return {
        "project": real_path(settings.project),
        "trusted": is_trusted,
        "state": (TrustState.TRUSTED if is_trusted and trust.is_off else trust.state).value,
        "digest": trust.digest,
        "items": items,
        "changes": _changes(settings, items),
    }


def _changes(settings: Settings, items: Sequence[TrustItem]) -> list[ItemChange]:
    before = settings.trust.decision.items if settings.trust.decision else ()
    return changes(before, items)


# --- for people -----------------------------------------------------------------------------------------


def _print_items(settings: Settings, items: Sequence[TrustItem]) -> None:
    """Print what would be switched on, as a difference to what was trusted before."""
    decision = settings.trust.decision
    say(f"project {printable(real_path(settings.project))}: {settings.trust.state.value}")
    if decision is not None:
        say(f"trusted before by {printable(decision.by)}, {decision.at}")
    changed = {one.name: one for one in _changes(settings, items)}
    for one in items:
        if one.name in changed:
            _print_change(changed.pop(one.name))
        else:
            say(f"  {printable(one.name)} = {printable(one.text)}")
    for gone in changed.values():
        _print_change(gone)
    say(f"digest {settings.trust.digest}")


def _print_change(change: ItemChange) -> None:
    name = printable(change.name)
    if change.before is not None:
        say(f"- {name} = {printable(change.before)}", fg="red")
    if change.now is not None:
        say(f"+ {name} = {printable(change.now)}", fg="green")


def _print_result(settings: Settings, is_trusted: bool) -> None:
    if settings.trust.state is TrustState.NOTHING:
        say("nothing in this project's files needs trust", err=True)
    elif settings.trust.is_trusted and settings.trust.decision is not None:
        decision = settings.trust.decision
        say(f"trusted by {printable(decision.by)}, {decision.at}; nothing has changed since", err=True)
    elif is_trusted:
        say(f"trusted; {RESTART}", fg="green", err=True)
    else:
        say("not trusted: nothing was switched on", fg="yellow", err=True)
        advise("  what to do: run `handrail trust` at a terminal")
