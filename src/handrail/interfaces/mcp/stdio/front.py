"""The front: receives a client's lines, answers what it can itself, and queues the rest for the SDK.

The reader thread calls `receive`; the event loop takes queued messages with `take` and reports the SDK's answers.
Messages that arrive before the loop runs, and that the snapshot can't answer, wait in the queue.
Imports no protocol library: the SDK is connected in sdk_bridge.py."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from handrail.foundation.line_cutter import Overlong
from handrail.interfaces.mcp.stdio.envelope import (
    ClientResponse,
    Ignored,
    Notification,
    Refusal,
    Request,
    read_envelope,
)
from handrail.interfaces.mcp.stdio.outlet import Outlet
from handrail.interfaces.mcp.stdio.replies import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    RequestId,
    error_line,
    result_line,
)
from handrail.interfaces.mcp.stdio.request_gate import Admission, RequestGate
from handrail.interfaces.mcp.stdio.snapshot_answers import SnapshotAnswers

QUEUED_MAX: Final = 1_000
"""How many messages may be queued for the SDK; beyond that the reader thread waits, and the client's pipe fills."""
ENDING: Final = "the server is shutting down: start it again"

Queued = Request | Notification | ClientResponse


class Ending(IntEnum):
    """Why the server ends. Ordered: a higher value is more urgent and replaces a lower one."""

    NOT_YET = 0
    CLIENT_IS_DONE = 1
    SIGNAL = 2
    CLIENT_IS_GONE = 3


class Front:
    """Connects one client to the SDK. One lock guards all state, because two threads use it."""

    def __init__(self, writing: int, snapshot: SnapshotAnswers | None) -> None:
        self.outlet = Outlet(writing, on_broken=lambda: self.end(Ending.CLIENT_IS_GONE))
        self.ending = Ending.NOT_YET
        self.needs_sdk = threading.Event()
        """Set when a request needs the SDK, or once `tools/list` is answered: loading it slows the first answers."""
        self._snapshot = snapshot
        self._gate = RequestGate()
        self._condition = threading.Condition()
        self._queue: deque[Queued | str] = deque()
        self._wake: Callable[[], None] | None = None
        self._failure = ""
        if snapshot is None:
            self.needs_sdk.set()

    # Called by the reader thread.

    def receive(self, line: bytes | Overlong) -> None:
        """Answer a line, or queue it for the SDK."""
        match read_envelope(line):
            case Refusal(code, message, request_id):
                self.outlet.send(error_line(request_id, code, message))
            case Request() as request:
                self._answer(request)
            case Notification() as notification:
                self._notify(notification)
            case ClientResponse() as response:
                self._response(response)
            case Ignored():
                pass

    def end(self, why: Ending) -> None:
        """Shut down: nothing new is started. Waiting requests are refused, unless the client only closed its stdin."""
        with self._condition:
            self.ending = max(self.ending, why)
            refused = self._gate.dismiss() if self._is_over else []
            self._condition.notify_all()
            self._wake_loop()
        for request in refused:
            self.outlet.enqueue(error_line(request.id, INTERNAL_ERROR, ENDING))
        self.needs_sdk.set()

    def _answer(self, request: Request) -> None:
        with self._condition:
            reply = self._early_answer(request) or self._admit(request)
        if reply is not None:  # outside the lock: a client that doesn't read would block the event loop as well
            self.outlet.send(reply)
        if reply is None or request.method == "tools/list":
            self.needs_sdk.set()

    def _early_answer(self, request: Request) -> bytes | None:
        """The answer, if it can be given without the SDK."""
        if self._is_over:
            return error_line(request.id, INTERNAL_ERROR, self._failure or ENDING)
        answer = self._snapshot.answer(request) if self._snapshot is not None else None
        if answer is None:
            return None
        if answer.replay is not None:
            self._enqueue(answer.replay)
        return result_line(request.id, answer.result)

    def _admit(self, request: Request) -> bytes | None:
        """None if the SDK will answer; otherwise an error for the client."""
        admission = self._gate.enter(request)
        if admission is Admission.GO:
            self._enqueue(request)
        if admission in (Admission.GO, Admission.WAIT):
            return None
        code = INVALID_REQUEST if admission is Admission.DUPLICATE else INTERNAL_ERROR
        return error_line(request.id, code, admission.value)

    def _response(self, response: ClientResponse) -> None:
        with self._condition:
            if response.id is not None:
                self._gate.client_answered(response.id)
            self._enqueue(response)

    def _notify(self, notification: Notification) -> None:
        with self._condition:
            if notification.method == "notifications/cancelled":
                cancelled = notification.params.get("requestId")
                if isinstance(cancelled, int | str) and self._gate.withdraw(cancelled):
                    return  # it never reached the SDK, so the SDK has nothing to cancel
            self._enqueue(notification)

    def _enqueue(self, message: Queued | str) -> None:
        """Queue a message; wait while the queue is full, so that a fast client can't fill the memory."""
        self._condition.wait_for(lambda: len(self._queue) < QUEUED_MAX or self._is_over)
        if not self._is_over:
            self._enqueue_now(message)

    # Called by the main thread and its event loop.

    def attach(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, when a message is queued or the server has to end."""
        with self._condition:
            self._wake = wake
            self._wake_loop()

    def retire_snapshot(self) -> None:
        """The SDK is loaded: from now on it answers everything."""
        with self._condition:
            self._snapshot = None

    def take(self) -> Queued | str | None:
        """The next message for the SDK. A plain string is a replayed request: its answer must not reach the client."""
        with self._condition:
            if not self._queue:
                return None
            self._condition.notify_all()
            return self._queue.popleft()

    def settled(self, request_id: RequestId) -> None:
        """A request was answered, or was cancelled and never will be; queue those that waited for its slot."""
        with self._condition:
            for request in self._gate.leave(request_id):
                self._enqueue_now(request)  # without waiting for room: the event loop itself empties the queue
            if self.ending:
                self._wake_loop()

    def asked(self, request_id: RequestId) -> None:
        """The SDK sends a request to the client."""
        with self._condition:
            self._gate.asked_client(request_id)
            if self.ending:
                self._wake_loop()

    def fail(self, reason: str) -> None:
        """Answer every waiting and every later request with the reason why the server can't work."""
        with self._condition:
            self._failure = reason
            self._queue.clear()
            waiting = [*self._gate.running, *(request.id for request in self._gate.dismiss())]
            self._condition.notify_all()
        for request_id in waiting:
            self.outlet.send(error_line(request_id, INTERNAL_ERROR, reason))

    def wait_for_end(self, wait_s: float) -> None:
        """Wait until the client has closed the connection, at most that long."""
        with self._condition:
            self._condition.wait_for(lambda: self.ending, wait_s)

    @property
    def is_idle(self) -> bool:
        """Whether every request that can be answered has been answered."""
        with self._condition:
            return self._gate.is_idle

    @property
    def _is_over(self) -> bool:
        return bool(self._failure) or self.ending > Ending.CLIENT_IS_DONE

    def _enqueue_now(self, message: Queued | str) -> None:
        self._queue.append(message)
        self._wake_loop()

    def _wake_loop(self) -> None:
        if self._wake is not None:
            self._wake()
