"""Stray ids: whom to answer when a request can't be read as a whole, because it is too long or too deep.

Pure. The members at both ends of a line can be told without its middle. Without an id, a client would wait for ever."""

from __future__ import annotations

import re
from typing import Final

from handrail.interfaces.mcp.stdio.replies import RequestId

_MEMBER: Final = rb'"(jsonrpc|method|id)"\s*:\s*("[^"\\\x00-\x1f]*+"|-?[0-9]{1,18}+(?=\s*[,}]))'
_PLAIN: Final = re.sub(rb"\((?!\?)", b"(?:", _MEMBER)
_OPENING: Final = re.compile(rb"\s*\{\s*")
_FIRST: Final = re.compile(_MEMBER + rb"\s*,?\s*")
_LAST: Final = re.compile(rb"[,{]\s*((?:" + _PLAIN + rb"\s*,\s*)*" + _PLAIN + rb")\s*\}\s*$")


def stray_id(head: bytes, tail: bytes) -> RequestId | None:
    """The id of the request that begins and ends so; None if that is not sure, or it is no request."""
    found = _first_members(head)
    last = _LAST.search(tail)
    if last is not None:
        found |= dict(re.findall(_MEMBER, last[1]))
    if b"method" not in found or b"id" not in found:  # an answer's id is not the client's own
        return None
    return _plain(found[b"id"])


def _first_members(head: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    start = _OPENING.match(head)
    at = start.end() if start else len(head)
    while member := _FIRST.match(head, at):
        found[member[1]] = member[2]
        at = member.end()
    return found


def _plain(value: bytes) -> RequestId | None:
    if not value.startswith(b'"'):
        return int(value)
    try:
        return value[1:-1].decode()
    except UnicodeDecodeError:
        return None
