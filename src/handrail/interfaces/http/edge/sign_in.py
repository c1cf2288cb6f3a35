"""Getting in: a one-time ticket in a link becomes a session; a key in a file lets scripts in.

A session has two halves. The cookie is sent by the browser, also to other ports of this machine: a server there could
take it. The page key is only in the page's own storage, which other ports can't read; so a write needs both. Both are
kept as hashes, in a file that only its owner can read, and so a session survives a restart of the server."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.foundation.plain_file import NotPlain, read_plain

TICKET_S: Final = 120
TICKETS_MAX: Final = 20
SESSION_S: Final = 30 * 24 * 3_600
SESSIONS_MAX: Final = 50
"""How many browsers are signed in at once; then the oldest session ends."""
SECRET_BYTES: Final = 32
SESSIONS_FILE: Final = "console-sessions.json"
FILE_BYTES_MAX: Final = 100_000

log = logging.getLogger(__name__)


class ConsoleSession(Struct, frozen=True, kw_only=True):
    """One browser that is signed in."""

    cookie: str
    """The hash of its cookie."""
    key: str
    """The hash of its page key."""
    expires: int
    """In seconds since 1970."""
    project: str = ""
    """The id of the project that it was opened for."""


class NewSession(Struct, frozen=True):
    """The two halves of a new session, in plain text, once; and the project that it is for."""

    cookie: str
    key: str
    project: str = ""


class _Ticket(Struct, frozen=True):
    until: float
    project: str


class SignIn:
    """The tickets and sessions of one server; the time is passed in."""

    def __init__(self, home: Path, *, now_s: Callable[[], float]) -> None:
        self._file, self._now_s = home / SESSIONS_FILE, now_s
        self._tickets: dict[str, _Ticket] = {}
        self._sessions: dict[str, ConsoleSession] | None = None

    def new_ticket(self, project: str = "") -> str:
        """A ticket that opens one session for a project, soon."""
        self._drop_old()
        while len(self._tickets) >= TICKETS_MAX:
            del self._tickets[next(iter(self._tickets))]
        ticket = secrets.token_urlsafe(SECRET_BYTES)
        self._tickets[_hash(ticket)] = _Ticket(self._now_s() + TICKET_S, project)
        return ticket

    def redeem(self, ticket: str, *, otherwise: str = "") -> NewSession | None:
        """A new session for a ticket, `otherwise` for this project if the ticket names none; None if the ticket was
        used, is too old or was never given."""
        self._drop_old()
        # Taken out before anything else: two requests with one ticket must not both get in.
        taken = self._tickets.pop(_hash(ticket), None)
        if taken is None:
            log.info("a sign-in was refused: its link is unknown, used or too old")
            return None
        cookie, key = secrets.token_urlsafe(SECRET_BYTES), secrets.token_urlsafe(SECRET_BYTES)
        new = NewSession(cookie, key, taken.project or otherwise)
        expires = int(self._now_s()) + SESSION_S
        session = ConsoleSession(cookie=_hash(new.cookie), key=_hash(new.key), expires=expires, project=new.project)
        sessions = self._read()
        sessions[session.cookie] = session
        while len(sessions) > SESSIONS_MAX:
            del sessions[next(iter(sessions))]
        self._write(sessions)
        return new

    def session(self, cookie: str) -> ConsoleSession | None:
        """The session of a cookie; None if there is none any more."""
        found = self._read().get(_hash(cookie)) if cookie else None
        return found if found is not None and found.expires > self._now_s() else None

    def is_open(self, session: ConsoleSession) -> bool:
        """Whether it was not ended, and its time is not over."""
        return session.cookie in self._read() and session.expires > self._now_s()

    def has_key(self, session: ConsoleSession, key: str) -> bool:
        """Whether this is the page key of the session."""
        return hmac.compare_digest(_hash(key), session.key)

    def end(self, session: ConsoleSession) -> None:
        """Sign a browser out."""
        sessions = self._read()
        sessions.pop(session.cookie, None)
        self._write(sessions)

    def _drop_old(self) -> None:
        now = self._now_s()
        self._tickets = {one: ticket for one, ticket in self._tickets.items() if ticket.until > now}

    def _read(self) -> dict[str, ConsoleSession]:
        if self._sessions is None:
            self._sessions = {one.cookie: one for one in _stored(self._file) if one.expires > self._now_s()}
        return self._sessions

    def _write(self, sessions: dict[str, ConsoleSession]) -> None:
        self._sessions = sessions
        make_private_folder(self._file.parent)
        write_whole(self._file, msgspec.json.encode(list(sessions.values())))


def _stored(file: Path) -> list[ConsoleSession]:
    try:
        return msgspec.json.decode(read_plain(file, bytes_max=FILE_BYTES_MAX), type=list[ConsoleSession])
    except FileNotFoundError:
        return []
    except (NotPlain, OSError, msgspec.MsgspecError) as error:
        log.warning("%s can't be read, so every browser has to sign in again: %s", file.name, error)
        return []


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
