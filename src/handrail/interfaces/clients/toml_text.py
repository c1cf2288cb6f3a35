"""Changes one table of a TOML text in its place: every other line stays, comments too.

Pure. The standard library reads TOML but knows no positions, so tables are found by their headers; whether the outcome
is what was wanted is checked by the caller (entry.py), and a text that is written in another way is refused."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from handrail.domain.errors import Invalid
from handrail.interfaces.clients.layout import newline_of

_header = re.compile(r"[ \t]*\[(?!\[)([^\]\r\n]*)\][ \t]*(?:#.*)?$")
_any_header = re.compile(r"[ \t]*\[")
_bare: Final = re.compile(r"[A-Za-z0-9_-]+")
HINT: Final = "write it as tables, [mcp_servers.name] with a key on each line, then repeat the call"


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the line of its header, and the line behind its last key."""

    path: tuple[str, ...]
    first: int
    last: int


def read(text: str) -> dict[str, Any]:
    """What the text says."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(str(error), hint="mend it there, then repeat the call") from error


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with this value at this path: a new table at the end, or a key of a table that is there."""
    *above, key = path
    lines, newline = text.splitlines(keepends=True), newline_of(text)
    if table := _table(lines, above):
        return _with_key(lines, table, key, f"{_key(key)} = {_written(value)}", newline)
    if _table(lines, above[:-1]) and isinstance(value, str):  # `env = { ... }` is a value of the table above
        return put(text, above, {**_value_at(text, above), key: value})
    if not isinstance(value, dict):
        raise Invalid(f"there is no table [{'.'.join(above)}] to put `{key}` into", hint=HINT)
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    return text + gap + newline.join(_table_lines(path, value)) + newline


def drop(text: str, path: Sequence[str]) -> str:
    """The text without what stands at this path: tables and those below them, or a key of the table above."""
    lines = text.splitlines(keepends=True)
    for table in reversed([table for table in _tables(lines) if table.path[: len(path)] == tuple(path)]):
        first = table.first
        while first and not lines[first - 1].strip():  # the blank lines before it came with it
            first -= 1
        del lines[first : table.last]
    above = _table(lines, path[:-1])
    if above and (pair := _pair(lines, above, path[-1])):
        del lines[pair[0] : pair[1]]
    return "".join(lines)


def _table(lines: Sequence[str], path: Sequence[str]) -> Table | None:
    return next((table for table in _tables(lines) if table.path == tuple(path)), None)


def _value_at(text: str, path: Sequence[str]) -> Mapping[str, Any]:
    value: Any = read(text)
    for key in path:
        value = value.get(key, {})
    return value if isinstance(value, dict) else {}


def _tables(lines: Sequence[str]) -> list[Table]:
    """All tables that have a header of their own, in order."""
    heads = [index for index, line in enumerate(lines) if _any_header.match(line) and _is_outside(lines, index)]
    found = []
    for head, following in zip(heads, [*heads[1:], len(lines)], strict=False):
        match = _header.match(lines[head].rstrip("\r\n"))
        if match:
            found.append(Table(_path_of(match[1]), head, _end_of_keys(lines, head, following)))
    return found


def _is_outside(lines: Sequence[str], index: int) -> bool:
    """Whether no array or text that began above is still open here."""
    try:
        tomllib.loads("".join(lines[:index]))
    except tomllib.TOMLDecodeError:
        return False
    return True


def _end_of_keys(lines: Sequence[str], head: int, following: int) -> int:
    """Behind the last line that says something: remarks before the next table belong to that one."""
    last = following
    while last > head + 1 and (not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#")):
        last -= 1
    return last


def _path_of(header: str) -> tuple[str, ...]:
    """The path that a header names."""
    value: Any = tomllib.loads(f"[{header}]")
    path = []
    while value:
        ((key, value),) = value.items()
        path.append(key)
    return tuple(path)


def _with_key(lines: list[str], table: Table, key: str, written: str, newline: str) -> str:
    if pair := _pair(lines, table, key):
        start, end = pair
        lines[start:end] = [written + _remark("".join(lines[start:end])) + newline]
        return "".join(lines)
    if not lines[table.last - 1].endswith("\n"):
        lines[table.last - 1] += newline
    lines.insert(table.last, written + newline)
    return "".join(lines)


def _pair(lines: Sequence[str], table: Table, key: str) -> tuple[int, int] | None:
    """The lines from which up to which a key and its value stand."""
    start = table.first + 1
    while start < table.last:
        end = _end_of_pair(lines, start, table.last)
        if key in tomllib.loads("".join(lines[start:end])):
            return start, end
        start = end
    return None


def _remark(pair: str) -> str:
    """The remark behind a value, with the blanks before it."""
    for index in (index for index, sign in enumerate(pair) if sign == "#"):
        try:
            tomllib.loads(pair[:index])
        except tomllib.TOMLDecodeError:
            continue
        value = pair[:index].rstrip()
        return pair[len(value) :].rstrip("\r\n")
    return ""


def _end_of_pair(lines: Sequence[str], start: int, last: int) -> int:
    """Behind the line on which the key and value end that begin here; a list may take several lines."""
    for end in range(start + 1, last + 1):
        try:
            tomllib.loads("".join(lines[start:end]))
        except tomllib.TOMLDecodeError:
            continue
        return end
    raise Invalid(f"line {start + 1} can't be told apart from what follows", hint=HINT)


def _table_lines(path: Sequence[str], value: Mapping[str, Any]) -> Iterator[str]:
    yield f"[{'.'.join(map(_key, path))}]"
    for key, part in value.items():
        yield f"{_key(key)} = {_written(part)}"


def _key(key: str) -> str:
    return key if _bare.fullmatch(key) else _written(key)


def _written(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(key)} = {_written(part)}" for key, part in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    # What JSON writes for texts, numbers and truth is TOML too, save for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
