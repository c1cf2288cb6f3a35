"""The outbox of an SQLite store: it serves processes of one machine, so that its clock is everybody's."""

# ruff: noqa: S608 (queries are built from the constants below, never from values)

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from handrail.domain.notify.notice import Message
from handrail.engine.notify.outbox import DEAD_MAX, ChannelState, ChannelSwitch, KeptChannel
from handrail.storage.outbox.outbox_rows import kept, kept_channel, message_of, moved
from handrail.storage.sqlite.append import Appender
from handrail.storage.sqlite.reader import Readers
from handrail.storage.sqlite.rows import Parameters, numbered

_NOW: Final = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"

CLAIM: Final = f"""
    INSERT INTO outbox_channel (name, owner, until, state) VALUES (:p1, :p2, {_NOW} + :p3, :p4)
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
    WHERE owner IN ('', excluded.owner) OR until <= {_NOW} OR until > {_NOW} + :p3"""
"""Claim a channel that is free, or whose owner was silent; one that lasts too long is from before a clock was set."""

IS_HELD: Final = f"SELECT until - {_NOW} > :p3 / 2 FROM outbox_channel WHERE name = :p1 AND owner = :p2"
"""Whether this owner's claim will hold for a good while: then it need not be written."""

RELEASE: Final = "UPDATE outbox_channel SET owner = '', until = 0 WHERE owner = ?"
"""Let others serve the channels of an owner."""

CHANNELS: Final = """
    SELECT name, state, switch, owner,
        (SELECT count(*) FROM outbox_message m WHERE m.channel = c.name AND m.dead = 0),
        (SELECT count(*) FROM outbox_message m WHERE m.channel = c.name AND m.dead = 1)
    FROM outbox_channel c"""
"""All channels, with how much waits and is dead."""

STATE: Final = "UPDATE outbox_channel SET state = ? WHERE name = ? AND owner = ?"
"""Note how far a channel is, as its owner."""

INSERT: Final = """
    INSERT INTO outbox_message (channel, number, id, subject, due, attempts, tried, error, dead, notice)
    VALUES (?, ?, ?, ?, ?, 0, 0, '', 0, ?)"""
"""A new notice."""

UPDATE: Final = """
    UPDATE outbox_message SET due = ?, attempts = ?, tried = ?, error = ?, dead = ? WHERE channel = ? AND number = ?"""
"""What became of a try."""

DROP: Final = "DELETE FROM outbox_message WHERE channel = ? AND number = ?"
"""It has arrived."""

TRIM: Final = """
    DELETE FROM outbox_message WHERE channel = :p1 AND dead = 1 AND number NOT IN (
        SELECT number FROM outbox_message WHERE channel = :p1 AND dead = 1 ORDER BY number DESC LIMIT :p2)"""
"""Remove the oldest dead letters."""

_MESSAGE: Final = "SELECT number, due, attempts, tried, error, dead, notice FROM outbox_message m"

DUE: Final = f"""{_MESSAGE}
    WHERE channel = :p1 AND dead = 0 AND due <= :p2
        AND EXISTS (SELECT 1 FROM outbox_channel WHERE name = :p1 AND switch IS NULL)
        AND NOT EXISTS (SELECT 1 FROM outbox_message e
            WHERE e.channel = m.channel AND e.subject = m.subject AND e.dead = 0 AND e.number < m.number)
    ORDER BY number LIMIT :p3"""
"""Of each subject the first that waits, if it is due."""

MESSAGES: Final = f"{_MESSAGE} WHERE channel = ? AND dead = ? ORDER BY number LIMIT ?"
"""What waits, or is dead."""

_OF_IDS: Final = "channel = :p1 AND dead = 1 AND (:p2 = '[]' OR id IN (SELECT value FROM json_each(:p2)))"

REVIVE: Final = f"UPDATE outbox_message SET dead = 0, due = 0, attempts = 0, tried = 0 WHERE {_OF_IDS}"
"""Try dead letters again."""

DISCARD: Final = f"DELETE FROM outbox_message WHERE {_OF_IDS}"
"""Remove dead letters."""

SWITCH: Final = "UPDATE outbox_channel SET switch = ? WHERE name = ?"
"""Disable or enable a channel."""

STATE_OF: Final = "SELECT state FROM outbox_channel WHERE name = ?"
"""How far a channel is."""

SKIP: Final = "UPDATE outbox_channel SET owner = '', until = 0, state = ? WHERE name = ?"
"""Go on from another place; the process that serves the channel has to look again."""

