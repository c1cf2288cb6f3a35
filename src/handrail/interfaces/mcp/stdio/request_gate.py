"""Limits how many requests the SDK works on at once, how many wait for a slot, and how many are refused.

Pure bookkeeping, without locks or threads: the caller (front.py) holds a lock around every call."""

from __future__ import annotations

from enum import Enum
from typing import Final

from handrail.interfaces.mcp.stdio.envelope import Request
from handrail.interfaces.mcp.stdio.replies import RequestId, key_of

RUNNING_MAX: Final = 64
LISTENING_MAX: Final = 32
"""How many of those may be subscriptions, which run until the client ends them and would otherwise use every slot."""
WAITING_MAX: Final = 10_000
WAITING_CHARACTERS_MAX: Final = 64_000_000
LISTEN: Final = "subscriptions/listen"


class Admission(Enum):
    """What happens to a request that arrives."""

    GO = "it goes to the SDK now"
    WAIT = "it goes when another one is answered"
    FULL = "too many requests at once: wait for answers before sending more"
    DUPLICATE = "a request with this id is not answered yet: use a different id for each request"


class RequestGate:
    """The requests that run and those that wait."""

    def __init__(self) -> None:
        self._running: dict[RequestId, tuple[RequestId, str]] = {}
        self._waiting: dict[RequestId, Request] = {}
        self._characters = 0
        self._asked_client: set[RequestId] = set()

    def enter(self, request: Request) -> Admission:
        """Let a request run now, make it wait, or refuse it."""
        key = key_of(request.id)
        if key in self._running or key in self._waiting:
            return Admission.DUPLICATE
        if self._is_too_much(request):
            return Admission.FULL
        if len(self._running) < RUNNING_MAX:
            self._running[key] = (request.id, request.method)
            return Admission.GO
        self._waiting[key] = request
        self._characters += len(request.text)
        return Admission.WAIT

    def leave(self, request_id: RequestId) -> list[Request]:
        """A request has finished; returns the waiting requests that may go to the SDK now."""
        self._running.pop(key_of(request_id), None)
        admitted: list[Request] = []
        while self._waiting and len(self._running) < RUNNING_MAX:
            request = self._remove_waiting(next(iter(self._waiting)))  # a dict keeps the order of arrival
            self._running[key_of(request.id)] = (request.id, request.method)
            admitted.append(request)
        return admitted

    def withdraw(self, request_id: RequestId) -> bool:
        """Remove a waiting request; False if it isn't waiting."""
        key = key_of(request_id)
        if key not in self._waiting:
            return False
        self._remove_waiting(key)
        return True

    def dismiss(self) -> list[Request]:
        """Remove and return all waiting requests."""
        waiting = list(self._waiting.values())
        self._waiting.clear()
        self._characters = 0
        return waiting

    def asked_client(self, request_id: RequestId) -> None:
        """The server sent a request to the client."""
        self._asked_client.add(key_of(request_id))

    def client_answered(self, request_id: RequestId) -> None:
        """The client answered a request from the server."""
        self._asked_client.discard(key_of(request_id))

    @property
    def running(self) -> list[RequestId]:
        """The ids of the requests that the SDK is working on."""
        return [request_id for request_id, _ in self._running.values()]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left that could be answered without more input from the client."""
        # Each question to the client blocks one request; only the client ends a subscription.
        return not self._waiting and len(self._running) - self._listening <= len(self._asked_client)

    @property
    def _listening(self) -> int:
        return sum(method == LISTEN for _, method in self._running.values())

    def _is_too_much(self, request: Request) -> bool:
        if request.method == LISTEN and self._listening >= LISTENING_MAX:
            return True
        if len(self._running) < RUNNING_MAX:
            return False
        return len(self._waiting) >= WAITING_MAX or self._characters + len(request.text) > WAITING_CHARACTERS_MAX

    def _remove_waiting(self, key: RequestId) -> Request:
        request = self._waiting.pop(key)
        self._characters -= len(request.text)
        return request
