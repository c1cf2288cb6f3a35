"""What both ends say of a line that can't be parsed because it is too long or nested too deep: its id, if it is JSON.

Pure. Looks only at the ends of the line. Without an id in the error, the client would wait forever."""

from __future__ import annotations

import re
from typing import Final

from handrail.interfaces.mcp.stdio.replies import RequestId

_MEMBER: Final = rb'"(jsonrpc|method|id)"\s*:\s*("[^"\\\x00-\x1f]*+"|-?[0-9]{1,18}+(?=\s*[,}]))'
_PLAIN: Final = re.sub(rb"\((?!\?)", b"(?:", _MEMBER)
_ENDS: Final = (  # how each kind of JSON value starts and ends
    (re.compile(rb'\s*\{\s*["}]'), re.compile(rb"\}\s*$")),
    (re.compile(rb"\s*\["), re.compile(rb"\]\s*$")),
    (re.compile(rb'\s*"'), re.compile(rb'"\s*$')),
    (re.compile(rb"\s*-?[0-9]"), re.compile(rb"[0-9]\s*$")),
    (re.compile(rb"\s*$"), re.compile(rb"[]}\"0-9a-z]\s*$")),  # so many blanks that the start is not kept
)
_OPENING: Final = re.compile(rb"\s*\{\s*")
_FIRST: Final = re.compile(_MEMBER + rb"\s*,?\s*")
_LAST: Final = re.compile(rb"[,{]\s*((?:" + _PLAIN + rb"\s*,\s*)*" + _PLAIN + rb")\s*\}\s*$")


def stray_id(head: bytes, tail: bytes) -> RequestId | None:
    """The id of the request that starts and ends like this; None if it isn't certain, or it isn't a request."""
    found = _first_members(head)
    last = _LAST.search(tail)
    if last is not None:
        found |= dict(re.findall(_MEMBER, last[1]))
    if b"method" not in found or b"id" not in found:  # the id of a response was chosen by the server, not the client
        return None
    return _plain(found[b"id"])


def may_be_json(head: bytes, tail: bytes) -> bool:
    """Whether a line that starts and ends like this can be JSON."""
    return any(start.match(head) and end.search(tail) for start, end in _ENDS)


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
