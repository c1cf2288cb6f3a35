"""Tables that fit the terminal: ids are never cut, the last column is cut first.

The layout is pure; only `print_table` reads the terminal's width. If it is too narrow, optional columns are left out,
then the last column moves to a line of its own. Without a terminal nothing is left out or cut: programs read pipes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from rich.cells import cell_len, set_cell_size

from handrail.interfaces.cli.words.terminal_edge import say

GAP: Final = "  "
INDENT: Final = "    "
LAST_WIDTH_MIN: Final = 20
"""If the last column would get less than this, other columns are left out first."""
PIPE_WIDTH: Final = 1_000_000
EMPTY: Final = frozenset({"", "-"})


class Column(Struct, frozen=True):
    """A column's name, and whether a narrow terminal may leave it out."""

    name: str
    rank: int = 0
    """0: always shown; of the others, the highest is left out first."""


class Cell(Struct, frozen=True):
    """A padded piece of a line; `column` is its column, so that callers can colour it."""

    column: int
    text: str


Line: TypeAlias = tuple[Cell, ...]


def print_table(head: Sequence[str | Column], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; columns that are plain names are always shown."""
    columns = [one if isinstance(one, Column) else Column(one) for one in head]
    cells = [[_printable(str(cell)) for cell in row] for row in rows]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
    titles, *laid_out = placed(columns, cells, width=width, unicode=has_unicode())
    for line in titles:
        say(line_text(line), bold=True)
    for lines in laid_out:
        for line in lines:
            say(line_text(line))


def has_unicode() -> bool:
    """Whether stdout can show more than ASCII."""
    return "utf" in (sys.stdout.encoding or "").lower()


def line_text(line: Line) -> str:
    """A line without its colours."""
    return "".join(cell.text for cell in line).rstrip()


def placed(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], *, width: int, unicode: bool = True
) -> list[tuple[Line, ...]]:
    """The lines of the titles, then those of each row: one line each, or several if the ids do not fit."""
    whole = [[column.name for column in columns], *rows]
    widths = {index: max(cell_len(row[index]) for row in whole) for index in range(len(columns))}
    ranks = {index: (_is_empty(rows, index), column.rank) for index, column in enumerate(columns) if column.rank}
    ellipsis = "…" if unicode else "..."
    *every, last = range(len(columns))
    ids, is_fitting = _shown(every, ranks, widths, width - min(widths[last], LAST_WIDTH_MIN))
    if is_fitting:
        room = width - _total(ids, widths)
        return [((*_padded(row, ids, widths), Cell(last, elided(row[last], room, ellipsis))),) for row in whole]
    # The last column has its own line now, so some optional columns fit again.
    ids, _ = _shown(every, ranks, widths, width + len(GAP))
    return [tuple(_stacked(row, ids, last, widths, width, ellipsis)) for row in whole]


def elided(text: str, width: int, ellipsis: str = "…") -> str:
    """The text, cut to so many cells of a terminal if it is longer."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - len(ellipsis))).rstrip() + ellipsis[: max(0, width)]


def _shown(
    every: Sequence[int], ranks: Mapping[int, tuple[bool, int]], widths: Mapping[int, int], room: int
) -> tuple[list[int], bool]:
    """The columns before the last one that fit, and whether they do; empty ones are left out first."""
    shown = list(every)
    while _total(shown, widths) > room:
        optional = [index for index in shown if index in ranks]
        if not optional:
            return shown, False
        shown.remove(max(optional, key=ranks.__getitem__))
    return shown, True


def _total(shown: Sequence[int], widths: Mapping[int, int]) -> int:
    return sum(widths[index] + len(GAP) for index in shown)


def _is_empty(rows: Sequence[Sequence[str]], index: int) -> bool:
    return all(row[index] in EMPTY for row in rows)


def _padded(row: Sequence[str], ids: Sequence[int], widths: Mapping[int, int]) -> Iterator[Cell]:
    for index in ids:
        yield Cell(index, row[index] + " " * (widths[index] - cell_len(row[index])) + GAP)


def _stacked(
    row: Sequence[str], ids: Sequence[int], last: int, widths: Mapping[int, int], width: int, ellipsis: str
) -> Iterator[Line]:
    """A row over several lines: as many whole cells on each as fit, then the last column, cut."""
    line: list[Cell] = []
    used = 0
    for cell in _padded(row, ids, widths):
        if line and used + cell_len(cell.text.rstrip()) > width:
            yield tuple(line)
            line, used = [Cell(cell.column, INDENT)], len(INDENT)
        line.append(cell)
        used += cell_len(cell.text)
    yield tuple(line)
    if row[last]:
        yield (Cell(last, INDENT + elided(row[last], width - len(INDENT), ellipsis)),)


def _printable(text: str) -> str:
    # Cells may contain texts of tools and servers: no escape codes or line breaks may reach the terminal.
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
