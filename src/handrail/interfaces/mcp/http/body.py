"""Request bodies as MCP messages, validated as on stdio, and replayed for the SDK.

Validated here because the SDK takes some malformed requests for notifications, and doesn't answer them."""

from __future__ import annotations

from handrail.interfaces.mcp.stdio.envelope import Envelope, Ignored, Refusal, read_envelope
from handrail.interfaces.mcp.stdio.replies import INVALID_REQUEST, error_line
from handrail.interfaces.web.responses import JsonResponse, Message, Receive


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
