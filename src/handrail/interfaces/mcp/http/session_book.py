"""The sessions of the handshake era: which are open, which are idle, and which sleep.

Pure: the time is passed in. A session that sleeps is only its id and its handshake; waking it repeats the handshake.
Opening, waking and ending are done in sessions.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from handrail.interfaces.mcp.stdio.replies import RequestId

HELLO_BYTES_MAX: Final = 4_096
"""The largest `initialize` request that is kept, so that its session can sleep."""


@dataclass(slots=True)
class HttpSession:
    """One session: the client knows it by `id`, which stays the same when it has slept."""

    id: str
    sdk_id: str
    """How the SDK knows it; empty while it sleeps."""
    hello: bytes
    """The `initialize` request that opened it; empty if it can't be repeated."""
    used: float
    """When its last request ended."""
    requests: int = 0
    """How many requests are being handled, open streams included."""
    unanswered: frozenset[RequestId] = frozenset()
    """The ids of the calls that have no answer yet."""
    is_initialized: bool = False
    """Whether the client has sent `notifications/initialized`."""
    is_subscribed: bool = False
    """Whether it has subscriptions, which a repeated handshake would not bring back."""

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is being handled."""
        return self.requests == 0

    @property
    def is_awake(self) -> bool:
        """Whether the SDK has it."""
        return bool(self.sdk_id)

    @property
    def may_sleep(self) -> bool:
        """Whether it can be put to sleep now."""
        return self.is_idle and self.is_awake and bool(self.hello) and not self.is_subscribed


class SessionBook:
    """All sessions, in the order of their last use."""

    def __init__(self, *, sessions_max: int, awake_max: int, idle_s: float) -> None:
        self._sessions_max, self._awake_max, self._idle_s = sessions_max, awake_max, idle_s
        self._sessions: dict[str, HttpSession] = {}
        self.opening = 0
        """How many sessions are being opened: they count, so that two that open at once don't share the last place."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def is_full(self) -> bool:
        """Whether another session has no place."""
        return len(self._sessions) + self.opening >= self._sessions_max

    @property
    def awake(self) -> int:
        """How many sessions the SDK has."""
        return sum(session.is_awake for session in self._sessions.values())

    def all(self) -> list[HttpSession]:
        """Every session, the one used longest ago first."""
        return list(self._sessions.values())

    def find(self, session_id: str, now: float) -> HttpSession | None:
        """The session with this id; None if there is none, or its time is over."""
        session = self._sessions.get(session_id)
        return None if session is None or self._is_over(session, now) else session

    def add(self, session: HttpSession) -> None:
        """Add a session that was opened."""
        self._sessions[session.id] = session

    def forget(self, session: HttpSession) -> None:
        """Remove a session, if it is still here."""
        self._sessions.pop(session.id, None)

    def begin(self, session: HttpSession) -> None:
        """A request of this session is being handled."""
        session.requests += 1

    def end(self, session: HttpSession, now: float) -> None:
        """A request of this session has ended: the session is the one used last."""
        session.requests -= 1
        session.used = now
        if self._sessions.pop(session.id, None) is not None:  # else it was ended meanwhile
            self._sessions[session.id] = session

    def over(self, now: float) -> list[HttpSession]:
        """The sessions that were idle for too long."""
        return [session for session in self._sessions.values() if self._is_over(session, now)]

    def oldest_idle(self) -> HttpSession | None:
        """The session that gives way to a new one; None if all are busy."""
        return next((session for session in self._sessions.values() if session.is_idle), None)

    def to_sleep(self) -> Iterator[HttpSession]:
        """The sessions that have to sleep, the one used longest ago first."""
        surplus = self.awake - self._awake_max
        for session in list(self._sessions.values()):
            if surplus > 0 and session.may_sleep:
                surplus -= 1
                yield session

    def _is_over(self, session: HttpSession, now: float) -> bool:
        return session.is_idle and now - session.used > self._idle_s
