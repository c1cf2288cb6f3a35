"""JSON with comments and trailing commas, read into a tree with positions in the text.

Only reads; jsonc_text.py uses the positions to change a string. Workflows are strict JSON
(library/documents/json_document.py)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from handrail.domain.errors import Invalid

DEPTH_MAX: Final = 100
_blank = re.compile(r"(?>(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?>(?:[^*]|\*(?!/))*)\*/)*)")
_string = re.compile(r'"(?>(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"')
_plain = re.compile(r"-?(?:0|[1-9][0-9]*+)(?>(?:\.[0-9]++)?)(?>(?:[eE][-+]?[0-9]++)?)(?![-+.\w])|true\b|false\b|null\b")


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value, from `start` up to `end`; an object has members."""

    start: int
    end: int
    value: Any
    members: tuple[JsonMember, ...] = ()
    trailing_comma: int | None = None
    """The position of the comma after the last member, if there is one."""

    def member(self, key: str) -> JsonMember | None:
        """The member with this key; refused if there are two, because clients differ in which one they use."""
        found = [member for member in self.members if member.key == key]
        if len(found) > 1:
            raise Invalid(f"the key `{key}` appears twice", hint="remove one of the two, then repeat the call")
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class JsonMember:
    """A key, which starts at `start`, and its value."""

    key: str
    start: int
    node: JsonNode


def read_tree(text: str) -> JsonNode:
    """The tree of a string; Invalid says where it is not JSON."""
    reader = _JsoncReader(text)
    root = reader.value(0)
    if reader.next():
        reader.stop("the document should end before this")
    return root


class _JsoncReader:
    """One pass over the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def next(self) -> str:
        """The next character that is not blank or comment; empty at the end."""
        found = _blank.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def stop(self, reason: str) -> NoReturn:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - self._text.rfind("\n", 0, self._at)
        raise Invalid(f"line {line}, column {column}: {reason}", hint="fix it there, then repeat the call")

    def value(self, depth: int) -> JsonNode:
        if depth > DEPTH_MAX:
            self.stop(f"nested deeper than {DEPTH_MAX}")
        first, start = self.next(), self._at
        if first == "{":
            return self._object(start, depth)
        if first == "[":
            items = [item.value for item, _ in self._items("]", depth, self.value)]
            return JsonNode(start, self._at, items)
        value = self._string() if first == '"' else self._word()
        return JsonNode(start, self._at, value)

    def _object(self, start: int, depth: int) -> JsonNode:
        found = list(self._items("}", depth, self._member))
        members = tuple(member for member, _ in found)
        comma = found[-1][1] if found else None
        return JsonNode(start, self._at, {member.key: member.node.value for member in members}, members, comma)

    def _items(self, closing: str, depth: int, read: Any) -> Iterator[tuple[Any, int | None]]:
        """The items between two brackets, each with the position of the comma after it."""
        self._at += 1
        while self.next() != closing:
            item, comma = read(depth + 1), None
            if self.next() == ",":
                comma = self._at
                self._at += 1
            elif self.next() != closing:
                self.stop(f"expected `,` or `{closing}`")
            yield item, comma
        self._at += 1

    def _member(self, depth: int) -> JsonMember:
        if self.next() != '"':
            self.stop("expected a key in double quotes")
        start = self._at
        key = self._string()
        if self.next() != ":":
            self.stop("expected `:`")
        self._at += 1
        return JsonMember(key, start, self.value(depth))

    def _string(self) -> str:
        return str(
            json.loads(
                self._token(_string, "a string that is never closed, or has characters that JSON does not allow")
            )
        )

    def _word(self) -> Any:
        return json.loads(self._token(_plain, "no value can start here"))

    def _token(self, pattern: re.Pattern[str], reason: str) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            self.stop(reason)
        self._at = found.end()
        return found[0]
