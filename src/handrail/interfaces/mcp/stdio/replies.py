"""JSON-RPC lines for the few answers that the front gives itself.

Pure. Which answer to give is decided in envelope.py, request_gate.py and front.py; the SDK gives all others."""

from __future__ import annotations

import json
from typing import Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

RequestId = int | str


def error_line(request_id: RequestId | None, code: int, message: str) -> bytes:
    """An error as a line; the id is None if the request's id couldn't be read."""
    error = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}, separators=(",", ":")).encode() + b"\n"


def result_line(request_id: RequestId, result: bytes) -> bytes:
    """A result that is already JSON, as a line."""
    return b'{"jsonrpc":"2.0","id":' + json.dumps(request_id).encode() + b',"result":' + result + b"}\n"


def key_of(request_id: RequestId) -> RequestId:
    """The key to store an id under: the SDK treats "7" and 7 as the same id, so we must too."""
    if isinstance(request_id, str):
        try:
            return int(request_id)
        except ValueError:
            return request_id
    return request_id
