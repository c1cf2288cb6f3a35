"""Replies: the few answers that the front gives itself, as lines of JSON-RPC.

Pure. Which answer is due is decided in envelope.py, gate.py and front.py; all others are the SDK's."""

from __future__ import annotations

import json
from typing import Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

RequestId = int | str


def error_line(request_id: RequestId | None, code: int, message: str) -> bytes:
    """An error as a line; `None`: nobody knows which request it answers."""
    error = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}, separators=(",", ":")).encode() + b"\n"


def result_line(request_id: RequestId, result: bytes) -> bytes:
    """A result that is JSON already, as a line."""
    return b'{"jsonrpc":"2.0","id":' + json.dumps(request_id).encode() + b',"result":' + result + b"}\n"


def key_of(request_id: RequestId) -> RequestId:
    """What an id is known by: the SDK takes "7" and 7 for one id, and so must whoever counts them."""
    if isinstance(request_id, str):
        try:
            return int(request_id)
        except ValueError:
            return request_id
    return request_id
