"""Reads the rows of tables out of the pages of a SQLite file, without SQLite: for files that it refuses to read.

Follows the file format (sqlite.org/fileformat.html): every leaf page of a table has its rows in it, also if the pages
that lead to it are damaged. Nothing that is read here is believed: the caller proves each row by its hash. Pages in the
write-ahead log take the place of those in the file."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from handrail.foundation.plain_file import open_plain

MAGIC: Final = b"SQLite format 3\x00"
DEFAULT_PAGE: Final = 4_096
HEADER: Final = 100
TABLE_LEAF: Final = 0x0D
LEAF_HEADER: Final = 8
LOG_HEADER: Final = 32
FRAME_HEADER: Final = 24
VARINT_MAX: Final = 9
PAYLOAD_MAX: Final = 1_000_000_000
INTEGER_BYTES: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
FIRST_BLOB, FIRST_TEXT = 12, 13

Value: TypeAlias = int | float | str | bytes | None


class PageRow(NamedTuple):
    """A row that was found in a page."""

    page: int
    rowid: int
    values: tuple[Value, ...]


class _Damaged(Exception):
    """A cell that can't be read."""


class PageFile:
    """The pages of a file and of its write-ahead log."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = open_plain(path)
        head = self._file.read(HEADER)
        self.size, self.usable = _sizes(head)
        self.count = -(-os.fstat(self._file.fileno()).st_size // self.size)
        self._newer = _logged(path.with_name(path.name + "-wal"), self.size)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def rows(self) -> Iterator[PageRow]:
        """Every row of every table that can be read, from older pages first."""
        for number in range(1, max([self.count, *self._newer]) + 1):
            if number in self._newer and number <= self.count:
                # The older page has what a damaged frame of the log has lost.
                yield from self._rows_of(number, self._stored(number))
            yield from self._rows_of(number, self.page(number))

    def page(self, number: int) -> bytes:
        """The newest content of a page; empty if there is none."""
        return self._newer[number] if number in self._newer else self._stored(number)

    def _stored(self, number: int) -> bytes:
        if not 1 <= number <= self.count:
            return b""
        self._file.seek((number - 1) * self.size)
        return self._file.read(self.size)

    def _rows_of(self, number: int, page: bytes) -> Iterator[PageRow]:
        start = HEADER if number == 1 else 0
        if len(page) < self.size or page[start] != TABLE_LEAF:
            return
        (cells,) = struct.unpack_from(">H", page, start + 3)
        for index in range(min(cells, (self.size - LEAF_HEADER) // 2)):
            pointer = start + LEAF_HEADER + 2 * index
            if pointer + 2 > self.size:
                return
            try:
                yield self._row(number, page, struct.unpack_from(">H", page, pointer)[0])
            except (_Damaged, struct.error, IndexError, UnicodeDecodeError):
                continue  # the others of this page may be intact

    def _row(self, number: int, page: bytes, place: int) -> PageRow:
        length, place = _varint(page, place)
        rowid, place = _varint(page, place)
        if length > PAYLOAD_MAX:
            raise _Damaged
        local = self._local_bytes(length)
        payload = page[place : place + local]
        if local < length:
            (following,) = struct.unpack_from(">I", page, place + local)
            payload += self._overflow(following, length - local)
        if len(payload) != length:
            raise _Damaged
        return PageRow(number, rowid, _values(payload))

    def _local_bytes(self, length: int) -> int:
        """How much of a row is in its own page; the rest is in a chain of other pages."""
        most = self.usable - 35
        if length <= most:
            return length
        least = (self.usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (self.usable - 4)
        return local if local <= most else least

    def _overflow(self, number: int, length: int) -> bytes:
        parts, missing = list[bytes](), length
        while missing > 0:
            page = self.page(number)
            if len(page) < self.size:
                raise _Damaged
            (number,) = struct.unpack_from(">I", page)
            parts.append(page[4 : min(self.usable, 4 + missing)])
            missing -= len(parts[-1])
        return b"".join(parts)


def _sizes(head: bytes) -> tuple[int, int]:
    """The size of a page, and how much of it is used; as SQLite chooses them if the head of the file is damaged."""
    if not head.startswith(MAGIC):
        return DEFAULT_PAGE, DEFAULT_PAGE
    (size,) = struct.unpack_from(">H", head, 16)
    size = 65_536 if size == 1 else size
    if size < 512 or size & (size - 1) or head[20] > size - 480:
        return DEFAULT_PAGE, DEFAULT_PAGE
    return size, size - head[20]


def _logged(path: Path, size: int) -> dict[int, bytes]:
    """The newest pages in a write-ahead log, as far as they belong to its present round."""
    try:
        with open_plain(path) as opened:
            content = opened.read()
    except FileNotFoundError:
        return {}
    salt, pages = content[16:24], dict[int, bytes]()
    for place in range(LOG_HEADER, len(content) - FRAME_HEADER - size + 1, FRAME_HEADER + size):
        if content[place + 8 : place + 16] != salt:
            break  # left from an earlier round
        (number,) = struct.unpack_from(">I", content, place)
        pages[number] = content[place + FRAME_HEADER : place + FRAME_HEADER + size]
    return pages


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for index in range(VARINT_MAX - 1):
        byte = data[place + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + index + 1
    return value << 8 | data[place + VARINT_MAX - 1], place + VARINT_MAX


def _values(payload: bytes) -> tuple[Value, ...]:
    end, place = _varint(payload, 0)
    if end > len(payload):
        raise _Damaged
    kinds = []
    while place < end:
        kind, place = _varint(payload, place)
        kinds.append(kind)
    values = []
    for kind in kinds:
        value, place = _value(payload, place, kind)
        values.append(value)
    if place != len(payload):
        raise _Damaged
    return tuple(values)


def _value(payload: bytes, place: int, kind: int) -> tuple[Value, int]:
    if kind in (0, 8, 9):
        return (None if kind == 0 else kind - 8), place
    if kind == 7:
        return struct.unpack_from(">d", payload, place)[0], place + 8
    if kind in INTEGER_BYTES:
        end = place + INTEGER_BYTES[kind]
        return int.from_bytes(payload[place:end], "big", signed=True), end
    if kind < FIRST_BLOB:
        raise _Damaged
    end = place + (kind - FIRST_BLOB) // 2
    content = payload[place:end]
    return (content.decode() if kind % 2 else content), end
