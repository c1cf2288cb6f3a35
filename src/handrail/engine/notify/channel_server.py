"""Serves one channel: reads the journal for it, keeps what is reported, and sends what waits until it arrives.

Async; one process at a time serves a channel, by a claim in the outbox. Nothing waits for it: a receiver that is dead
or slow keeps only its own channel waiting. A process that stalls past its claim may send a notice again, never out
of order: receivers know a notice by its id."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec.structs import replace

from handrail.domain.errors import HandrailError
from handrail.domain.journal.mark import Mark, mark_from
from handrail.domain.notify.conditions import NoticeCondition
from handrail.domain.notify.notice import Message, Notice, line
from handrail.domain.notify.retrying import CHANNEL_MS_MAX, DeliveryFailure, after_failure, backoff_ms
from handrail.engine.notify.outbox import ChannelState, KeptChannel, Outbox
from handrail.engine.notify.reading_events import EventReading
from handrail.engine.notify.sender import NotSent, Sender
from handrail.engine.passed_in import Clock

LOOK_S: Final = 1.0
CONDITIONS_S: Final = 30.0
"""How often is looked at what is no event."""
SEND_S_MAX: Final = 40.0
"""How long a sender may take, whatever it says of itself."""
CLAIM_MS: Final = 20_000
"""How long a claim holds, unless it is renewed."""
RENEW_S: Final = 5.0
"""How often it is renewed while something is sent."""
AT_ONCE: Final = 8
"""How many notices are on their way at once, each about something else."""
WAITING_MAX: Final = 10_000
"""With so many waiting, the journal is read no further: what happened stays in it, and is reported later."""
NOTE_EVERY_MS: Final = 10_000
"""How often it is noted how far the journal was read, if nothing was reported of it."""

Conditions: TypeAlias = Callable[[], Awaitable[Sequence[NoticeCondition]]]

log = logging.getLogger(__name__)


@dataclass
class ChannelServer:
    """One channel, as this process serves it."""

    name: str
    owner: str
    outbox: Outbox
    events: EventReading
    conditions: Conditions
    """What is the case now, by the rules of this channel."""
    sender: Sender
    clock: Clock
    give_up_ms: int
    started: Mark
    """From where a channel that is new is notified."""
    _seen: Mark | None = None
    """Up to where this process has read the journal; what is noted may be older."""
    _noted: int = 0
    _looked: int | None = None
    _alarmed: bool = field(default=False)

    async def serve(self) -> None:
        """Serve the channel until cancelled."""
        while True:
            try:
                is_busy = await self.round()
                self._alarmed = False
            except HandrailError as error:
                is_busy = False
                if not self._alarmed:
                    log.warning("notices to %s wait for the store: %s (%s)", self.name, error, error.hint)
                self._alarmed = True
            # Not behind a wake: the journal is written by other processes, too, and a second is soon enough.
            await asyncio.sleep(0 if is_busy else LOOK_S)

    async def round(self) -> bool:
        """Read on, and send what is due; whether there may be more to do at once."""
        kept = await self.outbox.claim(self.name, self.owner, ttl_ms=CLAIM_MS)
        if kept is None or kept.disabled is not None:
            # Another process may have read on since: what is noted counts when this one serves it again.
            self._seen = self._looked = None
            return False
        state = await self._read(kept)
        return state is not None and await self._send(state)

    async def _read(self, kept: KeptChannel) -> ChannelState | None:
        """Keep what is reported of what happened; None if another process serves the channel by now."""
        state, now = kept.state, self.clock()
        start = mark_from(state.mark, f"where {self.name} is") if state.mark else self.started
        seen = self._seen if self._seen is not None and self._seen.covers(start) else start
        mark, reported, notices = seen, state.reported, list[Notice]()
        if kept.waiting < WAITING_MAX:
            read = await self.events.after(seen)
            mark, notices = read.mark, read.notices
            reported, new = await self._conditions(state, now)
            notices += new
        # An idle channel writes nothing, a busy journal without notices is noted now and then.
        is_time = mark != start and now - self._noted >= NOTE_EVERY_MS
        if notices or reported != state.reported or is_time or not state.mark:
            put = [Message(number=state.number + i, notice=one) for i, one in enumerate(notices, 1)]
            state = replace(state, mark=mark.text, number=state.number + len(put), reported=reported)
            if not await self.outbox.write(self.name, self.owner, state, put=put):
                return None
            self._noted = now
        self._seen = mark
        return state

    async def _conditions(self, state: ChannelState, now: int) -> tuple[dict[str, int], list[Notice]]:
        """What is the case and was reported, and what has to be reported now."""
        if self._looked is not None and 0 <= now - self._looked < CONDITIONS_S * 1_000:
            return dict(state.reported), []
        self._looked = now
        present = await self.conditions()
        reported = {one.key: state.reported.get(one.key, now) for one in present}
        return reported, [one.notice(now, self.events.source) for one in present if one.key not in state.reported]

    async def _send(self, state: ChannelState) -> bool:
        now = self.clock()
        if now < state.not_before:
            return False
        # After a failure one is tried alone: a receiver that has just come back is not met by all at once.
        waiting = await self.outbox.due(self.name, now=now, limit=1 if state.failures else AT_ONCE)
        if not waiting:
            return False
        ended = await self._claimed(asyncio.gather(*(self._try(one) for one in waiting)))
        for message, failed in zip(waiting, ended, strict=True):
            state = self._after(state, failed)
            put = [after_failure(message, failed, now=self.clock(), give_up_ms=self.give_up_ms)] if failed else []
            self._log(message, put)
            drop = [] if failed else [message.number]
            # One by one: a crash in between repeats what was not noted yet, and nothing else.
            if not await self.outbox.write(self.name, self.owner, state, put=put, drop=drop):
                return False
        return True

    async def _claimed(self, sending: Awaitable[list[DeliveryFailure | None]]) -> list[DeliveryFailure | None]:
        """Keep the claim while something is sent."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(RENEW_S)
                with contextlib.suppress(HandrailError):  # said when the outcome can't be noted
                    await self.outbox.claim(self.name, self.owner, ttl_ms=CLAIM_MS)

        renewing = asyncio.ensure_future(renew())
        try:
            return await sending
        finally:
            renewing.cancel()

    async def _try(self, message: Message) -> DeliveryFailure | None:
        try:
            async with asyncio.timeout(SEND_S_MAX):
                await self.sender.send(message.notice, now=self.clock())
        except NotSent as error:
            return error.failed
        except TimeoutError:
            return DeliveryFailure(f"not sent within {SEND_S_MAX:g} s")
        except HandrailError as error:  # a secret that is missing: somebody may set it, so it is tried again
            return DeliveryFailure(f"{error}; {error.hint}")
        return None

    def _after(self, state: ChannelState, failed: DeliveryFailure | None) -> ChannelState:
        now = self.clock()
        if failed is None:
            return replace(state, sent=state.sent + 1, sent_at=now, failures=0, failing_since=0, error="", not_before=0)
        failures = state.failures + 1
        wait_ms = max(backoff_ms(failures, CHANNEL_MS_MAX), min(failed.retry_after_ms, CHANNEL_MS_MAX))
        return replace(
            state,
            failures=failures,
            failing_since=state.failing_since or now,
            error=line(failed.reason),
            not_before=now + wait_ms,
        )

    def _log(self, message: Message, put: Sequence[Message]) -> None:
        if not put:
            log.info("sent %s to %s: %s", message.notice.id, self.name, message.notice.when)
        elif put[0].is_dead:
            log.warning("gave up sending %s to %s: %s", message.notice.id, self.name, put[0].error)
        else:
            log.info("%s did not arrive at %s, tried again later: %s", message.notice.id, self.name, put[0].error)
