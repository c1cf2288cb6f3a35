"""Converts rows of PostgreSQL to values. Its columns have the types that they should have; only texts need a look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from handrail.domain.journal.chain import Head, Record
from handrail.engine.journal import Placed, Row
from handrail.storage.postgres.texts import read, read_or_none

NUMBERS: Final = 3
"""The columns before the record: tick, lane, number."""

Value = TypeVar("Value", bound=Struct)


def record_of(row: Sequence[Any], first: int = 0) -> Record:
    """The record in the columns of a row, from one of them on."""
    stream, n, at, kind, actor, step, *rest = row[first:]
    return Record(read(stream), n, at, read(kind), read(actor), read_or_none(step), *rest)


def placed_of(row: Sequence[Any]) -> Placed:
    """A record with its position and place."""
    return Placed(row[0], record_of(row, NUMBERS), row[1], row[2])


def is_archived(row: Sequence[Any]) -> bool:
    """Whether only the hash is left of an event."""
    return row[NUMBERS + 3] is None


def columns_of(row: Sequence[Any]) -> Row:
    """The same as plain columns: lane, number, and the fields of the record."""
    _, lane, number, stream, n, at, kind, actor, step, *rest = row
    if kind is None:  # archived: only the hash is left
        return (lane, number, read(stream), *row[4:])
    return (lane, number, read(stream), n, at, read(kind), read(actor), read_or_none(step), *rest)


def values(rows: Iterable[Sequence[Any]], type_: type[Value]) -> list[Value]:
    """Rows of projections as structs with the same fields."""
    names = type_.__struct_fields__
    return [
        type_(**{name: read(one) if isinstance(one, str) else one for name, one in zip(names, row, strict=True)})
        for row in rows
    ]


def heads(rows: Iterable[Sequence[Any]]) -> list[Head]:
    """The ends of streams; sorted again, because escaped names may sort differently."""
    return sorted((Head(read(stream), n, hash_) for stream, n, hash_ in rows), key=lambda head: head.stream)
