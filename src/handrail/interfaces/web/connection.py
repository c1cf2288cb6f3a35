"""One client connection with limits: a client that is too slow is cut off, and too many connections are refused.

uvicorn has no such limits, so its h11 protocol is extended; h11's states say what the client still has to send.
Complete requests are answered in site.py."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from handrail.domain.errors import Invalid, Limited, Unavailable
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.responses import CLOSE, SAFE_HEADERS, JsonResponse, error_response

LINGER_S: Final = 1.0
"""How long a refused client may take to read the reason."""
SPARE: Final = 50
"""How many connections above the limit still get an error response; any more are closed without one."""
TOO_SLOW: Final = error_response(408, Limited("the request took too long to arrive", hint="send it faster"), CLOSE)
TOO_MANY: Final = error_response(503, Unavailable("too many connections are open"), CLOSE, (b"retry-after", b"5"))
MALFORMED: Final = error_response(400, Invalid("this is not a valid HTTP request", hint="fix the request"), CLOSE)

log = logging.getLogger(__name__)


class ExpectedInput(Enum):
    """What the client has to send next."""

    HEADERS = auto()
    BODY = auto()
    REST = auto()
    """The end of a body whose response is already sent."""
    NOTHING = auto()


def connection_class(limits: HttpLimits) -> type[asyncio.Protocol]:
    """The protocol that uvicorn creates for each connection."""
    return cast("type[asyncio.Protocol]", partial(HttpConnection, limits=limits))


class HttpConnection(H11Protocol):
    """A connection whose client must keep within the limits."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: HttpLimits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.limits = limits
        self.is_refused = False
        self.expected = ExpectedInput.NOTHING
        self.since = self.received = self.loop.time()
        self.timer: asyncio.TimerHandle | None = None
        self.write_timer: asyncio.TimerHandle | None = None

    # uvicorn narrows the type of asyncio's own method, and so must we.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer at once: a client may connect and never send anything."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse_connection()
        else:
            self._update_timer()

    def data_received(self, data: bytes) -> None:
        """Pass the data on, and see what is expected now."""
        if self.is_refused:
            return
        self.received = self.loop.time()
        super().data_received(data)
        if not self.is_refused:
            self._update_timer()

    def on_response_complete(self) -> None:
        """See what is expected after a response."""
        super().on_response_complete()
        self._update_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        _cancel(self.timer)
        _cancel(self.write_timer)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client has stopped reading its response: allow that only for a while."""
        super().pause_writing()
        self.write_timer = self.loop.call_later(self.limits.write_s, self._abort_unread)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        _cancel(self.write_timer)

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that h11 could not parse."""
        log.info("a request was refused: %s", msg)
        self._refuse(MALFORMED)

    def _what_is_expected(self) -> ExpectedInput:
        if self.transport.is_closing():
            return ExpectedInput.NOTHING
        if self.conn.their_state is h11.IDLE:
            # Between two requests uvicorn's own timer runs, until the first byte of the next one.
            return ExpectedInput.NOTHING if self.timeout_keep_alive_task else ExpectedInput.HEADERS
        if self.conn.their_state is h11.SEND_BODY:
            return ExpectedInput.REST if self.cycle.response_complete else ExpectedInput.BODY
        return ExpectedInput.NOTHING

    def _deadline(self) -> float:
        match self.expected:
            case ExpectedInput.HEADERS:  # one deadline for all headers: a byte now and then must not extend it
                return self.since + self.limits.header_s
            case ExpectedInput.BODY:
                silent_until = max(self.since, self.received) + self.limits.body_silence_s
                return min(silent_until, self.since + self.limits.body_s)
            case _:
                return self.since + self.limits.rest_s

    def _update_timer(self) -> None:
        expected = self._what_is_expected()
        if expected is self.expected:
            return
        self.expected, self.since = expected, self.loop.time()
        _cancel(self.timer)
        if expected is not ExpectedInput.NOTHING:
            self.timer = self.loop.call_at(self._deadline(), self._check_deadline)

    def _check_deadline(self) -> None:
        now = self.loop.time()
        if self.flow.read_paused:  # the client isn't slow: we have stopped reading
            self.timer = self.loop.call_at(now + self.limits.body_silence_s, self._check_deadline)
        elif now < self._deadline():  # it has sent something in the meantime
            self.timer = self.loop.call_at(self._deadline(), self._check_deadline)
        else:
            log.info("a client was cut off: it took too long to send its %s", self.expected.name.lower())
            self._cut_off()

    def _cut_off(self) -> None:
        is_silent = self.expected is ExpectedInput.HEADERS and not self.conn.trailing_data[0]
        if is_silent or self.expected is ExpectedInput.REST:  # no request, or one that has its response
            self.transport.close()
        else:
            self._refuse(TOO_SLOW)

    def _abort_unread(self) -> None:
        log.info("a client was cut off: it left its response unread for too long")
        self.transport.abort()

    def _refuse_connection(self) -> None:
        if len(self.connections) > self.limits.connections + SPARE:
            self.transport.abort()
        else:
            self._refuse(TOO_MANY)

    def _refuse(self, response: JsonResponse) -> None:
        """Send the reason and close later: closing with unread input would reset the connection and lose the reason."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.write(_encode(self.conn.send, response))
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # so that the application stops waiting for this client
            self.cycle.message_event.set()
        self.is_refused = True
        self.transport.write_eof()
        _cancel(self.timer)
        self.timer = self.loop.call_later(LINGER_S, self.transport.close)


def _encode(send: Callable[[h11.Event], bytes | None], response: JsonResponse) -> bytes:
    reason = HTTPStatus(response.status).phrase.encode()
    head = h11.Response(status_code=response.status, reason=reason, headers=[*response.headers, *SAFE_HEADERS])
    return b"".join(send(event) or b"" for event in (head, h11.Data(data=response.body), h11.EndOfMessage()))


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
