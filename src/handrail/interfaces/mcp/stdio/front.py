"""The front: where a client's lines arrive and the SDK's answers leave, and who answers what in between.

One thread reads lines and gives them to `receive`; the event loop takes from here what is for the SDK, and shows here
what the SDK says. Until the loop is there, all that a snapshot does not answer is kept. No protocol library in here."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from handrail.foundation.line_cutter import Overlong
from handrail.interfaces.mcp.stdio.clerk import Clerk
from handrail.interfaces.mcp.stdio.envelope import Answer, Nothing, Notification, Refusal, Request, read_envelope
from handrail.interfaces.mcp.stdio.gate import Entry, Gate
from handrail.interfaces.mcp.stdio.outlet import Outlet
from handrail.interfaces.mcp.stdio.replies import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    RequestId,
    error_line,
    result_line,
)

KEPT_MAX: Final = 1_000
"""How many messages may be on their way to the SDK; then the reader waits, and the client's pipe fills."""
ENDING: Final = "the server is ending: start it again"

Passed = Request | Notification | Answer


class Ending(IntEnum):
    """Why it comes to an end; the later, the more pressing."""

    NOT_YET = 0
    CLIENT_IS_DONE = 1
    SIGNAL = 2
    CLIENT_IS_GONE = 3


class Front:
    """Stands between one client and the SDK."""

    def __init__(self, writing: int, clerk: Clerk | None) -> None:
        self.outlet = Outlet(writing, on_broken=lambda: self.end(Ending.CLIENT_IS_GONE))
        self.ending = Ending.NOT_YET
        self.needs_sdk = threading.Event()
        """Set when the cheap answers are given, or a request can't be answered cheaply."""
        self._clerk = clerk
        self._gate = Gate()
        self._turn = threading.Condition()
        self._passed: deque[Passed | str] = deque()
        self._wake: Callable[[], None] | None = None
        self._failure = ""
        if clerk is None:
            self.needs_sdk.set()

    # What the reader's thread calls.

    def receive(self, line: bytes | Overlong) -> None:
        """Answer a line, or pass it on."""
        match read_envelope(line):
            case Refusal(code, message, request_id):
                self.outlet.send(error_line(request_id, code, message))
            case Request() as request:
                self._answer(request)
            case Notification() as notification:
                self._notify(notification)
            case Answer() as answer:
                self._told(answer)
            case Nothing():
                pass

    def end(self, why: Ending) -> None:
        """Come to an end: no more work is begun, and what waits is refused unless the client only stopped sending."""
        with self._turn:
            self.ending = max(self.ending, why)
            refused = self._gate.dismiss() if self._is_over else []
            self._turn.notify_all()
            self._nudge()
        for request in refused:
            self.outlet.hand_in(error_line(request.id, INTERNAL_ERROR, ENDING))
        self.needs_sdk.set()

    def _answer(self, request: Request) -> None:
        with self._turn:
            reply = self._known(request) or self._admit(request)
        if reply is not None:
            self.outlet.send(reply)
        if reply is None or request.method == "tools/list":
            self.needs_sdk.set()

    def _known(self, request: Request) -> bytes | None:
        """What is known without the SDK."""
        if self._is_over:
            return error_line(request.id, INTERNAL_ERROR, self._failure or ENDING)
        known = self._clerk.answer(request) if self._clerk is not None else None
        if known is None:
            return None
        if known.replay is not None:
            self._pass(known.replay)
        return result_line(request.id, known.result)

    def _admit(self, request: Request) -> bytes | None:
        """None: the SDK will answer; otherwise why not."""
        entry = self._gate.enter(request)
        if entry is Entry.GO:
            self._pass(request)
        if entry in (Entry.GO, Entry.WAIT):
            return None
        return error_line(request.id, INVALID_REQUEST if entry is Entry.TWICE else INTERNAL_ERROR, entry.value)

    def _told(self, answer: Answer) -> None:
        with self._turn:
            if answer.id is not None:
                self._gate.told(answer.id)
            self._pass(answer)

    def _notify(self, notification: Notification) -> None:
        with self._turn:
            if notification.method == "notifications/cancelled":
                cancelled = notification.params.get("requestId")
                if isinstance(cancelled, int | str) and self._gate.withdraw(cancelled):
                    return
            self._pass(notification)

    def _pass(self, message: Passed | str) -> None:
        self._turn.wait_for(lambda: len(self._passed) < KEPT_MAX or self._is_over)
        if not self._is_over:
            self._pass_now(message)

    # What the event loop calls.

    def attach(self, wake: Callable[[], None]) -> None:
        """Let `wake` be called, from any thread, when there is something to take or the end has come."""
        with self._turn:
            self._wake = wake
            self._nudge()

    def retire_clerk(self) -> None:
        """The SDK is there: from now on it answers everything."""
        with self._turn:
            self._clerk = None

    def take(self) -> Passed | str | None:
        """The next message for the SDK; a plain text is one that the client does not know of."""
        with self._turn:
            if not self._passed:
                return None
            self._turn.notify_all()
            return self._passed.popleft()

    def settled(self, request_id: RequestId) -> None:
        """A request was answered, or never will be."""
        with self._turn:
            for request in self._gate.leave(request_id):
                self._pass_now(request)
            if self.ending:
                self._nudge()

    def asked(self, request_id: RequestId) -> None:
        """The SDK asks the client something."""
        with self._turn:
            self._gate.asked(request_id)
            if self.ending:
                self._nudge()

    def fail(self, reason: str) -> None:
        """Answer all that waits, and all that still comes, with the reason why nothing can be done."""
        with self._turn:
            self._failure = reason
            self._passed.clear()
            waiting = [*self._gate.running, *(request.id for request in self._gate.dismiss())]
            self._turn.notify_all()
        for request_id in waiting:
            self.outlet.send(error_line(request_id, INTERNAL_ERROR, reason))

    def wait_for_end(self, wait_s: float) -> None:
        """Wait until the client is done, at most that long."""
        with self._turn:
            self._turn.wait_for(lambda: self.ending, wait_s)

    @property
    def is_idle(self) -> bool:
        """Whether all that could be answered is answered."""
        with self._turn:
            return self._gate.is_idle

    @property
    def _is_over(self) -> bool:
        return bool(self._failure) or self.ending > Ending.CLIENT_IS_DONE

    def _pass_now(self, message: Passed | str) -> None:
        self._passed.append(message)
        self._nudge()

    def _nudge(self) -> None:
        if self._wake is not None:
            self._wake()
