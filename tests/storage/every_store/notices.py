"""Notices in the outbox of a store, for tests of what becomes of them."""

from __future__ import annotations

from handrail.domain.notify.notice import Message, Notice
from handrail.engine.notify.outbox import ChannelState
from storage.conformance import Store

OWNER = "one"


def notice_about(run: str, n: int, *, number: int) -> Message:
    notice = Notice(id=f"ntc_{number}", when="event", at=5, subject=run, text="words", source="s", data={"n": n})
    return Message(number=number, notice=notice)


async def put_notices(store: Store, channel: str, *messages: Message) -> None:
    outbox = store.outbox()
    assert await outbox.claim(channel, OWNER, ttl_ms=60_000) is not None
    assert await outbox.write(channel, OWNER, ChannelState(number=len(messages)), put=messages)


async def notices(store: Store, channel: str, *, is_dead: bool = False) -> list[tuple[str, int]]:
    """What is kept of a channel: each by its run and the number of its event."""
    found = await store.outbox().messages(channel, is_dead=is_dead)
    return [(one.notice.subject, one.notice.data["n"]) for one in found]
