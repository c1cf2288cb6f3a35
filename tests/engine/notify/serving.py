"""A channel over a store in memory, with a receiver whose behaviour a test chooses, and the clock of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from handrail.domain.journal.mark import START
from handrail.domain.notify.conditions import NoticeCondition
from handrail.domain.notify.notice import Notice
from handrail.domain.notify.rules import NotifyRule, NotifyWhen
from handrail.engine.notify.channel_server import ChannelServer
from handrail.engine.notify.outbox import KeptChannel
from handrail.engine.notify.reading_events import EventReading
from handrail.engine.notify.sender import NotSent
from handrail.storage.memory import MemoryStore

DAY_S = 86_400
EVERYTHING = NotifyRule(when=NotifyWhen.EVENT, to=("ops",))

Behaviour = Callable[[Notice, float], NotSent | float | None]
"""What a receiver does with a notice at a time: fails, answers after so many seconds, or takes it at once."""


def now_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1_000)


@dataclass
class Receiver:
    """Takes notices, and remembers them in the order in which they arrived."""

    behaviour: Behaviour = lambda _notice, _now: None
    arrived: list[Notice] = field(default_factory=list)
    tries: list[tuple[float, str]] = field(default_factory=list)

    async def send(self, notice: Notice, *, now: int) -> None:
        self.tries.append((now / 1_000, notice.id))
        does = self.behaviour(notice, now / 1_000)
        if isinstance(does, NotSent):
            raise does
        if does is not None:
            await asyncio.sleep(does)
        self.arrived.append(notice)

    async def close(self) -> None: ...

    def of(self, subject: str) -> list[int]:
        """The numbers of the events of a run, in the order in which they arrived first."""
        return list(dict.fromkeys(one.data["n"] for one in self.arrived if one.subject == subject))


def server_of(
    store: MemoryStore,
    receiver: Receiver,
    *rules: NotifyRule,
    give_up_ms: int = 3 * DAY_S * 1_000,
    owner: str = "one",
    conditions: Callable[[], Sequence[NoticeCondition]] = lambda: (),
) -> ChannelServer:
    async def look() -> Sequence[NoticeCondition]:
        return conditions()

    events = EventReading(store, rules or (EVERYTHING,), "store-1")
    return ChannelServer("ops", owner, store.outbox(), events, look, receiver, now_ms, give_up_ms, START)


async def kept(store: MemoryStore) -> KeptChannel:
    (one,) = await store.outbox().channels()
    return one
