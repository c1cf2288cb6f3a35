"""The outbox of a store in memory: for tests, and for a store that does not exist yet. There is no clock: a claim holds
until it is released."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from handrail.domain.notify.notice import Message
from handrail.engine.notify.outbox import DEAD_MAX, ChannelState, ChannelSwitch, KeptChannel


class MemoryOutbox:
    """What waits for channels."""

    def __init__(self) -> None:
        self._channels: dict[str, KeptChannel] = {}
        self._messages: dict[str, dict[int, Message]] = {}

    async def claim(self, channel: str, owner: str, *, ttl_ms: int) -> KeptChannel | None:
        """Be the one that serves a channel; None if another process is."""
        known = self._channels.get(channel, KeptChannel(name=channel))
        if known.owner not in {"", owner}:
            return None
        self._channels[channel] = replace(known, owner=owner)
        return self._counted(channel)

    async def release(self, owner: str) -> None:
        """Let others serve all channels of this owner at once."""
        for name, known in self._channels.items():
            if known.owner == owner:
                self._channels[name] = replace(known, owner="")

    async def channels(self) -> list[KeptChannel]:
        """All channels that were ever served, by name."""
        return [self._counted(name) for name in sorted(self._channels)]

    async def write(
        self, channel: str, owner: str, state: ChannelState, *, put: Sequence[Message] = (), drop: Collection[int] = ()
    ) -> bool:
        """Note how far a channel is, and what became of notices; False if the channel is another process's by now."""
        known = self._channels.get(channel)
        if known is None or known.owner != owner:
            return False
        self._channels[channel] = replace(known, state=state)
        held = self._messages.setdefault(channel, {})
        for one in put:
            # One that was tried and is gone was skipped or discarded meanwhile.
            if not one.attempts or one.number in held:
                held[one.number] = one
        for number in drop:
            held.pop(number, None)
        dead = [number for number, one in sorted(held.items()) if one.is_dead]
        for number in dead[: max(0, len(dead) - DEAD_MAX)]:
            del held[number]
        return True

    async def due(self, channel: str, *, now: int, limit: int) -> list[Message]:
        """What may be sent now: of each subject the first that waits, if it is due; nothing if it is disabled."""
        known = self._channels.get(channel)
        if known is None or known.disabled is not None:
            return []
        first: dict[str, Message] = {}
        for one in self._held(channel, is_dead=False):
            first.setdefault(one.notice.subject, one)
        return [one for one in first.values() if one.due <= now][:limit]

    async def messages(self, channel: str, *, is_dead: bool, limit: int = 100) -> list[Message]:
        """What waits, or is dead, by number."""
        return self._held(channel, is_dead=is_dead)[:limit]

    async def revive(self, channel: str, ids: Collection[str]) -> int:
        """Let dead letters be tried again; how many there were."""
        found = self._dead(channel, ids)
        for one in found:
            self._messages[channel][one.number] = replace(one, is_dead=False, due=0, attempts=0, tried=0)
        return len(found)

    async def discard(self, channel: str, ids: Collection[str]) -> int:
        """Remove dead letters; how many there were."""
        found = self._dead(channel, ids)
        for one in found:
            del self._messages[channel][one.number]
        return len(found)

    async def switch(self, channel: str, switch: ChannelSwitch | None) -> bool:
        """Disable a channel, or enable it; whether there is such a channel."""
        if channel in self._channels:
            self._channels[channel] = replace(self._channels[channel], disabled=switch)
        return channel in self._channels

    async def skip(self, channel: str, mark: str) -> None:
        """Drop what waits for a channel, and go on from this place of the journal."""
        known = self._channels.get(channel)
        if known is None:
            return
        self._channels[channel] = replace(known, owner="", state=replace(known.state, mark=mark))
        for one in self._held(channel, is_dead=False):
            del self._messages[channel][one.number]

    def forget(self, subject: str, n: int | None = None) -> None:
        """Remove the notices that tell of an event, or of anything in its stream."""
        for held in self._messages.values():
            about = [(number, one.notice) for number, one in held.items() if one.notice.subject == subject]
            for number, notice in about:
                if n is None or notice.data.get("n") == n:
                    del held[number]

    def _counted(self, name: str) -> KeptChannel:
        held = self._messages.get(name, {}).values()
        dead = sum(one.is_dead for one in held)
        return replace(self._channels[name], waiting=len(held) - dead, dead=dead)

    def _held(self, channel: str, *, is_dead: bool) -> list[Message]:
        return [one for _, one in sorted(self._messages.get(channel, {}).items()) if one.is_dead is is_dead]

    def _dead(self, channel: str, ids: Collection[str]) -> list[Message]:
        return [one for one in self._held(channel, is_dead=True) if not ids or one.notice.id in ids]
