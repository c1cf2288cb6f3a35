"""Request bodies: read completely before anything else sees them, up to a limit.

A body that never arrives is cut off in connection.py."""

from __future__ import annotations

from handrail.domain.errors import Limited
from handrail.interfaces.web.responses import Receive, Scope


async def read_body(scope: Scope, receive: Receive, *, bytes_max: int) -> bytes | None:
    """The whole body; None if the client has disconnected. Raises Limited if it is, or announces to be, too large."""
    if _announced(scope) > bytes_max:  # refuse before reading anything
        raise _too_large(bytes_max)
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > bytes_max:
            raise _too_large(bytes_max)
        if not message.get("more_body", False):
            return bytes(body)


def _announced(scope: Scope) -> int:
    sizes = [int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()]
    return max(sizes, default=0)


def _too_large(bytes_max: int) -> Limited:
    hint = "pass large values by reference, or split them"
    return Limited(f"a request may have at most {bytes_max:,} bytes", hint=hint)
