"""Sessions of the handshake era in front of the SDK: opened, put to sleep, woken, and ended when others need the place.

A session costs the SDK about 40 kB for as long as it is open, and most clients never say that they have left. So only
some sessions stay with the SDK; of the others we keep the handshake, and repeat it when the client comes back.
What is idle, and which one goes, is decided in session_book.py. Requests without a session pass through."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

import msgspec
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from handrail.domain.errors import Unavailable
from handrail.interfaces.mcp.http.session_book import HELLO_BYTES_MAX, HttpSession, SessionBook
from handrail.interfaces.mcp.stdio.envelope import Envelope, Notification, Request
from handrail.interfaces.mcp.stdio.replies import INVALID_REQUEST, error_line, key_of
from handrail.interfaces.mcp.stdio.request_gate import Admission
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.responses import (
    Application,
    Header,
    JsonResponse,
    Message,
    Receive,
    Scope,
    Send,
    error_response,
    send_response,
)

SESSION_ID: Final = b"mcp-session-id"
PROTOCOL_VERSION: Final = b"mcp-protocol-version"
RETRY_AFTER_S: Final = 10
"""When a client may try again that found every session busy."""
WAKE_S: Final = 10.0
PRESENT_S: Final = 300.0
"""For how long after its last request a client counts as connected."""
NAME_LENGTH_MAX: Final = 100
INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
OWN_HEADERS: Final[tuple[Header, ...]] = (
    (b"accept", b"application/json, text/event-stream"),
    (b"content-type", b"application/json"),
)
FULL: Final = error_response(
    503,
    Unavailable("too many sessions are open, and all of them are busy", hint="try again in a few seconds"),
    (b"retry-after", str(RETRY_AFTER_S).encode()),
)
GONE: Final = JsonResponse(404, error_line(None, INVALID_REQUEST, "this session has ended: initialize a new one"))

log = logging.getLogger(__name__)


class Sessions:
    """The sessions of one server."""

    def __init__(self, sdk: Application, path: str, limits: HttpLimits) -> None:
        self._sdk, self._path = sdk, path
        self.book = SessionBook(
            sessions_max=limits.sessions, awake_max=limits.sessions_awake, idle_s=limits.session_idle_s
        )
        self._changing = asyncio.Lock()
        """Held while a session is woken or ended, so that two requests don't wake one session twice."""

    def clients(self) -> list[tuple[str, float]]:
        """The clients that have a stream open or were just heard: their names, and how many seconds ago that was."""
        now = _now()
        heard = [(session.hello, 0.0 if session.requests else now - session.used) for session in self.book.all()]
        return [(_client_name(hello), ago) for hello, ago in heard if ago <= PRESENT_S]

    async def handle(self, scope: Scope, receive: Receive, send: Send, message: Envelope | None, body: bytes) -> None:
        """Let the SDK handle a request, in its session if it has one; `message` is what its body says."""
        version, session_id = _header(scope, PROTOCOL_VERSION), _header(scope, SESSION_ID)
        if version and version not in HANDSHAKE_PROTOCOL_VERSIONS:  # the modern era has no sessions
            await self._sdk(scope, receive, send)
        elif session_id:
            await self._in_session(session_id, scope, receive, send, message)
        elif isinstance(message, Request) and message.method == "initialize":
            await self._open(scope, receive, send, body)
        else:
            await self._sdk(scope, receive, send)  # it says what is missing

    async def _open(self, scope: Scope, receive: Receive, send: Send, body: bytes) -> None:
        if not await self._make_room():
            log.warning("a session was refused: %d are open, and all are busy", len(self.book))
            await send_response(FULL, send)
            return
        opened: list[HttpSession] = []

        async def note_id(message: Message) -> None:
            started = _opened_id(message)
            if started and not opened:
                hello = body if len(body) <= HELLO_BYTES_MAX else b""
                opened.append(HttpSession(started, started, hello, used=_now(), requests=1))
                self.book.add(opened[0])
            await send(message)

        try:
            await self._sdk(scope, receive, note_id)
        except BaseException:  # the SDK has discarded the session, so nothing must keep its place
            for session in opened:
                self.book.forget(session)
            raise
        finally:
            self.book.opening -= 1
            for session in opened:
                self.book.end(session, _now())
        await self._put_to_sleep()

    async def _in_session(
        self, session_id: str, scope: Scope, receive: Receive, send: Send, message: Envelope | None
    ) -> None:
        session = self.book.find(session_id, _now())
        if session is None:
            await send_response(GONE, send)
            return
        asked = frozenset({key_of(message.id)}) if isinstance(message, Request) else frozenset()
        if isinstance(message, Request) and asked & session.unanswered:  # the SDK would answer neither of them
            await send_response(_duplicate(message), send)
            return
        session.unanswered |= asked
        self.book.begin(session)  # from here on it is busy, and stays
        try:
            await self._pass_on(session, scope, receive, send, message)
        finally:
            session.unanswered -= asked
            self.book.end(session, _now())
        await self._put_to_sleep()

    async def _pass_on(
        self, session: HttpSession, scope: Scope, receive: Receive, send: Send, message: Envelope | None
    ) -> None:
        if not await self._wake(session):
            self.book.forget(session)
            await send_response(GONE, send)
            return
        _note(session, message)
        status = await _with_ids(self._sdk, session, scope, receive, send)
        if status == 404 or (scope["method"] == "DELETE" and status == 200):
            self.book.forget(session)

    async def _make_room(self) -> bool:
        """Take a place for a new session: one whose time is over, or that of the oldest idle session."""
        async with self._changing:
            for session in self.book.over(_now()):
                await self._end(session)
            while self.book.is_full:
                oldest = self.book.oldest_idle()
                if oldest is None:
                    return False
                log.info("the session that was idle for the longest gave way to a new one")
                await self._end(oldest)
            self.book.opening += 1
            return True

    async def _end(self, session: HttpSession) -> None:
        self.book.forget(session)  # before the SDK is asked: a request that comes meanwhile finds it ended
        if session.is_awake:
            await self._ask_sdk("DELETE", session.sdk_id)

    async def _put_to_sleep(self) -> None:
        for session in self.book.to_sleep():
            sdk_id, session.sdk_id = session.sdk_id, ""
            await self._ask_sdk("DELETE", sdk_id)

    async def _wake(self, session: HttpSession) -> bool:
        """Give a sleeping session to the SDK again; False if the SDK no longer accepts its handshake."""
        if session.is_awake:
            return True
        async with self._changing:
            if session.is_awake:  # another request of it was first
                return True
            sdk_id = await self._ask_sdk("POST", "", session.hello)
            if sdk_id and session.is_initialized:
                await self._ask_sdk("POST", sdk_id, INITIALIZED)
            session.sdk_id = sdk_id
            return session.is_awake

    async def _ask_sdk(self, method: str, sdk_id: str, body: bytes = b"") -> str:
        """Send the SDK a request of our own; the id of the session that it opened, if any."""
        opened = ""
        unread = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if not unread:
                await asyncio.Event().wait()  # we don't leave before the response
            return unread.pop()

        async def send(message: Message) -> None:
            nonlocal opened
            opened = opened or _opened_id(message)

        headers = [*OWN_HEADERS, *([(SESSION_ID, sdk_id.encode())] if sdk_id else [])]
        async with asyncio.timeout(WAKE_S):
            await self._sdk(_scope(method, self._path, headers), receive, send)
        return opened


