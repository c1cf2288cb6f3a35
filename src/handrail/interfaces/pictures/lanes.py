"""Lanes: an outline as rows like `git log --graph`, one item per row, each lane in its column.

Pure geometry: a cell is a set of arms. terminal.py draws the arms and the text beside the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.interfaces.pictures.outline import Outline

UP: Final = 1
DOWN: Final = 2
LEFT: Final = 4
RIGHT: Final = 8
OVER: Final = 16
"""A lane that a line crosses without joining it."""

COLUMNS_LATE_MAX: Final = 6

Cells: TypeAlias = tuple[int, ...]


class Row(Struct, frozen=True, kw_only=True):
    """One row. With an item: its sign is in `column`, and `below` has the lanes beside further lines of its text."""

    cells: Cells
    item: int | None = None
    column: int = 0
    below: Cells = ()


class _Board(Struct):
    """The current lanes: each column has the item that it leads to."""

    lanes: list[int | None]

    def columns_of(self, item: int) -> list[int]:
        return [column for column, lane in enumerate(self.lanes) if lane == item]

    def open(self, items: Sequence[int], column: int) -> list[int]:
        """Give each item a free column, from left to right: at or right of this one, else left of it, else new ones."""
        places = [*range(column, len(self.lanes)), *range(column)]
        free = [place for place in places if self.lanes[place] is None]
        free += range(len(self.lanes), len(self.lanes) + len(items))
        chosen = sorted(free[: len(items)])
        for item, place in zip(items, chosen, strict=True):
            self.lanes[place : place + 1] = [item]
        return chosen

    def close(self, columns: Sequence[int]) -> None:
        for column in columns:
            self.lanes[column] = None

    def trim(self) -> None:
        while self.lanes and self.lanes[-1] is None:
            self.lanes.pop()

    def cells(self) -> list[int]:
        return [UP | DOWN if lane is not None else 0 for lane in self.lanes]


def rows_of(outline: Outline, *, columns_max: int, stem: bool) -> list[Row] | None:
    """The rows of the drawing, or None if it needs more columns; `stem`: there is a line above the first row."""
    # Lanes that stay parallel until they meet look better; lanes that join at once need fewer columns.
    for late, limit in ((True, min(columns_max, COLUMNS_LATE_MAX)), (False, columns_max)):
        rows: list[Row] = []
        for row in _drawn(outline, stem=stem, late=late):
            if len(row.cells) > limit:
                break
            rows.append(row)
        else:
            return rows
    return None


def _drawn(outline: Outline, *, stem: bool, late: bool) -> Iterator[Row]:
    board = _Board([])
    missing = [len(row) for row in outline.needs]
    ready = {index for index, count in enumerate(missing) if not count}
    yield from _fork(board, 0, sorted(ready), stem=stem, late=late)
    while ready:
        # The leftmost lane first: a branch is drawn to its end before the next starts.
        item = min(ready, key=board.lanes.index)
        ready.remove(item)
        column, *others = board.columns_of(item)
        if others:
            yield _line(board.cells(), column, joined=others, ends=others)
            board.close(others)
        later = outline.follows[item]
        if outline.items[item].is_shown:
            yield _item_row(board.cells(), item, column, ends=not later)
        board.close([column])
        yield from _fork(board, column, later, stem=True, late=late)
        for other in later:
            missing[other] -= 1
            if not missing[other]:
                ready.add(other)


def _item_row(cells: list[int], item: int, column: int, *, ends: bool) -> Row:
    below = cells.copy()
    if ends:
        below[column] = 0
    return Row(cells=tuple(cells), item=item, column=column, below=tuple(below))


def _fork(board: _Board, column: int, later: Sequence[int], *, stem: bool, late: bool) -> Iterator[Row]:
    """Lead a line from the column to a lane for each later item; unless late, existing lanes are joined."""
    cells = board.cells()
    fresh = [item for item in later if late or item not in board.lanes]
    joined = [board.lanes.index(item) for item in later if item not in fresh]
    opened = board.open(fresh, column)
    if {*joined, *opened} - {column}:
        cells += [0] * (len(board.lanes) - len(cells))
        cells[column] = UP * stem
        yield _line(cells, column, joined=joined, opened=opened)
    board.trim()


def _line(
    cells: list[int], column: int, *, joined: Sequence[int], opened: Sequence[int] = (), ends: Sequence[int] = ()
) -> Row:
    """A row with a line between the column and the lanes that it joins or opens; some of the joined may end here."""
    first, last = min(column, *joined, *opened), max(column, *joined, *opened)
    for place in range(first, last + 1):
        sides = LEFT * (place > first) | RIGHT * (place < last)
        touched = place == column or place in joined or place in opened
        arms = cells[place] & ~DOWN if place in ends else cells[place] | DOWN * (place in opened)
        cells[place] = arms | sides | OVER * (not touched and arms > 0)
    return Row(cells=tuple(cells))
