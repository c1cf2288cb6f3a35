"""Converts rows of SQLite to values.

A damaged file can have a number instead of text, or text that is not UTF-8: a row that can't be converted is reported
as IntegrityBroken, with its position."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.chain import Head
from handrail.engine.journal import Row
from handrail.storage.sqlite import queries
from handrail.storage.sqlite.faults import code_of

EventRow: TypeAlias = tuple[
    int, str, int, int, str, str, str | None, int | None, int, bytes, bytes, bytes, bytes | None
]
"""The columns of an event: its position, then the fields of a Record."""

Parameters: TypeAlias = Sequence[object] | Mapping[str, object]
"""The parameters of a query: by position for `?`, by name for `:name`. Never `?1`: Python 3.12 warns about those,
and 3.14 refuses them."""

Value = TypeVar("Value", bound=Struct)

_HEAD_ROWS: Final = list[tuple[str, int, bytes]]
_DEFINITION_ROWS: Final = list[tuple[str, bytes]]


def numbered(*values: object) -> dict[str, object]:
    """The parameters of a query that names them `:p1`, `:p2`, because it has some of them twice."""
    return {f"p{number}": value for number, value in enumerate(values, 1)}


def event_rows(connection: sqlite3.Connection, query: str, parameters: Sequence[object]) -> list[EventRow]:
    """The rows of events that a query finds, with each column checked for its type."""
    try:
        return msgspec.convert(connection.execute(query, parameters).fetchall(), list[EventRow])
    except (msgspec.ValidationError, sqlite3.OperationalError) as error:
        if code_of(error) is not None:
            raise
        raise IntegrityBroken(_first_damage(connection, query, parameters)) from error


def event_rows_after(connection: sqlite3.Connection, after: int, size: int) -> list[EventRow]:
    """The rows of the events after a position, at most `size`."""
    return event_rows(connection, queries.PLACES, (after, size))


def lane_rows_after(connection: sqlite3.Connection, after: int, size: int) -> list[Row]:
    """The same with whatever types are stored, behind their lane; only text that can't be decoded is refused."""
    try:
        return connection.execute(queries.LANE_PLACES, numbered(after, size)).fetchall()
    except sqlite3.OperationalError as error:
        if code_of(error) is not None:
            raise
        raise IntegrityBroken(_first_damage(connection, queries.PLACES, (after, size))) from error


def values(connection: sqlite3.Connection, query: str, parameters: Parameters, type_: type[Value]) -> list[Value]:
    """The rows of projections that a query finds, as structs with the same fields."""
    names = type_.__struct_fields__
    try:
        rows = connection.execute(query, parameters).fetchall()
        return [msgspec.convert(dict(zip(names, row, strict=True)), type_) for row in rows]
    except (msgspec.ValidationError, sqlite3.OperationalError) as error:
        if code_of(error) is not None:
            raise
        raise IntegrityBroken(f"a stored {type_.__name__} can't be read: its row is damaged") from error


def heads(rows: list[Any]) -> list[Head]:
    """The ends of streams from rows."""
    try:
        return [Head(*row) for row in msgspec.convert(rows, _HEAD_ROWS)]
    except msgspec.ValidationError as error:
        raise IntegrityBroken(f"the end of a stream can't be read: {error}") from error


def place_at(connection: sqlite3.Connection, at: int) -> int:
    """The position after which events are of this instant or later, by a binary search."""
    low, (high,) = 0, connection.execute(queries.LAST_PLACE).fetchone()
    while low < high:
        middle = (low + high) // 2
        (instant,) = connection.execute(queries.INSTANT_BEHIND, (middle,)).fetchone()
        low, high = (middle + 1, high) if instant < at else (low, middle)
    return low


def definitions(rows: list[Any]) -> list[tuple[str, bytes]]:
    """The definitions from rows."""
    try:
        return msgspec.convert(rows, _DEFINITION_ROWS)
    except msgspec.ValidationError as error:
        raise IntegrityBroken(f"a stored definition can't be read: {error}") from error


def _first_damage(connection: sqlite3.Connection, query: str, parameters: Sequence[object]) -> str:
    """The position of the first event that can't be read, and why; queries again in a way that accepts any bytes."""
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    try:
        for row in connection.execute(query, parameters):
            try:
                msgspec.convert(row, EventRow)
                [column.encode() for column in row if isinstance(column, str)]
            except UnicodeEncodeError:
                return f"the event at position {row[0]} can't be read: its text is not UTF-8"
            except msgspec.ValidationError as error:
                return f"the event at position {row[0]} can't be read: {error}"
    finally:
        connection.text_factory = str
    return "an event could not be read"
