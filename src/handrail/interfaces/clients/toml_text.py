"""Changes one table of a TOML text in place, with tomlkit: every other line stays, comments too.

Pure. The caller verifies the result (entry.py) and imports this module only for a client with TOML settings: importing
tomlkit takes 26 ms."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Comment, InlineTable, Item, Key, SingleKey, Table, Whitespace

from handrail.domain.errors import Invalid
from handrail.interfaces.clients.layout import newline_of

Body: TypeAlias = list[tuple[Key | None, Item]]

MARK: Final = "\0\n"
"""Marks where something was removed. TOML allows no such line, so it can't be part of the text."""
TABLES: Final = (Table, InlineTable)
HINT: Final = "write one table a server, [mcp_servers.name], with a key on each line, then repeat the call"


def read(text: str) -> dict[str, Any]:
    """The text as data."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(str(error), hint="fix it there, then repeat the call") from error


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with this value at this path: as a key of an existing table, or as a new table at the end."""
    document = _parsed(text)
    *above, key = path
    tables = [item for body, index in _places(document.body, above) if isinstance(item := body[index][1], TABLES)]
    holder = next((table for table in tables if key in table or _takes_keys(table)), None)
    if holder is not None:
        _set(holder, key, value, newline_of(text))
        return document.as_string()
    if not isinstance(value, Mapping):
        raise Invalid(f"there is no table [{'.'.join(above)}] to put `{key}` into", hint=HINT)
    return _appended(text, path, value)


def drop(text: str, path: Sequence[str]) -> str:
    """The text without all parts of the value at this path, and without the blank lines before them."""
    document = _parsed(text)
    for holder, index in _places(document.body, path[:-1]):
        table = holder[index][1]
        if isinstance(table, InlineTable) and path[-1] in table:  # tomlkit fixes its commas and braces
            del table[path[-1]]
    for body, index in list(_places(document.body, path)):
        item = body[index][1]
        below = _below(item.value.body) if isinstance(item, Table) else []
        # As white space, even if it has comments: for a Comment item, tomlkit would write a header of the outer table.
        body[index] = (None, Whitespace(MARK + "".join(one.as_string() for _, one in below)))
    kept, *rest = document.as_string().split(MARK)
    for part in rest:
        kept = _without_blank_end(kept) + part
    return kept


def _parsed(text: str) -> tomlkit.TOMLDocument:
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise Invalid(str(error), hint="fix it there, then repeat the call") from error
    if document.as_string() != text:  # tomlkit would move parts of a table that are far apart
        raise Invalid("its tables are in an order that can't be kept", hint=HINT)
    return document


def _places(body: Body, path: Sequence[str]) -> Iterator[tuple[Body, int]]:
    """All places with a part of this path: the parts of a table need not be next to each other."""
    first, *rest = path
    for index, (key, item) in enumerate(body):
        if key is None or key.key != first:
            continue
        if not rest:
            yield body, index
        elif isinstance(item, TABLES):
            yield from _places(item.value.body, rest)


def _takes_keys(table: Table | InlineTable) -> bool:
    """Whether keys can be added; not if the table exists only in the headers of its sub-tables."""
    return isinstance(table, InlineTable) or not table.is_super_table()


def _set(table: Table | InlineTable, key: str, value: Any, newline: str) -> None:
    item = _inline(value)
    if key in table or isinstance(table, InlineTable):
        table[key] = item
        return
    # Not with `append`: it would put the key after comments that belong to the next table, and ignore CRLF.
    body = table.value.body
    tables = (index for index, (name, one) in enumerate(body) if name and isinstance(one, Table | AoT))
    at = _end_of_keys(body[: next(tables, len(body))])
    before = body[at - 1][1].trivia if at else table.trivia
    before.trail = before.trail or newline
    item.trivia.trail = newline
    body.insert(at, (SingleKey(key), item))


def _end_of_keys(body: Body) -> int:
    """Where the final blank lines and comments start: for tomlkit they belong to this table, for people to the next."""
    end = len(body)
    while end and isinstance(body[end - 1][1], Whitespace | Comment):
        end -= 1
    return end


def _below(body: Body) -> Body:
    """The blank lines and comments at the very end of a table."""
    if body and isinstance(body[-1][1], Table):
        return _below(body[-1][1].value.body)
    return body[_end_of_keys(body) :]


def _appended(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """The text with a new table at its end, where it can't come between a comment and its subject."""
    table = tomlkit.table()
    for key, part in value.items():
        table.append(key, _inline(part))
    for key in reversed(path[1:]):
        above = tomlkit.table(is_super_table=True)
        above.append(key, table)
        table = above
    newline = newline_of(text)
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    return text + gap + tomlkit.dumps({path[0]: table}).replace("\n", newline)


def _inline(value: Any) -> Item:
    """A value on one line."""
    if not isinstance(value, Mapping):
        item: Item = tomlkit.item(value)
        return item
    table = tomlkit.inline_table()
    table.update(value)
    return table


def _without_blank_end(text: str) -> str:
    lines = text.splitlines(keepends=True)
    while lines and not lines[-1].strip():
        lines.pop()
    return "".join(lines)
