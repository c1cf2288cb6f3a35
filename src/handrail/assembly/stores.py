"""Stores: the one that the settings name, with the log of its checkpoints and the key that signs them.

Part of the only place that knows which parts the program is made of; nothing is decided here."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import IntegrityBroken, Invalid, Unavailable
from handrail.domain.journal.chain import Break
from handrail.domain.journal.checkpoint import CHECKPOINTS, Checkpoint, SealedCheckpoint
from handrail.engine.clock import new_id, system_entropy
from handrail.engine.fleet.limits import LimitTable
from handrail.engine.journal import Journal
from handrail.engine.measuring.measures import NO_MEASURES, Measures
from handrail.engine.proving import store_facts
from handrail.engine.proving.checkpointer import Checkpointer, CheckpointLog, Signer, Verifier, signature_problem
from handrail.engine.proving.node_keys import NodeKeys, NodeVerifiers, admissions, introduce, require_admitted
from handrail.engine.proving.projection_repair import WholeStore
from handrail.engine.proving.witness_courier import Witness
from handrail.engine.record_writer import RecordWriter
from handrail.engine.run_secrets import RunSecrets
from handrail.foundation.address_text import without_password
from handrail.settings import Settings
from handrail.storage.archives.archive_folder import ArchiveFolder
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.keys import PrivateKey, PublicKey, open_key, open_public_key
from handrail.storage.memory import MemoryStore
from handrail.storage.node_box import NodeBox
from handrail.storage.run_secret_files import NAME as RUN_SECRETS
from handrail.storage.run_secret_files import RunSecretFiles
from handrail.storage.sqlite.store import SqliteStore
from handrail.storage.witnesses.home_copy import HomeCopy, ReadLog

if TYPE_CHECKING:
    from handrail.storage.postgres.dump import PostgresDump
    from handrail.storage.postgres.store import PostgresStore

POSTGRES: Final = ("postgresql", "postgres")
NODE: Final = "node-"

log = logging.getLogger(__name__)


class Turns(Protocol):
    """Whose turn it is to sign."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Be the one that signs, from here to the end of the block."""
        ...


@dataclass(frozen=True)
class OpenParts:
    """An open store, the log of its checkpoints, and who signs them."""

    store: WholeStore
    checkpoints: CheckpointLog
    signer: Signer
    copies: tuple[Witness, ...] = ()
    turns: Turns | None = None
    secrets: RunSecrets | None = None
    prefix: str = ""
    """How the names of this home's workers begin, in a store that several homes share; empty if it is not shared."""
    unsealed: int = 0
    """How many events opening it has written."""
    limits: LimitTable | None = None
    """Where all nodes count their calls, if there can be several."""
    node_name: str = ""
    """The name under which this home was admitted to a shared store."""


@dataclass(frozen=True)
class TurnSealer:
    """Signs checkpoints, one node at a time."""

    checkpointer: Checkpointer
    turns: Turns | None

    async def seal(self) -> Checkpoint | None:
        """A checkpoint of what changed since the last one, or None."""
        async with self.turns.turn() if self.turns is not None else nullcontext():
            return await self.checkpointer.seal()


def is_shared(settings: Settings) -> bool:
    """Whether the settings name a store that several machines can share; Invalid if they name none at all."""
    named = settings.choices.store
    if named and named.partition("://")[0] not in POSTGRES:
        raise Invalid(
            f"HANDRAIL_STORE is {without_password(named)!r}: no such kind of store is known",
            hint="leave it empty, for a file in HANDRAIL_HOME, or write postgresql://user:password@host/database",
        )
    return bool(named)


@asynccontextmanager
async def writing_store(
    settings: Settings, record_writer: RecordWriter, *, compare: bool, measures: Measures = NO_MEASURES
) -> AsyncIterator[OpenParts]:
    """The store that the settings name, for writing; it is created if it is missing."""
    if is_shared(settings):
        async with postgres_store(settings, measures=measures) as store:
            yield await shared_parts(settings, store, record_writer, compare=compare)
        return
    local = CheckpointFile(settings.checkpoints)
    async with await SqliteStore.open(settings.journal, busy_ms=_busy_ms(settings), measures=measures) as file:
        has_checkpoints = await local.last() is not None if compare else False
        key = open_key(settings.keys, has_checkpoints=has_checkpoints)
        yield OpenParts(file, local, key, secrets=run_secrets_of(settings))


def run_secrets_of(settings: Settings) -> RunSecretFiles:
    """The secrets of the open runs of a home whose journal is a file."""
    return RunSecretFiles(settings.home / RUN_SECRETS, lambda: NodeBox(open_key(settings.keys, has_checkpoints=True)))


@asynccontextmanager
async def reading_store(settings: Settings) -> AsyncIterator[tuple[WholeStore, CheckpointLog]]:
    """The store that the settings name, for reading only; an empty one if it does not exist."""
    if is_shared(settings):
        async with postgres_store(settings, read_only=True) as store:
            yield store, store.checkpoints("")
        return
    local = CheckpointFile(settings.checkpoints)
    if not settings.journal.exists():
        async with MemoryStore() as nothing:
            yield nothing, local
        return
    async with await SqliteStore.open_migrated(settings.journal, busy_ms=_busy_ms(settings)) as file:
        yield file, local


