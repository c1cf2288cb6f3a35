"""HTTP responses that handrail makes itself: JSON, never cached or sniffed, and errors with a hint.

When to send which response is decided in site.py and connection.py."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from handrail.domain.errors import HandrailError

# ASGI's types, under the names that servers and frameworks use for them.
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

SAFE_HEADERS: Final[Sequence[Header]] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
SAFE_NAMES: Final = frozenset(name for name, _ in SAFE_HEADERS)
NO_CONTENT: Final[Header] = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
"""For everything that is no page."""
REVALIDATED: Final = b"private, no-cache"
"""For files that are no secret: kept by the browser, which asks each time whether they have changed."""
CLOSE: Final[Header] = (b"connection", b"close")


@dataclass(frozen=True, slots=True)
class JsonResponse:
    """A complete response: status, JSON body and extra headers."""

    status: int
    body: bytes
    more_headers: Sequence[Header] = ()

    @property
    def headers(self) -> list[Header]:
        """All headers except SAFE_HEADERS, which are added to everything that is sent."""
        size = str(len(self.body)).encode()
        return [(b"content-type", b"application/json"), (b"content-length", size), *self.more_headers]


def json_response(status: int, data: object) -> JsonResponse:
    """Data as a response."""
    return JsonResponse(status, msgspec.json.encode(data))


def error_response(status: int, error: HandrailError, *more_headers: Header) -> JsonResponse:
    """An error as a response, with a hint what to do next."""
    body = {"code": error.code, "name": error.name, "message": str(error), "hint": error.hint}
    return JsonResponse(status, msgspec.json.encode(body), more_headers)


async def send_response(response: JsonResponse, send: Send) -> None:
    """Send a complete response."""
    await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": False})


def with_safe_headers(send: Send) -> Send:
    """A `send` that adds the safe headers to every response, including the SDK's."""

    async def send_safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": _safe(message.get("headers", ()))}
        await send(message)

    return send_safely


def _safe(headers: Sequence[Header]) -> list[Header]:
    own = {name.lower(): value for name, value in headers}
    safe = [(name, REVALIDATED if own.get(name) == REVALIDATED else value) for name, value in SAFE_HEADERS]
    if NO_CONTENT[0] not in own:
        safe.append(NO_CONTENT)
    return [*((name, value) for name, value in headers if name.lower() not in SAFE_NAMES), *safe]
