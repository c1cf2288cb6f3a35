"""Answers of the HTTP edge that are our own: JSON, closed to caches and guessers, errors with their way out.

Nothing is decided here, and nothing is sent: the application and the connection do that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from handrail.domain.errors import HandrailError

# The words of ASGI, as every server and framework spells them.
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
)
SAFE_NAMES: Final = frozenset(name for name, _ in SAFE_HEADERS)
CLOSE: Final[Header] = (b"connection", b"close")


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer: its status, its JSON, and what is said beside."""

    status: int
    body: bytes
    more_headers: Sequence[Header] = ()

    @property
    def headers(self) -> list[Header]:
        """All headers but the safe ones, which everything that is sent gets."""
        size = str(len(self.body)).encode()
        return [(b"content-type", b"application/json"), (b"content-length", size), *self.more_headers]


def answer_of(status: int, data: object) -> Answer:
    """Data as an answer."""
    return Answer(status, msgspec.json.encode(data))


def refusal(status: int, error: HandrailError, *more_headers: Header) -> Answer:
    """An error as an answer, with what to do next."""
    told = {"code": error.code, "name": error.name, "message": str(error), "hint": error.hint}
    return Answer(status, msgspec.json.encode(told), more_headers)


async def give(answer: Answer, send: Send) -> None:
    """Send an answer."""
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})


def safely(send: Send) -> Send:
    """The same way out, on which every answer gets the safe headers, whoever made it."""

    async def send_safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            others = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in SAFE_NAMES]
            message = {**message, "headers": [*others, *SAFE_HEADERS]}
        await send(message)

    return send_safely