def _client_name(hello: bytes) -> str:
    """What a client calls itself in its handshake."""
    try:
        name = msgspec.json.decode(hello)["params"]["clientInfo"]["name"]
    except (msgspec.MsgspecError, LookupError, TypeError):
        return "unnamed"
    return str(name)[:NAME_LENGTH_MAX]


def _duplicate(request: Request) -> JsonResponse:
    return JsonResponse(400, error_line(request.id, INVALID_REQUEST, Admission.DUPLICATE.value))


def _note(session: HttpSession, message: Envelope | None) -> None:
    """Remember what a repeated handshake would have to bring back."""
    if isinstance(message, Notification) and message.method == "notifications/initialized":
        session.is_initialized = True
    if isinstance(message, Request) and message.method == "resources/subscribe":
        session.is_subscribed = True


async def _with_ids(sdk: Application, session: HttpSession, scope: Scope, receive: Receive, send: Send) -> int:
    """Call the SDK with the session's id there, and answer with the client's id; returns the status."""
    statuses: list[int] = []

    async def send_with_id(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
            message = {**message, "headers": _renamed(message.get("headers", ()), session.id)}
        await send(message)

    await sdk({**scope, "headers": _renamed(scope["headers"], session.sdk_id)}, receive, send_with_id)
    return statuses[0] if statuses else 0


def _renamed(headers: Iterable[Header], session_id: str) -> list[Header]:
    return [(name, session_id.encode() if name.lower() == SESSION_ID else value) for name, value in headers]


def _opened_id(message: Message) -> str:
    if message["type"] != "http.response.start" or message["status"] >= 400:
        return ""
    return next((value.decode("latin-1") for name, value in message["headers"] if name.lower() == SESSION_ID), "")


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def _scope(method: str, path: str, headers: list[Header]) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "client": None,
        "server": None,
    }


def _now() -> float:
    return asyncio.get_running_loop().time()
