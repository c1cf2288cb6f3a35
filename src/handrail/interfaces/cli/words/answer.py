"""How commands answer: data on stdout, messages on stderr, one exit code for each outcome.

With `--json` the answer is one JSON value, also for errors. Tables are in table.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Final, NoReturn

from handrail.domain.errors import (
    Conflict,
    HandrailError,
    IntegrityBroken,
    Invalid,
    NotFound,
    Unavailable,
)
from handrail.interfaces.cli.words.excerpt import lines_of, printable
from handrail.interfaces.cli.words.finding_view import print_findings
from handrail.interfaces.cli.words.own_command import localized
from handrail.interfaces.cli.words.terminal_edge import put_json, say


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


def answer(data: Any, *, as_json: bool, as_text: Callable[[], None]) -> None:
    """Print the data as JSON, or let `as_text` print it for people."""
    if as_json:
        put_json(data)
    else:
        as_text()


def listing(noun: str, items: Sequence[Any], *, cursor: str | int | None = None, **more: Any) -> dict[str, Any]:
    """The one shape of every list: `{"<nouns>": [...], "total"?, "cursor"?}`, then further keys of the command.

    A complete list has a total. A list in pages has a cursor for `--after` as long as there may be more."""
    place: dict[str, Any] = {"total": len(items)} if cursor is None else {"cursor": cursor} if cursor else {}
    return {noun: items, **place, **more}


def fail(error: HandrailError, *, as_json: bool) -> NoReturn:
    """Print an error with its hint, and end with its exit code."""
    code = next(code for kind, code in EXIT_OF if isinstance(error, kind))
    hint = localized(error.hint)
    findings = error.findings if isinstance(error, Invalid) else ()
    if as_json:
        shown: dict[str, Any] = {"code": error.code, "name": error.name, "message": str(error), "hint": hint}
        if findings:
            shown["findings"] = findings
        put_json({"error": shown})
    else:
        say(f"{error.name}: {_safe(str(error))}", fg="red", err=True)
        print_findings(findings, err=True)
        say(f"  what to do: {_safe(hint)}", err=True)
    sys.exit(code)


def _safe(text: str) -> str:
    # Errors quote file names and texts of servers: no escape codes may reach the terminal.
    return "\n".join(
        printable(line, encoding=getattr(sys.stderr, "encoding", None) or "utf-8") for line in lines_of(text)
    )
