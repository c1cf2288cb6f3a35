"""Questions at a terminal, before something that can't be undone. A script says `--yes` instead; it is never asked."""

from __future__ import annotations

import sys

import click

from handrail.domain.errors import Forbidden


def can_ask() -> bool:
    """Whether a person sees the question and can answer it."""
    return bool(sys.stdin) and sys.stdin.isatty() and sys.stderr.isatty()


def require_yes(what: str, question: str) -> None:
    """Go on only after a yes; `what` says what would happen, for those who can't be asked."""
    if not can_ask():
        raise Forbidden(f"{what}; this needs a yes", hint="add --yes")
    if not click.confirm(question, err=True):
        raise Forbidden("cancelled", hint="nothing was changed")


def required_reason(reason: str) -> str:
    """The reason that was given, or that a person types now."""
    if reason:
        return reason
    if not can_ask():
        raise click.UsageError("Missing option '--reason'.")
    typed: str = click.prompt("Reason", err=True)
    return typed
