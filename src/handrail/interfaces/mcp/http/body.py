"""Bodies of requests: read whole before anybody else sees them, up to a size, and looked at as on stdio.

The SDK takes some malformed requests for notifications, and leaves them unanswered. A body that never comes is the
connection's business (connection.py)."""

from __future__ import annotations

from handrail.domain.errors import Limited
from handrail.interfaces.mcp.http.answers import Answer, Message, Receive, Scope
from handrail.interfaces.mcp.stdio.envelope import Nothing, Refusal, read_envelope
from handrail.interfaces.mcp.stdio.replies import INVALID_REQUEST, error_line


async def read_body(scope: Scope, receive: Receive, *, bytes_max: int) -> bytes | None:
    """The whole body; None if the client has gone. Limited if it is too large, or says that it will be."""
    if _announced(scope) > bytes_max:
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


def once_more(body: bytes, receive: Receive) -> Receive:
    """A way in on which the body comes at once, and then what really comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


def malformed(body: bytes) -> Answer | None:
    """Why this is no message of JSON-RPC, in its own words."""
    match read_envelope(body):
        case Refusal(code=code, message=message, id=request_id):
            return Answer(400, error_line(request_id, code, message))
        case Nothing(why=why):
            return Answer(400, error_line(None, INVALID_REQUEST, f"{why} is no message"))
        case _:
            return None


def _announced(scope: Scope) -> int:
    sizes = [int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()]
    return max(sizes, default=0)


def _too_large(bytes_max: int) -> Limited:
    return Limited(f"a request may have {bytes_max:,} bytes", hint="pass large values by reference, or split them")
