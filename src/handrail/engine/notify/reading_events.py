"""Reads the journal on behalf of a channel: from where it stopped to the end, and what its rules tell of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from handrail.domain.errors import HandrailError
from handrail.domain.journal.chain import Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import RUN_PREFIX, Event
from handrail.domain.journal.mark import Mark
from handrail.domain.journal.projection import RunRow
from handrail.domain.notify.event_notices import event_notices
from handrail.domain.notify.notice import Notice
from handrail.domain.notify.rules import EVERY_KIND, OF_EVENTS, NotifyRule, NotifyWhen
from handrail.engine.journal import Archive, Journal, ProjectionReader, mark_after
from handrail.engine.notify.outbox import Outbox

BATCH: Final = 500
BATCHES_MAX: Final = 20
"""How much is read before something is sent again."""
NOTICES_MAX: Final = 1_000
"""How many notices are made before they are kept."""

KINDS_OF: Final = {
    NotifyWhen.RUN_FAILED: ("run_failed", "run_compensated"),
    NotifyWhen.COMPENSATION_FAILED: ("run_compensation_failed",),
    NotifyWhen.BREAKER_OPENED: ("breaker_opened",),
}


class NotifyStore(Journal, ProjectionReader, Archive, Protocol):
    """What is read, and where what is reported is kept."""

    def outbox(self) -> Outbox:
        """What waits for channels."""
        ...


@dataclass(frozen=True)
class ReadEvents:
    """What was read: up to where, and what is reported of it."""

    mark: Mark
    notices: list[Notice]


@dataclass(frozen=True)
class EventReading:
    """The rules of one channel that are about events."""

    store: NotifyStore
    rules: Sequence[NotifyRule]
    source: str

    async def after(self, mark: Mark) -> ReadEvents:
        """What happened behind a mark, as far as is read at once."""
        wanted = [rule for rule in self.rules if rule.when in OF_EVENTS]
        end = await self.store.end()
        if mark.covers(end):
            return ReadEvents(mark, [])
        # Without such a rule nothing is read at all; rules that come later start here.
        if not wanted:
            return ReadEvents(end, [])
        notices, batches = list[Notice](), 0
        async for batch in self.store.scan(after=mark, size=BATCH):
            for placed in batch:
                notices += await self._text_of(wanted, placed.record)
            mark, batches = mark_after(mark, batch), batches + 1
            # Whole batches only: a mark in the middle of one would be ahead of the notices that are kept.
            if batches >= BATCHES_MAX or len(notices) >= NOTICES_MAX:
                break
        return ReadEvents(mark, notices)

    async def _text_of(self, rules: Sequence[NotifyRule], record: Record) -> list[Notice]:
        rules = [rule for rule in rules if _may_report(rule, record.kind)]
        if not rules:
            return []
        return event_notices(rules, record, _event_in(record), await self._run(record.stream), self.source)

    async def _run(self, stream: str) -> RunRow | None:
        return await self.store.run(stream) if stream.startswith(RUN_PREFIX) else None


def _event_in(record: Record) -> Event | None:
    try:
        return entry_of(record).event
    except HandrailError:  # a damaged or erased event is what `journal verify` is for
        return None


def _may_report(rule: NotifyRule, kind: str) -> bool:
    if rule.when is NotifyWhen.EVENT:
        return EVERY_KIND in rule.kinds or kind in rule.kinds
    return kind in KINDS_OF[rule.when]
