"""Lines of an MCP server's output: what can be found out about a line without parsing it.

Pure. foundation/line_cutter.py splits the output into lines; pipe.py parses them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from handrail.foundation.line_cutter import EDGE_BYTES

PARTS_MAX: Final = 500_000
"""Values in one line: many small ones need far more memory than their bytes."""
PARTS_LOOKED_AT: Final = 1_000_000
"""Shorter lines can't contain too many values."""

_id = re.compile(rb'"id"\s*:\s*(?:(\d{1,15})|"(\w[\w-]{0,99})")')
_progress = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"method"\s*:\s*"notifications/progress"')


def named_ids(text: bytes) -> Iterator[int | str]:
    """The JSON-RPC ids that a broken message may belong to, those at its start first."""
    for edge in (text[:EDGE_BYTES], text[-EDGE_BYTES:]):
        for found in _id.finditer(edge):
            yield plain_id(found[1].decode() if found[1] else found[2].decode())


def plain_id(identifier: int | str) -> int | str:
    """An id as it was sent: some servers return numbers as text."""
    return int(identifier) if isinstance(identifier, str) and identifier.isdecimal() else identifier


def is_progress(line: bytes) -> bool:
    """Whether a line is a progress notification, found without parsing it."""
    return _progress.match(line) is not None


def is_broken_message(line: bytes) -> bool:
    """Whether an invalid line was meant as a message; a log line on the wrong stream was not."""
    if not line.lstrip().startswith(b"{"):
        return False
    if b'"jsonrpc"' in line[:EDGE_BYTES] or b'"jsonrpc"' in line[-EDGE_BYTES:]:
        return True
    try:
        msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return True
    return False


def has_too_many_parts(line: bytes) -> bool:
    """Whether a line contains too many values to parse."""
    return len(line) > PARTS_LOOKED_AT and sum(line.count(mark) for mark in (b",", b"[", b"{")) > PARTS_MAX
