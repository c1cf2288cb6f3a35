"""The outbox of a PostgreSQL store. Claims go by the clock of the database: clocks of machines differ.

It has connections of its own: what is appended never keeps it waiting, nor the other way round."""

# ruff: noqa: S608 (queries are built from the constants below, never from values)

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from handrail.domain.notify.notice import Message
from handrail.engine.notify.outbox import DEAD_MAX, ChannelState, ChannelSwitch, KeptChannel
from handrail.storage.outbox.outbox_rows import kept, kept_channel, message_of, moved
from handrail.storage.postgres.connections import Connections
from handrail.storage.postgres.texts import read, stored

IS_HELD: Final = """
    select until - clock_timestamp() > $3::bigint / 2 * interval '1 millisecond'
    from handrail.outbox_channel where name = $1 and owner = $2"""
"""Whether this owner's claim will hold for a good while: then it need not be written."""

CLAIM: Final = """
    insert into handrail.outbox_channel as c (name, owner, until, state)
        values ($1, $2, clock_timestamp() + $3::bigint * interval '1 millisecond', $4)
    on conflict (name) do update set owner = excluded.owner, until = excluded.until
    where c.owner in ('', excluded.owner) or c.until <= clock_timestamp()"""
"""Claim a channel that is free, or whose owner was silent."""

RELEASE: Final = "update handrail.outbox_channel set owner = '', until = '-infinity' where owner = $1"
"""Let others serve the channels of an owner."""

CHANNELS: Final = """
    select name, state, switch, owner,
        (select count(*) from handrail.outbox_message m where m.channel = c.name and not m.dead),
        (select count(*) from handrail.outbox_message m where m.channel = c.name and m.dead)
    from handrail.outbox_channel c"""
"""All channels, with how much waits and is dead."""

WRITE: Final = """
    with own as (
        update handrail.outbox_channel set state = $3 where name = $1 and owner = $2 returning name
    ), new as (
        insert into handrail.outbox_message (channel, number, id, subject, due, attempts, tried, error, dead, notice)
        select own.name, n.number, n.id, n.subject, n.due, 0, 0, '', false, convert_to(n.notice, 'UTF8')
        from own, jsonb_to_recordset($4::jsonb) as n (number bigint, id text, subject text, due bigint, notice text)
        on conflict (channel, number) do nothing
    ), tried as (
        update handrail.outbox_message m
        set due = t.due, attempts = t.attempts, tried = t.tried, error = t.error, dead = t.dead
        from own, jsonb_to_recordset($5::jsonb)
            as t (number bigint, due bigint, attempts integer, tried bigint, error text, dead boolean)
        where m.channel = own.name and m.number = t.number
    ), dropped as (
        delete from handrail.outbox_message m using own where m.channel = own.name and m.number = any($6::bigint[])
    )
    select name from own"""
"""Note how far a channel is, and what became of notices; nothing at all unless this owner has it."""

TRIM: Final = """
    delete from handrail.outbox_message where channel = $1 and dead and number not in (
        select number from handrail.outbox_message where channel = $1 and dead order by number desc limit $2)"""
"""Remove the oldest dead letters."""

_MESSAGE: Final = "select number, due, attempts, tried, error, dead, notice from handrail.outbox_message m"

DUE: Final = f"""{_MESSAGE}
    where channel = $1 and not dead and due <= $2
        and exists (select 1 from handrail.outbox_channel where name = $1 and switch is null)
        and not exists (select 1 from handrail.outbox_message e
            where e.channel = m.channel and e.subject = m.subject and not e.dead and e.number < m.number)
    order by number limit $3"""
"""Of each subject the first that waits, if it is due."""

MESSAGES: Final = f"{_MESSAGE} where channel = $1 and dead = $2 order by number limit $3"
"""What waits, or is dead."""

_OF_IDS: Final = "channel = $1 and dead and (cardinality($2::text[]) = 0 or id = any($2::text[])) returning number"

REVIVE: Final = f"update handrail.outbox_message set dead = false, due = 0, attempts = 0, tried = 0 where {_OF_IDS}"
"""Try dead letters again."""

DISCARD: Final = f"delete from handrail.outbox_message where {_OF_IDS}"
"""Remove dead letters."""

SWITCH: Final = "update handrail.outbox_channel set switch = $1 where name = $2 returning name"
"""Disable or enable a channel."""

STATE_OF: Final = "select state from handrail.outbox_channel where name = $1"
"""How far a channel is."""

