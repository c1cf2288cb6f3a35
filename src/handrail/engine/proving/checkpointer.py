"""Signs checkpoints of the store's current state, and compares the store with the last of them.

Async; uses only protocols. audit.py verifies the whole journal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final, Protocol

from msgspec.structs import replace

from handrail.domain.errors import IntegrityBroken, Unavailable
from handrail.domain.journal.chain import GENESIS, Break, Head, Record, first_break
from handrail.domain.journal.checkpoint import (
    CHECKPOINTS,
    JOURNAL,
    Checkpoint,
    Order,
    SealedCheckpoint,
    another_store,
    checkpoint_bytes,
    checkpoint_digest,
    next_checkpoint,
    sealed_with,
    shorter,
)
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import STORE_STREAM
from handrail.domain.journal.mark import START, Mark
from handrail.domain.journal.store_event import StoreCreated
from handrail.engine.journal import Row
from handrail.engine.passed_in import Clock

SEALS_MAX: Final = 50
LANE, PLACE, STREAM, N, HASH = 0, 1, 2, 3, 12
"""Where these columns are in a row of the store."""
FOUND_MAX: Final = 20


class Verifier(Protocol):
    """The public half of the key that signs checkpoints."""

    @property
    def key(self) -> str:
        """The key's id, short enough for every checkpoint."""
        ...

    @property
    def public(self) -> str:
        """The public key itself, as in the store's first event."""
        ...

    def holds(self, message: bytes, signature: bytes) -> bool:
        """Whether this key made this signature of this message."""
        ...

    def of(self, key: str) -> Verifier | None:
        """What checks the signatures of the key with this id; None if that key may not sign here."""
        ...

    def created(self, public: str) -> bool:
        """Whether a store that was created with this public key may be ours."""
        ...


class Signer(Verifier, Protocol):
    """The key that signs checkpoints."""

    def sign(self, message: bytes) -> bytes:
        """The signature of a message."""
        ...


class CheckpointLog(Protocol):
    """Where sealed checkpoints are stored, outside the database."""

    async def last(self) -> SealedCheckpoint | None:
        """The newest checkpoint."""
        ...

    def all(self) -> AsyncIterator[SealedCheckpoint]:
        """Every checkpoint, oldest first; IntegrityBroken at the first that can't be read."""
        ...

    async def append(self, sealed: SealedCheckpoint, *, after: str) -> bool:
        """Append durably; False if the newest checkpoint's digest is not `after`."""
        ...

    async def restart(self, sealed: SealedCheckpoint) -> None:
        """Set the log aside, in any state, and start a new one with this checkpoint."""
        ...


class CheckpointedStore(Protocol):
    """What signing and comparing need from a store."""

    async def read(self, stream: str, *, after: int = 0, limit: int = 100_000) -> list[Record]:
        """The records of a stream with n > after, in order."""
        ...

    async def end(self) -> Mark:
        """The mark of everything in the store."""
        ...

    def rows(self, *, after: Mark = START, stops: Sequence[Mark] = (), size: int = 2_000) -> AsyncIterator[list[Row]]:
        """All events behind a mark as plain columns, in batches, also what is left of those that are archived."""
        ...


