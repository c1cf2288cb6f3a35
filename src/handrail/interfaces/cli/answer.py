"""Answers of the command line: data on stdout, messages on stderr, one exit code for each outcome.

Nothing is decided here. With `--json` an answer is one JSON value, errors too. Tables are in table.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, Final, NoReturn

import click
import msgspec

from handrail.domain.check import Finding
from handrail.domain.errors import (
    Conflict,
    HandrailError,
    IntegrityBroken,
    Invalid,
    NotFound,
    Unavailable,
)
from handrail.interfaces.cli.finding_view import show_findings


class Exit(IntEnum):
    """How a command ended; scripts rely on these numbers."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    WAITING = 4
    INVALID = 5
    CONFLICT = 6
    INTEGRITY = 7
    UNAVAILABLE = 8
    COMPENSATED = 9


EXIT_OF: Final[Sequence[tuple[type[HandrailError], Exit]]] = (
    (IntegrityBroken, Exit.INTEGRITY),
    (NotFound, Exit.NOT_FOUND),
    (Invalid, Exit.INVALID),
    (Conflict, Exit.CONFLICT),
    (Unavailable, Exit.UNAVAILABLE),
    (HandrailError, Exit.FAILED),
)


def answer(data: Any, *, as_json: bool, words: Callable[[], None]) -> None:
    """Print the data as JSON, or let `words` print it for people."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
    else:
        words()


def listing(noun: str, items: Sequence[Any], *, cursor: str | int | None = None, **more: Any) -> dict[str, Any]:
    """The one shape of every list: `{"<nouns>": [...], "total"?, "cursor"?}`, then what else a command says.

    A list that comes whole has a total. One that comes in pages has a cursor for `--after` while there may be more."""
    place: dict[str, Any] = {"total": len(items)} if cursor is None else {"cursor": cursor} if cursor else {}
    return {noun: items, **place, **more}


def fail(error: HandrailError, *, as_json: bool) -> NoReturn:
    """Print an error with its hint, and end with its exit code."""
    code = next(code for kind, code in EXIT_OF if isinstance(error, kind))
    findings = error.findings if isinstance(error, Invalid) else ()
    if as_json:
        told: dict[str, Any] = {"code": error.code, "name": error.name, "message": str(error), "hint": error.hint}
        if findings:
            told["findings"] = findings
        click.echo(msgspec.json.format(msgspec.json.encode({"error": told}), indent=2).decode())
    else:
        click.secho(f"{error.name}: {error}", fg="red", err=True)
        tell_findings(findings, err=True)
        click.echo(f"  what to do: {error.hint}", err=True)
    sys.exit(code)


def tell_findings(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Each finding with its place, the source line and how to fix it."""
    show_findings(findings, err=err)
