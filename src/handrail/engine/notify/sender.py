"""Senders: what engine/notify/ needs of a channel, as a protocol. They are made in tools/channels/."""

from __future__ import annotations

from typing import Protocol

from handrail.domain.notify.notice import Notice
from handrail.domain.notify.retrying import DeliveryFailure


class NotSent(Exception):
    """A notice did not arrive, as far as can be known here."""

    def __init__(self, reason: str, *, retry_after_ms: int = 0, is_final: bool = False) -> None:
        super().__init__(reason)
        self.failed = DeliveryFailure(reason, retry_after_ms, is_final)


class Sender(Protocol):
    """Takes notices to one place."""

    async def send(self, notice: Notice, *, now: int) -> None:
        """Return once the receiver has it; NotSent if that is not known. Within a bounded time."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...
