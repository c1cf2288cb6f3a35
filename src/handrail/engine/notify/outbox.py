"""The outbox: what waits for each channel, and how far the journal was read for it, as a protocol.

It is kept in the store, so that nothing is lost with a process: a notice is in it before the place behind its event is
noted, in one transaction. The stores are in storage/. What is wrong with a channel is known from here alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from handrail.domain.notify.notice import Message

DEAD_MAX: Final = 10_000
"""How many dead letters of a channel are kept; beyond that, the oldest are removed."""


class ChannelState(Struct, frozen=True, kw_only=True):
    """How far a channel is; only the process that has claimed it writes this."""

    mark: str = ""
    """Up to where the journal was read for it, as Mark.text; empty: it was never read."""
    number: int = 0
    """The number of its last notice."""
    reported: Mapping[str, int] = field(default_factory=dict)
    """What is the case and was reported, each since when: it is not reported again before it has ended."""
    sent: int = 0
    sent_at: int = 0
    failures: int = 0
    """How many tries in a row have failed, of whatever notice."""
    failing_since: int = 0
    error: str = ""
    """Why the last one failed."""
    not_before: int = 0
    """Until when the channel is left alone."""


class ChannelSwitch(Struct, frozen=True, kw_only=True):
    """Who has disabled a channel, and why."""

    by: str
    at: int
    reason: str


class KeptChannel(Struct, frozen=True, kw_only=True):
    """A channel as it is kept."""

    name: str
    state: ChannelState = ChannelState()
    disabled: ChannelSwitch | None = None
    owner: str = ""
    """The process that serves it, or did last."""
    waiting: int = 0
    dead: int = 0


class Outbox(Protocol):
    """What waits for channels."""

    async def claim(self, channel: str, owner: str, *, ttl_ms: int) -> KeptChannel | None:
        """Be the one that serves a channel for so long, or longer if it is again; None if another process is."""
        ...

    async def release(self, owner: str) -> None:
        """Let others serve all channels of this owner at once."""
        ...

    async def channels(self) -> list[KeptChannel]:
        """All channels that were ever served, by name."""
        ...

    async def write(
        self, channel: str, owner: str, state: ChannelState, *, put: Sequence[Message] = (), drop: Collection[int] = ()
    ) -> bool:
        """Note how far a channel is, and what became of notices, all or nothing; False if the channel is another
        process's by now. A notice without attempts is new; others are only changed, if they still exist."""
        ...

    async def due(self, channel: str, *, now: int, limit: int) -> list[Message]:
        """What may be sent now: of each subject the first that waits, if it is due; nothing if it is disabled."""
        ...

    async def messages(self, channel: str, *, is_dead: bool, limit: int = 100) -> list[Message]:
        """What waits, or is dead, by number."""
        ...

    async def revive(self, channel: str, ids: Collection[str]) -> int:
        """Let dead letters be tried again: those with these ids, or all if none are given; how many there were."""
        ...

    async def discard(self, channel: str, ids: Collection[str]) -> int:
        """Remove dead letters: those with these ids, or all if none are given; how many there were."""
        ...

    async def switch(self, channel: str, switch: ChannelSwitch | None) -> bool:
        """Disable a channel, or enable it; whether there is such a channel."""
        ...

    async def skip(self, channel: str, mark: str) -> None:
        """Drop what waits for a channel, and go on from this place of the journal."""
        ...
