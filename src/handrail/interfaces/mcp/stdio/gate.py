"""The gate: which requests are with the SDK at once, which wait for their turn, and which are too many.

Pure bookkeeping, without a lock or a thread: whoever calls it (front.py) sees to it that calls do not overlap."""

from __future__ import annotations

from enum import Enum
from typing import Final

from handrail.interfaces.mcp.stdio.envelope import Request
from handrail.interfaces.mcp.stdio.replies import RequestId, key_of

RUNNING_MAX: Final = 64
LISTENING_MAX: Final = 32
"""How many of those may be subscriptions, which end only when the client says so."""
WAITING_MAX: Final = 10_000
WAITING_CHARACTERS_MAX: Final = 64_000_000
LISTEN: Final = "subscriptions/listen"


class Entry(Enum):
    """What becomes of a request that comes to the gate."""

    GO = "it goes to the SDK now"
    WAIT = "it goes when another one is answered"
    FULL = "too many requests at once: wait for answers before sending more"
    TWICE = "a request with this id is not answered yet: give each request an id of its own"


class Gate:
    """Counts requests in and out."""

    def __init__(self) -> None:
        self._running: dict[RequestId, tuple[RequestId, str]] = {}
        self._waiting: dict[RequestId, Request] = {}
        self._characters = 0
        self._asked: set[RequestId] = set()

    def enter(self, request: Request) -> Entry:
        """Let a request in, now or later, or not at all."""
        key = key_of(request.id)
        if key in self._running or key in self._waiting:
            return Entry.TWICE
        if self._is_too_much(request):
            return Entry.FULL
        if len(self._running) < RUNNING_MAX:
            self._running[key] = (request.id, request.method)
            return Entry.GO
        self._waiting[key] = request
        self._characters += len(request.text)
        return Entry.WAIT

    def leave(self, request_id: RequestId) -> list[Request]:
        """A request is settled: those that may go to the SDK now."""
        self._running.pop(key_of(request_id), None)
        going: list[Request] = []
        while self._waiting and len(self._running) < RUNNING_MAX:
            request = self._forget(next(iter(self._waiting)))
            self._running[key_of(request.id)] = (request.id, request.method)
            going.append(request)
        return going

    def withdraw(self, request_id: RequestId) -> bool:
        """Forget a request that waits; False: it does not wait."""
        key = key_of(request_id)
        if key not in self._waiting:
            return False
        self._forget(key)
        return True

    def dismiss(self) -> list[Request]:
        """Forget all that wait, and say which."""
        waiting = list(self._waiting.values())
        self._waiting.clear()
        self._characters = 0
        return waiting

    def asked(self, request_id: RequestId) -> None:
        """The server asked the client something."""
        self._asked.add(key_of(request_id))

    def told(self, request_id: RequestId) -> None:
        """The client answered what the server asked."""
        self._asked.discard(key_of(request_id))

    @property
    def running(self) -> list[RequestId]:
        """The ids of the requests that are with the SDK."""
        return [request_id for request_id, _ in self._running.values()]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left that could be answered without the client's help."""
        # Each question to the client holds up one request; a subscription ends only by the client.
        return not self._waiting and len(self._running) - self._listening <= len(self._asked)

    @property
    def _listening(self) -> int:
        return sum(method == LISTEN for _, method in self._running.values())

    def _is_too_much(self, request: Request) -> bool:
        if request.method == LISTEN and self._listening >= LISTENING_MAX:
            return True
        if len(self._running) < RUNNING_MAX:
            return False
        return len(self._waiting) >= WAITING_MAX or self._characters + len(request.text) > WAITING_CHARACTERS_MAX

    def _forget(self, key: RequestId) -> Request:
        request = self._waiting.pop(key)
        self._characters -= len(request.text)
        return request
