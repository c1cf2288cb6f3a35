"""Questions at a terminal before something that can't be undone. Scripts are never asked: they pass `--yes`."""

from __future__ import annotations

import sys

import click

from handrail.domain.errors import Forbidden
from handrail.interfaces.cli.words.answer import Exit
from handrail.interfaces.cli.words.terminal_edge import ask_text, ask_yes, say


def can_ask() -> bool:
    """Whether a person sees the question and can answer it."""
    return bool(sys.stdin) and sys.stdin.isatty() and sys.stderr.isatty()


def require_yes(what: str, question: str) -> None:
    """Continue only after a yes; without a terminal, refuse and say `what` would happen."""
    if not can_ask():
        raise Forbidden(what, hint="add --yes to continue")
    if not ask_yes(question):
        say("cancelled: nothing was changed", err=True)
        sys.exit(Exit.FAILED)


def required_reason(reason: str, *, also: str = "") -> str:
    """The given reason; at a terminal, ask for a missing one. `also` is another option that is missing without one."""
    if reason:
        return reason
    if not can_ask():
        why = "It is kept in the journal, and there is no terminal to ask for it."
        more = f" {also} is needed, too: `handrail approvals --json` shows it." if also else ""
        raise click.UsageError(f"Missing option '--reason'. {why}{more}")
    return ask_text("Reason")
