"""The edge to the terminal: everything that a command prints or asks goes through here, and nothing goes around it.

What people read may contain names and texts of strangers. Here they lose what would control the terminal, change the
reading direction or hide (foundation/visible_text.py); colours are added afterwards. The live view of rich has its own
console, in live_console.py. A test looks for other ways to print (tests/tidy/test_terminal_edge.py)."""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from handrail.foundation.visible_text import visible, visible_json, visible_line

# The codes that pictures are painted with (interfaces/pictures/ink.py); their texts are made visible before painting.
_color: Final = re.compile(r"(\x1b\[[0-9;]{1,8}m)")


class Styled(Struct, frozen=True):
    """A piece of a line with a colour of its own."""

    text: str
    fg: str | None = None
    bold: bool = False


def say(
    *parts: str | Styled,
    fg: str | None = None,
    bold: bool | None = None,
    dim: bool | None = None,
    nl: bool = True,
    err: bool = False,
) -> None:
    """Print text for people; its parts follow each other without a gap."""
    text = "".join(_styled(part, err) for part in parts)
    click.echo(click.style(text, fg=fg, bold=bold, dim=dim) if fg or bold or dim else text, nl=nl, err=err)


def put(text: str, *, nl: bool = True) -> None:
    """Print data: as it is into a file or pipe, made visible at a terminal."""
    click.echo(_encodable(visible(text) if sys.stdout.isatty() else text, sys.stdout), nl=nl)


def put_json(value: Any) -> None:
    """Print a value as JSON; nothing in it is hidden, and it decodes to the same value."""
    click.echo(visible_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def put_picture(text: str) -> None:
    """Print a picture with its colours; any other code is made visible."""
    click.echo("".join(part if number % 2 else visible(part) for number, part in enumerate(_color.split(text))))


def json_line(view: Any, *, is_shown: bool) -> bytes:
    """A value as one line of JSON, for a file; or, if it is shown at a terminal, with nothing hidden."""
    line = msgspec.json.encode(view)
    return (visible_json(line.decode()).encode() if is_shown else line) + b"\n"


def ask_yes(question: str) -> bool:
    """Ask at the terminal, on stderr; the answer is no if nothing is typed."""
    return click.confirm(visible_line(question), err=True)


def ask_text(question: str, *, is_hidden: bool = False) -> str:
    """Ask for a string at the terminal, on stderr; `is_hidden` if it must not be shown while it is typed."""
    typed: str = click.prompt(visible_line(question), hide_input=is_hidden, err=True)
    return typed


def _styled(part: str | Styled, err: bool) -> str:
    stream = sys.stderr if err else sys.stdout
    if isinstance(part, str):
        return _encodable(visible(part), stream)
    return click.style(_encodable(visible(part.text), stream), fg=part.fg, bold=part.bold or None)


def _encodable(text: str, stream: Any) -> str:
    """The text in characters that the stream can write: one that it can't must not end the command."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text if text.isascii() else text.encode(encoding, "replace").decode(encoding)