@asynccontextmanager
async def plain_store(settings: Settings) -> AsyncIterator[WholeStore]:
    """The store that the settings name, on connections of its own, for what writes no events."""
    if is_shared(settings):
        async with postgres_store(settings) as store:
            yield store
        return
    async with await SqliteStore.open(settings.journal, busy_ms=_busy_ms(settings)) as file:
        yield file


async def verifier_of(settings: Settings, store: Journal) -> Verifier | None:
    """What checks signatures: the key of this home, or those of all nodes; None if this home has no key."""
    own = open_public_key(settings.keys)
    if own is None or not is_shared(settings):
        return own
    return await verifiers_of(own, store)


async def verifiers_of(own: PublicKey, store: Journal) -> Verifier:
    """The keys of all nodes that a shared store has admitted, as a node with this key sees them."""
    admitted = await admissions(store)
    return NodeVerifiers(own, next(iter(admitted), ""), _verifiers(admitted))


async def lost_since_seen(settings: Settings, log: CheckpointLog, verifier: Verifier | None) -> Break | None:
    """What this home has seen signed and a shared store does not have; None if it has everything."""
    if not is_shared(settings):
        return None
    try:
        restarted = await _restarted(log, verifier) if verifier is not None else None
        await HomeCopy(CheckpointFile(settings.shared_checkpoints)).require_in(ReadLog(log), restarted)
    except IntegrityBroken as error:
        return Break(CHECKPOINTS, 0, str(error))
    return None


@asynccontextmanager
async def postgres_store(
    settings: Settings, *, read_only: bool = False, measures: Measures = NO_MEASURES
) -> AsyncIterator[PostgresStore]:
    """The store in PostgreSQL that the settings name, without its log and keys."""
    address, busy_ms = settings.choices.store, _busy_ms(settings)
    archives = ArchiveFolder.beside(settings.journal)
    try:
        # Late: the driver is an extra, and takes 60 ms of a start that most do without.
        from handrail.storage.postgres.store import PostgresStore
    except ImportError as error:
        raise _without_driver() from error
    opening = (
        PostgresStore.open_migrated(address, busy_ms=busy_ms, archives=archives)
        if read_only
        else PostgresStore.open(address, busy_ms=busy_ms, measures=measures, archives=archives)
    )
    async with await opening as store:
        yield store


def postgres_dump(settings: Settings) -> PostgresDump:
    """The journal in PostgreSQL as a whole, without opening its store."""
    try:
        from handrail.storage.postgres.address import Address
        from handrail.storage.postgres.dump import PostgresDump
    except ImportError as error:
        raise _without_driver() from error
    return PostgresDump(Address(settings.choices.store), _busy_ms(settings))


def _without_driver() -> Unavailable:
    return Unavailable(
        "a store in PostgreSQL needs its driver, which is not installed",
        hint="install it: `pip install 'handrail[postgres]'`",
    )


async def shared_parts(
    settings: Settings, store: PostgresStore, record_writer: RecordWriter, *, compare: bool
) -> OpenParts:
    """The log and the keys of a store that is shared; what this node has seen signed must be there."""
    local = CheckpointFile(settings.shared_checkpoints)
    table, copy = store.checkpoints(new_id(NODE, system_entropy)), HomeCopy(local)
    has_seen = await local.last() is not None if compare else False
    own = open_key(settings.keys, has_checkpoints=has_seen)
    if has_seen:
        admitted = await admissions(store)
        await copy.require_in(table, await _restarted(table, NodeVerifiers(own, "", _verifiers(admitted))))
    before = (await store.end()).events
    keys = await _node_keys(store, own, record_writer)
    unsealed = (await store.end()).events - before

    admission = (await admissions(store))[own.public]

    async def boxes() -> Mapping[str, str]:
        return {key: one.box for key, one in (await admissions(store)).items() if one is not None}

    secrets = store.secrets(own.public, NodeBox(own), boxes)
    return OpenParts(
        store,
        table,
        keys,
        (copy,),
        table,
        secrets,
        prefix=f"w-{own.key}-",
        unsealed=unsealed,
        limits=store.limits(),
        node_name=admission.node if admission is not None else "",
    )


async def _node_keys(store: WholeStore, own: PrivateKey, record_writer: RecordWriter) -> NodeKeys:
    """The keys that may sign; the first node of a new store admits itself."""
    await store_facts.create(store, record_writer, key=own.public)
    admitted = await admissions(store)
    require_admitted(own, admitted)
    if admitted[own.public] is None:
        await introduce(store, record_writer, own, box=NodeBox(own).public)
        admitted = await admissions(store)
    return NodeKeys(own, next(iter(admitted)), _verifiers(admitted))


def _verifiers(admitted: Mapping[str, object]) -> dict[str, Verifier]:
    keys = [PublicKey(bytes.fromhex(public)) for public in admitted]
    return {key.key: key for key in keys}


async def _restarted(table: CheckpointLog, keys: Verifier) -> SealedCheckpoint | None:
    """The first checkpoint, if an operator restarted the log, and an admitted key has signed that."""
    async for first in table.all():
        return first if first.checkpoint.is_restart and signature_problem(first, keys) is None else None
    return None


def _busy_ms(settings: Settings) -> int:
    return duration_ms(settings.choices.busy)