@dataclass(frozen=True)
class Checkpointer:
    """Signs and compares checkpoints of one store."""

    store: CheckpointedStore
    log: CheckpointLog
    signer: Signer
    clock: Clock
    sealed: Callable[[], None] = lambda: None
    """Called after each new checkpoint, so that it can be copied to witnesses; it must not wait."""

    async def seal(self, *, restart: bool = False) -> Checkpoint | None:
        """A checkpoint of what changed since the last one, or None; with `restart`, of everything, in a new log."""
        for _ in range(SEALS_MAX):
            last = None if restart else await self.log.last()
            previous = last.checkpoint if last else None
            checkpoint = await self._next(previous, restart=restart)
            if checkpoint is None:
                return None
            sealed = sealed_with(
                checkpoint, key=self.signer.key, signature=self.signer.sign(checkpoint_bytes(checkpoint))
            )
            if restart:
                await self.log.restart(sealed)
                self.sealed()
                return checkpoint
            # Another process may have signed since the last one was read: then this one would stand beside it, not
            # behind it.
            if await self.log.append(sealed, after=checkpoint_digest(previous) if previous else ""):
                self.sealed()
                return checkpoint
        raise Unavailable("too many writers append to the checkpoint log at once")

    async def compare(self) -> list[Break]:
        """Where the store differs from the last checkpoint. Done at every start, so it reads only part of the store."""
        where = CHECKPOINTS
        try:
            last = await self.log.last()
            where = JOURNAL
            return await self._differences(last) if last else []
        except IntegrityBroken as error:
            return [Break(where, 0, str(error))]

    async def _next(self, previous: Checkpoint | None, *, restart: bool) -> Checkpoint | None:
        store, after = await store_id(self.store), previous.mark if previous else START
        if previous and store != previous.store:
            raise IntegrityBroken(another_store(previous.store, store))
        mark, orders, heads = await self._since(after)
        if mark != after:
            checkpoint = next_checkpoint(
                previous, store=store, at=self.clock(), mark=mark, orders=orders, heads=heads.values()
            )
            return replace(checkpoint, is_restart=restart)
        end = await self.store.end()
        # Nothing new is normal; less than before is not. Signing nothing here would hide that events are gone.
        if not end.covers(after):
            raise IntegrityBroken(shorter(end.shared(after).events, after.events, "its last checkpoint"))
        return None

    async def _since(self, mark: Mark) -> tuple[Mark, Mapping[int, str], dict[str, Head]]:
        """The events behind a mark: up to where, in which order by lane, and the ends of the streams that changed."""
        heads: dict[str, Head] = {}
        orders: dict[int, Order] = {}
        async for batch in self.store.rows(after=mark):  # with the places and hashes of archived events
            for lane, placed in groupby(batch, key=itemgetter(LANE)):
                orders.setdefault(lane, Order()).add(row[HASH] for row in placed)
            ends = {row[STREAM]: Head(row[STREAM], row[N], row[HASH]) for row in batch}
            _require_readable(ends.values())
            heads |= ends
            lanes = {row[LANE]: row[PLACE] for row in batch}
            mark = Mark.of(mark.counts | lanes)
        return mark, {lane: order.text() for lane, order in orders.items()}, heads

    async def _differences(self, last: SealedCheckpoint) -> list[Break]:
        checkpoint = last.checkpoint
        if reason := signature_problem(last, self.signer):
            return [Break(CHECKPOINTS, checkpoint.number, reason)]
        store = await store_id(self.store)
        end = await self.store.end()
        if end.events and store != checkpoint.store:
            return [Break(STORE_STREAM, 1, another_store(checkpoint.store, store))]
        # Only the ends that the last checkpoint names: that is what changed last, and the whole journal takes too long
        # for a start. `verify` reads everything.
        breaks = [await self._missing(checkpoint, *head) for head in checkpoint.heads]
        if not end.covers(checkpoint.mark):
            # With lanes, others may have grown since: what counts is how much of what was sealed is there.
            events = end.shared(checkpoint.mark).events
            breaks.insert(0, Break(JOURNAL, events + 1, shorter(events, checkpoint.events, "its last checkpoint")))
        return [broken for broken in breaks if broken]

    async def _missing(self, checkpoint: Checkpoint, stream: str, n: int, hash_hex: str) -> Break | None:
        """Why the event at the end of a stream, by a checkpoint, is missing or changed; None if it is not."""
        try:
            records = {record.n: record for record in await self.store.read(stream, after=max(n - 2, 0), limit=2)}
        except IntegrityBroken as error:
            return Break(stream, n, str(error))
        if n not in records:
            return Break(stream, n, "the last checkpoint has it, but it is gone")
        if records[n].hash.hex() != hash_hex:
            return Break(stream, n, "its hash is not the one in the last checkpoint: the stream was rewritten")
        if checkpoint.is_restart:
            return None  # its content may be damaged: an operator accepted that, and the hash is signed
        before = records[n - 1].hash if n - 1 in records else GENESIS
        return first_break(Head(stream, n - 1, before), [records[n]])[1]


async def store_created(store: CheckpointedStore) -> StoreCreated | None:
    """The event with the store's id and the key it was created with; None before it is written."""
    records = await store.read(STORE_STREAM, limit=1)
    event = entry_of(records[0]).event if records else None
    return event if isinstance(event, StoreCreated) else None


async def store_id(store: CheckpointedStore) -> str:
    """The store's id; empty before it has one."""
    created = await store_created(store)
    return created.store if created else ""


def signature_problem(sealed: SealedCheckpoint, verifier: Verifier) -> str | None:
    """Why a checkpoint's signature is not accepted; None if it is."""
    signer = verifier.of(sealed.key)
    if signer is None:
        return f"it is signed by another key ({sealed.key[:16]!r}, not {verifier.key!r})"
    if not signer.holds(checkpoint_bytes(sealed.checkpoint), sealed.signature_bytes):
        return "its signature is invalid: it was edited"
    return None


def _require_readable(heads: Iterable[Head]) -> None:
    for head in heads:
        if type(head.stream) is not str or type(head.n) is not int or type(head.hash) is not bytes:
            raise IntegrityBroken(f"an event of {head.stream!r} can't be read: its row is damaged")


def found_text(breaks: Sequence[Break]) -> str:
    """The breaks in one line, for the event that records an operator's acceptance."""
    shown = [f"{broken.stream} {broken.n}: {broken.reason}" for broken in breaks[:FOUND_MAX]]
    more = len(breaks) - len(shown)
    return "; ".join([*shown, f"and {more} more"] if more else shown) or "nothing"
