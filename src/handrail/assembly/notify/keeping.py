"""Notices while a server or worker is up: each channel of [notify] in HANDRAIL_HOME's config.toml has its own task.

They have their own connections to the store, so that nothing else waits for them. Any number of processes may serve the
same channels: one at a time does, by its claim (engine/notify/channel_server.py)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from handrail.assembly.notify.looking import Looking
from handrail.assembly.secrets import known_secrets_of, secrets_of
from handrail.assembly.stores import is_shared, plain_store
from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import HandrailError
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import STORE_STREAM
from handrail.domain.journal.store_event import StoreCreated
from handrail.domain.notify.rules import NotifySettings, notify_settings
from handrail.engine.clock import new_id, system_clock, system_entropy
from handrail.engine.notify.channel_server import ChannelServer
from handrail.engine.notify.reading_events import EventReading
from handrail.engine.notify.sender import Sender
from handrail.engine.proving.projection_repair import WholeStore
from handrail.settings import Settings
from handrail.tools.channels.channel_secrets import ChannelSecrets
from handrail.tools.channels.senders import sender_of

TABLE: Final = "notify"
OWNER: Final = "out-"
RETRY_S: Final = 1.0

log = logging.getLogger(__name__)


def settings_of_notices(settings: Settings) -> NotifySettings:
    """What config.toml in HANDRAIL_HOME says; Invalid says what is wrong with it."""
    return notify_settings(settings.home_tables.get(TABLE, {}))


@asynccontextmanager
async def keeping_notices(settings: Settings) -> AsyncIterator[None]:
    """Keep and send notices in the background, as the settings say, until the block ends."""
    rules = settings_of_notices(settings)
    if not rules.channels:
        yield
        return
    task = asyncio.ensure_future(_keep(settings, rules, started=system_clock()))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def senders_of(settings: Settings, rules: NotifySettings) -> dict[str, Sender]:
    """What takes notices to each channel."""
    secrets, known = secrets_of(settings), known_secrets_of(settings)
    return {
        name: sender_of(channel, ChannelSecrets(name, secrets, known), folder=settings.neutral)
        for name, channel in rules.channels.items()
    }


async def _keep(settings: Settings, rules: NotifySettings, *, started: int) -> None:
    while True:
        try:
            # The part that writes the first event makes the store, not this task.
            if is_shared(settings) or settings.journal.exists():
                await _serve(settings, rules, started)
        except (HandrailError, OSError) as error:
            log.warning("no notices are sent now: %s; what to do: %s", error, getattr(error, "hint", ""))
        except ExceptionGroup:  # a fault in one task ends the others: all start again
            log.exception("notices stopped, and start again")
        await asyncio.sleep(RETRY_S)


async def _serve(settings: Settings, rules: NotifySettings, started: int) -> None:
    senders, owner = senders_of(settings, rules), new_id(OWNER, system_entropy)
    async with plain_store(settings) as store:
        source = await source_of(store)
        if not source:  # the part that makes the store has not written its first event yet
            return
        # Since this process has started, not since the store could be opened: what happened in between counts.
        start = await store.mark_at(started)
        servers = [
            ChannelServer(
                name,
                owner,
                store.outbox(),
                EventReading(store, rules.rules_to(name), source),
                Looking(settings, store, rules.rules_to(name)).conditions,
                sender,
                system_clock,
                duration_ms(rules.give_up_after),
                start,
            )
            for name, sender in senders.items()
        ]
        try:
            async with asyncio.TaskGroup() as tasks:
                for server in servers:
                    tasks.create_task(server.serve())
        finally:
            with contextlib.suppress(HandrailError):
                await store.outbox().release(owner)
            for sender in senders.values():
                await sender.close()


async def source_of(store: WholeStore) -> str:
    """The id of the store, which all its notices name; empty if nothing was written to it yet."""
    first = await store.read(STORE_STREAM, limit=1)
    event = entry_of(first[0]).event if first else None
    return event.store if isinstance(event, StoreCreated) else ""
