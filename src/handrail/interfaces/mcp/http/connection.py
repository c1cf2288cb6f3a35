"""One connection of a client, watched: what takes too long is cut off, and too many are turned away.

uvicorn has no such limits, so its protocol of h11 is extended; h11's own states say what a client owes us. What is
answered to a whole request is the application's business (app.py)."""

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
from handrail.interfaces.mcp.http.answers import CLOSE, SAFE_HEADERS, Answer, refusal
from handrail.interfaces.mcp.http.limits import Limits

GOODBYE_S: Final = 1.0
"""How long a client that was sent away may take to read why."""
SPARE: Final = 50
"""How many connections more than may be are told so; beyond, nothing is said any more."""
TOO_SLOW: Final = refusal(408, Limited("the request took too long to come", hint="send it whole"), CLOSE)
TOO_MANY: Final = refusal(503, Unavailable("too many connections are open"), CLOSE)
MALFORMED: Final = refusal(400, Invalid("this is not HTTP as it should be", hint="mend the request"), CLOSE)

log = logging.getLogger(__name__)


class Owes(Enum):
    """What a client owes us now."""

    HEAD = auto()
    BODY = auto()
    REST = auto()
    """The end of a body whose answer is given already."""
    NOTHING = auto()


def connection_class(limits: Limits) -> type[asyncio.Protocol]:
    """What uvicorn makes of each connection."""
    return cast("type[asyncio.Protocol]", partial(Connection, limits=limits))


class Connection(H11Protocol):
    """A connection whose client has to keep to the limits."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: Limits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.limits = limits
        self.is_sent_away = False
        self.owes = Owes.NOTHING
        self.since = self.heard = self.loop.time()
        self.alarm: asyncio.TimerHandle | None = None
        self.write_alarm: asyncio.TimerHandle | None = None

    # uvicorn narrows the type of asyncio's own method, and so must we.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Watch from the first moment on: a client may never say anything."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._turn_away()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        """Pass on what came, and see what is owed now."""
        if self.is_sent_away:
            return
        self.heard = self.loop.time()
        super().data_received(data)
        if not self.is_sent_away:
            self._watch()

    def on_response_complete(self) -> None:
        """See what is owed after an answer."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch no longer."""
        _silence(self.alarm)
        _silence(self.write_alarm)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client leaves its answer unread: not for ever."""
        super().pause_writing()
        self.write_alarm = self.loop.call_later(self.limits.write_s, self._give_up)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        _silence(self.write_alarm)

    def send_400_response(self, msg: str) -> None:
        """Refuse what h11 could not read."""
        log.info("a request was refused: %s", msg)
        self._send_away(MALFORMED)

    def _owed(self) -> Owes:
        if self.transport.is_closing():
            return Owes.NOTHING
        if self.conn.their_state is h11.IDLE:
            # Between two requests uvicorn's own alarm is set, until the first byte of the next.
            return Owes.NOTHING if self.timeout_keep_alive_task else Owes.HEAD
        if self.conn.their_state is h11.SEND_BODY:
            return Owes.REST if self.cycle.response_complete else Owes.BODY
        return Owes.NOTHING

    def _due(self) -> float:
        match self.owes:
            case Owes.HEAD:
                return self.since + self.limits.header_s
            case Owes.BODY:
                silent_until = max(self.since, self.heard) + self.limits.body_silence_s
                return min(silent_until, self.since + self.limits.body_s)
            case _:
                return self.since + self.limits.rest_s

    def _watch(self) -> None:
        owed = self._owed()
        if owed is self.owes:
            return
        self.owes, self.since = owed, self.loop.time()
        _silence(self.alarm)
        if owed is not Owes.NOTHING:
            self.alarm = self.loop.call_at(self._due(), self._look)

    def _look(self) -> None:
        now = self.loop.time()
        if self.flow.read_paused:  # it is we who do not read
            self.alarm = self.loop.call_at(now + self.limits.body_silence_s, self._look)
        elif now < self._due():  # it has sent something in the meantime
            self.alarm = self.loop.call_at(self._due(), self._look)
        else:
            log.info("a client was cut off: it owes its %s for too long", self.owes.name.lower())
            self._cut_off()

    def _cut_off(self) -> None:
        is_silent = self.owes is Owes.HEAD and not self.conn.trailing_data[0]
        if is_silent or self.owes is Owes.REST:
            self.transport.close()
        else:
            self._send_away(TOO_SLOW)

    def _give_up(self) -> None:
        log.info("a client was cut off: it left its answer unread for too long")
        self.transport.abort()

    def _turn_away(self) -> None:
        if len(self.connections) > self.limits.connections + SPARE:
            self.transport.abort()
        else:
            self._send_away(TOO_MANY)

    def _send_away(self, answer: Answer) -> None:
        """Say why, and close a little later: closed with bytes unread, the client might not see the answer."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.write(_wire(self.conn.send, answer))
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the application has nobody to answer to
            self.cycle.message_event.set()
        self.is_sent_away = True
        self.transport.write_eof()
        _silence(self.alarm)
        self.alarm = self.loop.call_later(GOODBYE_S, self.transport.close)


def _wire(send: Callable[[h11.Event], bytes | None], answer: Answer) -> bytes:
    reason = HTTPStatus(answer.status).phrase.encode()
    head = h11.Response(status_code=answer.status, reason=reason, headers=[*answer.headers, *SAFE_HEADERS])
    return b"".join(send(event) or b"" for event in (head, h11.Data(data=answer.body), h11.EndOfMessage()))


def _silence(alarm: asyncio.TimerHandle | None) -> None:
    if alarm is not None:
        alarm.cancel()
