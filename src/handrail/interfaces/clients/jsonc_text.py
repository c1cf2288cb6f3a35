"""Changes one member of a JSON text in place: every other character stays, comments and formatting too.

Pure. No library keeps the rest of the text and is fast enough (docs/decisions/0011). The caller verifies the result
(entry.py)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from handrail.domain.errors import Invalid
from handrail.interfaces.clients.jsonc_tree import JsonMember, JsonNode, read_tree
from handrail.interfaces.clients.layout import indent_of, line_end, margin_at, newline_of


def read(text: str) -> dict[str, Any]:
    """The text's object; an empty string is an empty object."""
    value = read_tree(text).value if text.strip() else {}
    if not isinstance(value, dict):
        raise Invalid("it is not an object", hint="it should look like {...}")
    return value


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with this value at this path; missing objects on the way are created."""
    if not text.strip():
        text = f"{{}}{newline_of(text)}"
    node, rest = _descend(text, path)
    if not rest:
        return text[: node.start] + _written(text, node.start, value) + text[node.end :]
    for key in reversed(rest[1:]):
        value = {key: value}
    return _insert(text, node, rest[0], value)


def drop(text: str, path: Sequence[str]) -> str:
    """The text without the member at this path; the text itself if there is none."""
    node, rest = _descend(text, path[:-1])
    member = None if rest else node.member(path[-1])
    if member is None:
        return text
    start, end = _extent(text, node, member)
    index = node.members.index(member)
    is_last = index + 1 == len(node.members)
    if is_last and index == 0:
        return (
            text[: node.start + 1]
            + _unless_blank(text[node.start + 1 : start] + text[end : node.end - 1])
            + (text[node.end - 1 :])
        )
    if is_last and node.trailing_comma is None:
        comma = _comma_after(text, node.members[index - 1])
        return text[:comma] + text[comma + 1 : start] + text[end:]
    return text[:start] + text[end:]


def _descend(text: str, path: Sequence[str]) -> tuple[JsonNode, Sequence[str]]:
    """The deepest existing value on the path, and the rest of the path."""
    node = read_tree(text)
    for index, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise Invalid(f"`{'.'.join(path[:index])}` is not an object", hint="it should look like {...}")
        member = node.member(key)
        if member is None:
            return node, path[index:]
        node = member.node
    return node, ()


def _insert(text: str, node: JsonNode, key: str, value: Any) -> str:
    """The text with one more member at the end of an object."""
    is_flat = bool(node.members) and "\n" not in text[node.start : node.end]
    if is_flat:
        return _insert_flat(text, node, key, value)
    newline = newline_of(text)
    margin = margin_at(text, node.start)
    inner = margin_at(text, node.members[0].start) if node.members else margin + indent_of(text)
    member = f"{newline}{inner}{_quoted(key)}: {_pretty(value, inner, text)}"
    if not node.members:
        inside = text[node.start + 1 : node.end - 1].rstrip()  # there may be comments
        return f"{text[: node.start + 1]}{inside}{member}{newline}{margin}{text[node.end - 1 :]}"
    last = node.members[-1].node.end if node.trailing_comma is None else node.trailing_comma
    before = text[:last] + "," + text[last : node.end - 1].removeprefix(",").rstrip()
    after = "," if node.trailing_comma is not None else ""
    closing = text[node.end - 1 :]
    return f"{before}{member}{after}{newline}{margin}{closing}"


def _insert_flat(text: str, node: JsonNode, key: str, value: Any) -> str:
    """An object on one line stays on one line."""
    last = node.members[-1].node.end
    is_tight = '":' in text[node.start : node.end] and '": ' not in text[node.start : node.end]
    colon, comma = (":", ",") if is_tight else (": ", ", ")
    member = f"{_quoted(key)}{colon}{json.dumps(value, ensure_ascii=False, separators=(comma, colon))}"
    return f"{text[:last]}{comma}{member}{text[last:]}"


def _written(text: str, at: int, value: Any) -> str:
    """A value that replaces another."""
    is_flat = not isinstance(value, dict) or "\n" not in text
    return json.dumps(value, ensure_ascii=False) if is_flat else _pretty(value, margin_at(text, at), text)


def _pretty(value: Any, margin: str, text: str) -> str:
    """A value over several lines; lists stay on one."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    newline, inner = newline_of(text), margin + indent_of(text)
    members = (f"{inner}{_quoted(key)}: {_pretty(part, inner, text)}" for key, part in value.items())
    return f"{{{newline}{f',{newline}'.join(members)}{newline}{margin}}}"


def _quoted(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)


def _extent(text: str, node: JsonNode, member: JsonMember) -> tuple[int, int]:
    """All that belongs to a member: its comma, and on lines of its own also the line break and a comment."""
    is_last = member is node.members[-1]
    has_comma = not is_last or node.trailing_comma is not None
    start, end = member.start, _comma_after(text, member) + 1 if has_comma else member.node.end
    before = text[:start].rstrip(" \t")
    if before.endswith("\n"):
        start = len(before) - (2 if before.endswith("\r\n") else 1)
        comment = text[end : line_end(text, end)]
        end += len(comment) if not comment.strip() or comment.lstrip().startswith("//") else 0
    return start, end


def _unless_blank(text: str) -> str:
    return text if text.strip() else ""


def _comma_after(text: str, member: JsonMember) -> int:
    """The comma after a member; there may be comments in between."""
    at = member.node.end
    while text[at] != ",":
        if text.startswith("//", at):
            at = text.index("\n", at)
        elif text.startswith("/*", at):
            at = text.index("*/", at) + 2
        else:
            at += 1
    return at
