"""Questions at a terminal, before something that can't be undone. A script says `--yes` instead; it is never asked."""

from __future__ import annotations

import sys

import click

from handrail.domain.errors import Forbidden
from handrail.interfaces.cli.answer import Exit


def can_ask() -> bool:
    """Whether a person sees the question and can answer it."""
    return bool(sys.stdin) and sys.stdin.isatty() and sys.stderr.isatty()


def require_yes(what: str, question: str) -> None:
    """Go on only after a yes; `what` says what would happen, for those who can't be asked."""
    if not can_ask():
        raise Forbidden(what, hint="add --yes to go on")
    if not click.confirm(question, err=True):
        click.echo("cancelled: nothing was changed", err=True)
        sys.exit(Exit.FAILED)


def required_reason(reason: str) -> str:
    """The reason that was given, or that a person types now."""
    if reason:
        return reason
    if not can_ask():
        why = "It is kept in the journal, and there is no terminal to ask for it."
        raise click.UsageError(f"Missing option '--reason'. {why}")
    typed: str = click.prompt("Reason", err=True)
    return typed