SKIP: Final = """
    with gone as (delete from handrail.outbox_message where channel = $1 and not dead)
    update handrail.outbox_channel set owner = '', until = '-infinity', state = $2 where name = $1"""
"""Drop what waits, and go on from another place; the process that serves the channel has to look again."""


class PostgresOutbox:
    """What waits for channels."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def claim(self, channel: str, owner: str, *, ttl_ms: int) -> KeptChannel | None:
        """Be the one that serves a channel for so long; None if another process is."""
        held = await self._connections.ask(IS_HELD, stored(channel), stored(owner), ttl_ms)
        if not held or not held[0][0]:
            await self._connections.ask(CLAIM, stored(channel), stored(owner), ttl_ms, kept(ChannelState()))
        (found,) = await self._channels(" where name = $1", stored(channel))
        return found if found.owner == owner else None

    async def release(self, owner: str) -> None:
        """Let others serve all channels of this owner at once."""
        await self._connections.ask(RELEASE, stored(owner))

    async def channels(self) -> list[KeptChannel]:
        """All channels that were ever served, by name."""
        return await self._channels(" order by name")

    async def write(
        self, channel: str, owner: str, state: ChannelState, *, put: Sequence[Message] = (), drop: Collection[int] = ()
    ) -> bool:
        """Note how far a channel is, and what became of notices; False if the channel is another process's by now."""
        new = _json([_new(one) for one in put if not one.attempts])
        tried = _json([_tried(one) for one in put if one.attempts])
        # One statement, so one transaction; asked again after a lost connection it changes nothing more.
        rows = await self._connections.ask(WRITE, stored(channel), stored(owner), kept(state), new, tried, sorted(drop))
        if rows and any(one.is_dead for one in put):
            await self._connections.ask(TRIM, stored(channel), DEAD_MAX)
        return bool(rows)

    async def due(self, channel: str, *, now: int, limit: int) -> list[Message]:
        """What may be sent now: of each subject the first that waits, if it is due; nothing if it is disabled."""
        return await self._messages(DUE, stored(channel), now, limit)

    async def messages(self, channel: str, *, is_dead: bool, limit: int = 100) -> list[Message]:
        """What waits, or is dead, by number."""
        return await self._messages(MESSAGES, stored(channel), is_dead, limit)

    async def revive(self, channel: str, ids: Collection[str]) -> int:
        """Let dead letters be tried again; how many there were."""
        return len(await self._connections.ask(REVIVE, stored(channel), [*map(stored, ids)]))

    async def discard(self, channel: str, ids: Collection[str]) -> int:
        """Remove dead letters; how many there were."""
        return len(await self._connections.ask(DISCARD, stored(channel), [*map(stored, ids)]))

    async def switch(self, channel: str, switch: ChannelSwitch | None) -> bool:
        """Disable a channel, or enable it; whether there is such a channel."""
        return bool(await self._connections.ask(SWITCH, kept(switch) if switch else None, stored(channel)))

    async def skip(self, channel: str, mark: str) -> None:
        """Drop what waits for a channel, and go on from this place of the journal."""
        for (state,) in await self._connections.ask(STATE_OF, stored(channel)):
            await self._connections.ask(SKIP, stored(channel), moved(state, mark))

    async def _channels(self, where: str, *values: Any) -> list[KeptChannel]:
        return [
            kept_channel(read(name), state, switch, read(owner), waiting, dead)
            for name, state, switch, owner, waiting, dead in await self._connections.ask(CHANNELS + where, *values)
        ]

    async def _messages(self, query: str, *values: Any) -> list[Message]:
        return [_message(row) for row in await self._connections.ask(query, *values)]


def _json(values: Sequence[Any]) -> str:
    return msgspec.json.encode(values).decode()


def _new(one: Message) -> dict[str, Any]:
    return {
        "number": one.number,
        "id": stored(one.notice.id),
        "subject": stored(one.notice.subject),
        "due": one.due,
        "notice": kept(one.notice).decode(),
    }


def _tried(one: Message) -> dict[str, Any]:
    return {
        "number": one.number,
        "due": one.due,
        "attempts": one.attempts,
        "tried": one.tried,
        "error": stored(one.error),
        "dead": one.is_dead,
    }


def _message(row: Any) -> Message:
    number, due, attempts, tried, error, dead, notice = row
    return message_of(number, due, attempts, tried, read(error), dead, notice)
