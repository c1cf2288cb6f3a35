"""The circuit breakers of a project's tool servers, stored in the journal so that they survive a restart.

Async. domain/scheduling/breaker.py decides when a breaker changes state; only changes are written, so a healthy
server costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from handrail.domain.definition.model import Category
from handrail.domain.errors import JournalConflict
from handrail.domain.journal.chain import Head
from handrail.domain.journal.projection import NO_CHANGE
from handrail.domain.journal.store_event import BreakerProbed, ServerEvent
from handrail.domain.project import server_stream
from handrail.domain.scheduling.breaker import (
    SERVERS_FAULT,
    Breaker,
    BreakerStatus,
    after_answer,
    apply_to_breaker,
    replay_breaker,
)
from handrail.engine.journal import Journal
from handrail.engine.record_writer import RecordWriter
from handrail.engine.stream_pages import entries_of

PROBE_MS: Final = 120_000
LOOK_AGAIN_MS: Final = 1_000


@dataclass
class Breakers:
    """Says whether a server may be called, and records how calls ended."""

    journal: Journal
    record_writer: RecordWriter
    actor: str
    project: str = ""
    _known: dict[str, Breaker] = field(default_factory=dict)
    _ends: dict[str, Head] = field(default_factory=dict)
    _probes: dict[str, int] = field(default_factory=dict)
    """When the current probe call times out; then another call probes, because the first may have been cancelled."""

    async def breaker(self, server: str) -> Breaker:
        """A server's breaker, as far as this process knows."""
        if server not in self._known:
            await self._read(server)
        return self._known[server]

    async def open_until(self, server: str, *, now: int) -> int | None:
        """Until when a server must not be called; None if it may be called now, perhaps as a probe."""
        if not server:
            return None
        breaker = await self.breaker(server)
        if breaker.status is BreakerStatus.CLOSED:
            return None
        if now < breaker.until:
            return breaker.until
        probe_ends = self._probes.get(server, now)
        if breaker.status is BreakerStatus.HALF_OPEN and now < probe_ends:
            return min(probe_ends, now + LOOK_AGAIN_MS)  # another call is the probe
        # Exactly one call probes. All others wait, or a server that is just starting up would get all of them at once.
        self._probes[server] = now + PROBE_MS
        await self._write(server, [BreakerProbed(server=server)])
        return None

    async def note(self, server: str, category: Category | None, message: str, *, now: int) -> None:
        """Record how a call ended; a category of None is a success."""
        if not server:
            return
        breaker = await self.breaker(server)
        events = after_answer(breaker, category, message, now=now)
        if events:
            await self._write(server, events)
        elif breaker.status is BreakerStatus.CLOSED:
            failures = breaker.failures + 1 if category in SERVERS_FAULT else 0
            # Kept in memory only: counting in the journal would cost an event for each call of a healthy server.
            self._known[server] = replace(breaker, failures=failures)

    async def _read(self, server: str) -> None:
        stream = server_stream(self.project, server)
        entries = await entries_of(self.journal, stream)
        last = entries[-1] if entries else None
        self._ends[server] = Head(stream, last.n, last.hash) if last else Head(stream)
        breaker = replay_breaker(entries, Breaker(server=server))
        if breaker.status is BreakerStatus.HALF_OPEN:  # the process that probed is gone
            breaker = replace(breaker, status=BreakerStatus.OPEN)
        self._known[server] = breaker

    async def _write(self, server: str, events: Sequence[ServerEvent]) -> None:
        records, _ = self.record_writer.write(self._ends[server], events, actor=self.actor)
        for event in events:
            self._known[server] = apply_to_breaker(self._known[server], event)
        # Before the append: a call that ends meanwhile must write behind this event, not in its place.
        self._ends[server] = Head(records[-1].stream, records[-1].n, records[-1].hash)
        try:
            await self.journal.append(records, NO_CHANGE)
        except JournalConflict:
            await self._read(server)  # another process recorded the same change first
