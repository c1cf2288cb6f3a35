"""Backups of a journal in PostgreSQL: loaded into a throw-away database to be verified, or into an empty one."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from handrail.assembly.backups.taking import DUMP
from handrail.assembly.stores import is_shared, postgres_dump, postgres_store, shared_parts, verifiers_of
from handrail.domain.backups.manifest import JournalCounts, SignedManifest
from handrail.domain.errors import IntegrityBroken, Unavailable
from handrail.domain.journal.store_event import StoreRestored
from handrail.engine.clock import system_clock, system_entropy
from handrail.engine.proving import store_facts
from handrail.engine.proving.audit import AuditResult, verify
from handrail.engine.proving.checkpointer import Checkpointer
from handrail.engine.record_writer import RecordWriter
from handrail.settings import Settings
from handrail.storage.keys import PublicKey

THROW_AWAY: Final = "handrail_verify_"


def at_store(settings: Settings, address: str, home: Path | None = None) -> Settings:
    """The same settings with another store, and perhaps another home."""
    choices = replace(settings.choices, store=address)
    return replace(settings, choices=choices, home=home or settings.home)


def require_server(settings: Settings) -> str:
    """The address of the PostgreSQL server that a backup of one is loaded into."""
    if not is_shared(settings):
        raise Unavailable(
            "the backup is of a journal in PostgreSQL, and no server is named",
            hint="set HANDRAIL_STORE to an empty database to restore, or to any database of a server to verify",
        )
    return settings.choices.store


@asynccontextmanager
async def throw_away_database(settings: Settings) -> AsyncIterator[str]:
    """The address of a new database on the server of HANDRAIL_STORE, which is dropped in the end."""
    # Late: the driver is an extra.
    from handrail.storage.postgres.throw_away import created, dropped

    address, name = require_server(settings), THROW_AWAY + os.urandom(6).hex()
    try:
        yield await created(address, name)
    finally:
        await dropped(address, name)


async def load(settings: Settings, home: Path) -> None:
    """Load the unpacked dump in a home into the empty database of the settings."""
    await postgres_dump(settings).load(home / DUMP)
    await asyncio.to_thread(shutil.rmtree, home / DUMP)


async def proved(settings: Settings, signed: SignedManifest) -> tuple[AuditResult, JournalCounts]:
    """Verify a loaded journal: every chain, its checkpoints, every run replayed; and count it."""
    async with postgres_store(settings, read_only=True) as store:
        verifier = await verifiers_of(PublicKey(bytes.fromhex(signed.key)), store)
        verdict = await verify(store, store.checkpoints(""), verifier, replay=True)
    return verdict, await postgres_dump(settings).counts()


async def mark_restored(settings: Settings, event: StoreRestored, *, has_keys: bool, actor: str) -> None:
    """Write that the journal was restored, and sign it if the keys are there."""
    record_writer = RecordWriter(system_clock, system_entropy)
    async with postgres_store(settings) as store:
        await store_facts.restored(store, record_writer, event, [], actor=actor)
        if not has_keys:
            return
        parts = await shared_parts(settings, store, record_writer, compare=False)
        checkpointer = Checkpointer(store, parts.checkpoints, parts.signer, record_writer.clock)
        if breaks := await checkpointer.compare():
            raise IntegrityBroken(f"the restored journal differs from its checkpoints: {breaks[0].reason}")
        await checkpointer.seal()