FORGET: Final = "DELETE FROM outbox_message WHERE channel = ? AND dead = 0"
"""Drop what waits."""

Write = Callable[[Callable[[sqlite3.Connection, Appender], None]], Awaitable[None]]


class SqliteOutbox:
    """What waits for channels."""

    def __init__(self, readers: Readers, write: Write) -> None:
        self._readers = readers
        self._write = write

    async def claim(self, channel: str, owner: str, *, ttl_ms: int) -> KeptChannel | None:
        """Be the one that serves a channel for so long; None if another process is."""
        asked = (channel, owner, ttl_ms)
        named = numbered(*asked)
        held = await self._readers.ask(lambda connection: connection.execute(IS_HELD, named).fetchone())
        if not held or not held[0]:
            await self._changed(CLAIM, numbered(*asked, kept(ChannelState())))
        (found,) = await self._channels(" WHERE name = ?", channel)
        return found if found.owner == owner else None

    async def release(self, owner: str) -> None:
        """Let others serve all channels of this owner at once."""
        await self._changed(RELEASE, (owner,))

    async def channels(self) -> list[KeptChannel]:
        """All channels that were ever served, by name."""
        return await self._channels(" ORDER BY name")

    async def write(
        self, channel: str, owner: str, state: ChannelState, *, put: Sequence[Message] = (), drop: Collection[int] = ()
    ) -> bool:
        """Note how far a channel is, and what became of notices; False if the channel is another process's by now."""
        is_own = False

        def write(connection: sqlite3.Connection, _: Appender) -> None:
            nonlocal is_own
            is_own = connection.execute(STATE, (kept(state), channel, owner)).rowcount == 1
            if not is_own:
                return
            connection.executemany(INSERT, [_new(channel, one) for one in put if not one.attempts])
            connection.executemany(UPDATE, [_tried(channel, one) for one in put if one.attempts])
            connection.executemany(DROP, [(channel, number) for number in drop])
            if any(one.is_dead for one in put):
                connection.execute(TRIM, numbered(channel, DEAD_MAX))

        await self._write(write)
        return is_own

    async def due(self, channel: str, *, now: int, limit: int) -> list[Message]:
        """What may be sent now: of each subject the first that waits, if it is due; nothing if it is disabled."""
        return await self._messages(DUE, numbered(channel, now, limit))

    async def messages(self, channel: str, *, is_dead: bool, limit: int = 100) -> list[Message]:
        """What waits, or is dead, by number."""
        return await self._messages(MESSAGES, (channel, int(is_dead), limit))

    async def revive(self, channel: str, ids: Collection[str]) -> int:
        """Let dead letters be tried again; how many there were."""
        return await self._changed(REVIVE, numbered(channel, json.dumps(list(ids))))

    async def discard(self, channel: str, ids: Collection[str]) -> int:
        """Remove dead letters; how many there were."""
        return await self._changed(DISCARD, numbered(channel, json.dumps(list(ids))))

    async def switch(self, channel: str, switch: ChannelSwitch | None) -> bool:
        """Disable a channel, or enable it; whether there is such a channel."""
        return await self._changed(SWITCH, (kept(switch) if switch else None, channel)) == 1

    async def skip(self, channel: str, mark: str) -> None:
        """Drop what waits for a channel, and go on from this place of the journal."""

        def write(connection: sqlite3.Connection, _: Appender) -> None:
            for (state,) in connection.execute(STATE_OF, (channel,)).fetchall():
                connection.execute(SKIP, (moved(state, mark), channel))
            connection.execute(FORGET, (channel,))

        await self._write(write)

    async def _changed(self, query: str, values: Parameters) -> int:
        count = 0

        def write(connection: sqlite3.Connection, _: Appender) -> None:
            nonlocal count
            count = connection.execute(query, values).rowcount

        await self._write(write)
        return count

    async def _channels(self, where: str, *values: object) -> list[KeptChannel]:
        query = CHANNELS + where
        return await self._readers.ask(
            lambda connection: [kept_channel(*row) for row in connection.execute(query, values)]
        )

    async def _messages(self, query: str, values: Parameters) -> list[Message]:
        return await self._readers.ask(
            lambda connection: [message_of(*row) for row in connection.execute(query, values)]
        )


def _new(channel: str, one: Message) -> tuple[object, ...]:
    return channel, one.number, one.notice.id, one.notice.subject, one.due, kept(one.notice)


def _tried(channel: str, one: Message) -> tuple[object, ...]:
    return one.due, one.attempts, one.tried, one.error, int(one.is_dead), channel, one.number
