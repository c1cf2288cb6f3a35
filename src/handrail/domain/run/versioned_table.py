"""An immutable table that is cheap to update: a new version takes over the rows of the one before.

Pure. Only the newest version of a table has the rows; an older one remembers the difference, and copies the rows when
it is read again. So an update of a run with thousands of steps takes constant time, and an older state that someone
still refers to does not change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

Value = TypeVar("Value")

_MISSING: Final[Any] = object()


class VersionedTable(Mapping[str, Value], Generic[Value]):
    """Rows by name, in the order in which they were first added."""

    __slots__ = ("_before", "_newer", "_rows")

    def __init__(self, rows: Mapping[str, Value] | None = None) -> None:
        self._rows: dict[str, Value] | None = dict(rows) if rows else {}
        self._newer: VersionedTable[Value] | None = None
        self._before: Mapping[str, Value] = {}

    def with_rows(self, rows: Mapping[str, Value]) -> VersionedTable[Value]:
        """The table with these rows added or replaced."""
        if not rows:
            return self
        own = self._own()
        newer: VersionedTable[Value] = VersionedTable.__new__(VersionedTable)
        newer._rows, newer._newer, newer._before = own, None, {}
        self._before = {name: own.get(name, _MISSING) for name in rows}
        own.update(rows)
        self._rows, self._newer = None, newer
        return newer

    def get(self, name: str, default: Any = None) -> Any:
        """The row of that name, or the default."""
        rows = self._rows
        return (rows if rows is not None else self._own()).get(name, default)

    def __getitem__(self, name: str) -> Value:
        return self._own()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._own())

    def __len__(self) -> int:
        return len(self._own())

    def __repr__(self) -> str:
        return f"Table({self._own()!r})"

    def _own(self) -> dict[str, Value]:
        """This version's rows; a version whose rows were taken over makes a copy."""
        if self._rows is None:
            self._rows = self._copied()
            self._newer, self._before = None, {}
        return self._rows

    def _copied(self) -> dict[str, Value]:
        older: list[Mapping[str, Value]] = []
        version: VersionedTable[Value] = self
        while version._newer is not None:
            older.append(version._before)
            version = version._newer
        rows = dict(version._own())
        for before in reversed(older):
            for name, row in before.items():
                if row is _MISSING:
                    del rows[name]
                else:
                    rows[name] = row
        return rows
