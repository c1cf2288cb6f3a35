"""Ink: pieces of styled text on a terminal line, measured in cells, cut to a width, painted last.

Pure. Knows nothing about steps; terminal.py decides what is on a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, TypeAlias

from rich.cells import cell_len, set_cell_size

from handrail.foundation.visible_text import visible_line


class Tone(StrEnum):
    """How a piece of text is painted where colour is wanted."""

    TEXT = "text"
    NAME = "name"
    QUIET = "quiet"
    PROMPT = "prompt"
    TOOL = "tool"
    APPROVE = "approve"
    WORKFLOW = "workflow"
    EACH = "each"
    REPEAT = "repeat"
    UNDO = "undo"
    DANGER = "danger"
    WHEN = "when"


CODES: Final[Mapping[Tone, str]] = {
    Tone.NAME: "1",
    Tone.QUIET: "2",
    Tone.PROMPT: "35",
    Tone.TOOL: "36",
    Tone.APPROVE: "33",
    Tone.WORKFLOW: "34",
    Tone.EACH: "32",
    Tone.REPEAT: "32",
    Tone.UNDO: "36",
    Tone.DANGER: "1;31",
    Tone.WHEN: "33",
}

Piece: TypeAlias = tuple[str, Tone]
Line: TypeAlias = list[Piece]


def width_of(line: Iterable[Piece]) -> int:
    """How many cells the line takes."""
    return sum(cell_len(text) for text, _ in line)


def cut(text: str, cells: int, ellipsis: str) -> str:
    """The text; if it is too long, its start and an ellipsis."""
    if len(text) * 2 <= cells or cell_len(text) <= cells:
        return text
    if cells < len(ellipsis):
        return ""
    return set_cell_size(text, cells - len(ellipsis)).rstrip() + ellipsis


def fitted(line: Line, cells: int, ellipsis: str) -> Line:
    """The line, its last pieces cut where it is too long."""
    kept: Line = []
    room = cells
    for text, tone in line:
        shown = cut(text, room, ellipsis)
        kept.append((shown, tone))
        room -= cell_len(shown)
        if shown != text:
            break
    return kept


def padded(line: Line, cells: int) -> Line:
    """The line with spaces up to the width."""
    return [*line, (" " * max(0, cells - width_of(line)), Tone.TEXT)]


def painted(line: Line, *, color: bool) -> str:
    """The line as text, with escape codes only if colour is wanted; no piece can bring its own."""
    line = [(visible_line(text), tone) for text, tone in line]
    if not color:
        return "".join(text for text, _ in line).rstrip()
    return "".join(
        f"\x1b[{CODES[tone]}m{text}\x1b[0m" if tone in CODES and text.strip() else text for text, tone in line
    )
