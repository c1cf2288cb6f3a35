"""Answers of the command line: data on stdout, talk on stderr, and one exit code for each way things can end.

Nothing is decided here. With `--json` an answer is one JSON value, errors too; otherwise words and tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, Final, NoReturn

import click
import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

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
    """Print the answer's data as JSON, or let `words` tell it."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
    else:
        words()


def fail(error: HandrailError, *, as_json: bool) -> NoReturn:
    """Tell an error with its way out, and end with its exit code."""
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


def tell_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table that fits the terminal; where there is none, plain columns that are never cut."""
    cells = [[str(cell) for cell in row] for row in rows]
    if not _is_terminal():
        _tell_columns([list(head), *cells])
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in head[:-1]:
        table.add_column(name, no_wrap=True)
    table.add_column(head[-1], overflow="fold")
    for row in cells:
        table.add_row(*map(escape, row))
    Console().print(table)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _tell_columns(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
