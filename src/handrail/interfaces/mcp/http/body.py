"""Request bodies: read completely before the SDK sees them, up to a limit, and validated as on stdio.

Validated here because the SDK takes some malformed requests for notifications, and doesn't answer them.
A body that never arrives is cut off in connection.py."""

from __future__ import annotations

from handrail.domain.errors import Limited
from handrail.interfaces.mcp.http.responses import JsonResponse, Message, Receive, Scope
from handrail.interfaces.mcp.stdio.envelope import Envelope, Ignored, Refusal, read_envelope
from handrail.interfaces.mcp.stdio.replies import INVALID_REQUEST, error_line


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


def replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns this body first, and then what the client really sends."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


def read_message(body: bytes) -> Envelope | JsonResponse:
    """The message of a body, or a JSON-RPC error if it isn't a JSON-RPC message."""
    match read_envelope(body):
        case Refusal(code=code, message=message, id=request_id):
            return JsonResponse(400, error_line(request_id, code, message))
        case Ignored(why=why):
            return JsonResponse(400, error_line(None, INVALID_REQUEST, f"{why} is not a message"))
        case message:
            return message


def _announced(scope: Scope) -> int:
    sizes = [int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()]
    return max(sizes, default=0)


def _too_large(bytes_max: int) -> Limited:
    hint = "pass large values by reference, or split them"
    return Limited(f"a request may have at most {bytes_max:,} bytes", hint=hint)
