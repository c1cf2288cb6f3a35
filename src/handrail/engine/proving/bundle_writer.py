"""Makes a proof bundle: one run with everything that proves it, signed with the store's key.

Async; reads the store and the checkpoint log, and writes neither. The format is in domain/journal/proof_bundle.py.
Each bundle is verified by bundle_check.py before it is returned: a run with an invalid journal gets none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from handrail.domain.errors import IntegrityBroken, Invalid, Limited, NotFound
from handrail.domain.journal.chain import GENESIS, Record
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_digest
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import RUN_PREFIX, STORE_STREAM, RunStarted
from handrail.domain.journal.proof_bundle import (
    BUNDLE_FORMAT,
    BundleHeader,
    CheckpointPart,
    DefinitionPart,
    ErasurePart,
    EventPart,
    Part,
    ToolPart,
    approval_parts,
    bundle_bytes,
    digest_of,
    event_part,
    evidence_parts,
    rest_of,
    signed_bytes,
)
from handrail.domain.journal.store_event import PayloadErased
from handrail.engine.journal import Journal
from handrail.engine.passed_in import Clock
from handrail.engine.proving.bundle_check import Proven, check_bundle
from handrail.engine.proving.checkpointer import CheckpointLog, Signer, signature_problem
from handrail.engine.stream_pages import entries_of, pages_of

EVENTS_MAX: Final = 500_000


async def make_bundle(
    store: Journal, log: CheckpointLog, run: str, *, signer: Signer, clock: Clock
) -> tuple[bytes, Proven]:
    """The proof bundle of a run in its current state, and what it proves."""
    if not run.startswith(RUN_PREFIX):
        raise Invalid(f"{run!r} is not a run", hint="`handrail run list` shows the runs")
    records = await _records(store, run)
    try:
        parts = await _texts(store, records[0])
        parts += _events(records)
        parts += [*evidence_parts(records), *approval_parts(records)]
        parts += [*await _erasures(store, run), *await _checkpoint(log, run, records, signer)]
        data = _signed(run, records[-1], rest_of(parts), signer, clock)
        return data, check_bundle(data)
    except (IntegrityBroken, UnicodeDecodeError) as error:
        raise IntegrityBroken(f"{run} can't be proven: {error}") from error


def _signed(run: str, last: Record, rest: bytes, signer: Signer, clock: Clock) -> bytes:
    header = BundleHeader(
        format=BUNDLE_FORMAT,
        run=run,
        n=last.n,
        head=last.hash.hex(),
        made=clock(),
        digest=digest_of(rest),
        key=signer.public,
    )
    return bundle_bytes(replace(header, signature=signer.sign(signed_bytes(header)).hex()), rest)


async def _records(store: Journal, run: str) -> list[Record]:
    records: list[Record] = []
    async for page in pages_of(store, run):
        records += page
        if len(records) > EVENTS_MAX:
            raise Limited(f"{run} has more than {EVENTS_MAX} events", hint="export it without --bundle")
    if not records:
        raise NotFound(f"there is no run {run!r}", hint="`handrail run list` shows the runs")
    return records


async def _texts(store: Journal, first: Record) -> list[Part]:
    """The definition and the tool descriptions that the run's first event names."""
    started = entry_of(first).event
    if not isinstance(started, RunStarted):
        raise IntegrityBroken("its first event does not start a run")
    definition = DefinitionPart(hash=started.definition, text=await _text(store, started.definition))
    tools = [
        ToolPart(name=name, hash=content_hash, text=await _text(store, content_hash))
        for name, content_hash in sorted(started.pins.items())
    ]
    return [definition, *tools]


async def _text(store: Journal, content_hash: str) -> str:
    text = await store.definition(content_hash)
    if text is None:
        raise IntegrityBroken(f"the text of {content_hash} is not in the store")
    return text.decode()


def _events(records: Sequence[Record]) -> list[EventPart]:
    befores = [GENESIS, *(record.hash for record in records)]
    return [event_part(record, before) for record, before in zip(records, befores, strict=False)]


async def _erasures(store: Journal, run: str) -> list[ErasurePart]:
    notes = {
        entry.event.event: ErasurePart(
            event=entry.event.event,
            at=entry.at,
            actor=entry.actor,
            digest=entry.event.digest,
            residue=entry.event.residue,
            reason=entry.event.reason,
        )
        for entry in await entries_of(store, STORE_STREAM)
        if isinstance(entry.event, PayloadErased) and entry.event.stream == run
    }
    return [notes[n] for n in sorted(notes)]


async def _checkpoint(log: CheckpointLog, run: str, records: Sequence[Record], signer: Signer) -> list[CheckpointPart]:
    """The newest checkpoint that covers these events of the run; empty if there is none yet."""
    newest: tuple[SealedCheckpoint, int, str] | None = None
    async for sealed in log.all():
        ends = [(n, hash_hex) for stream, n, hash_hex in sealed.checkpoint.heads if stream == run]
        newest = next(((sealed, *end) for end in ends if end[0] <= len(records)), newest)
    if newest is None:
        return []
    if reason := signature_problem(newest[0], signer):
        raise IntegrityBroken(f"checkpoint {newest[0].checkpoint.number}: {reason}")
    return [_checkpoint_part(run, *newest)]


def _checkpoint_part(run: str, sealed: SealedCheckpoint, n: int, hash_hex: str) -> CheckpointPart:
    checkpoint = sealed.checkpoint
    is_ours = {stream for stream, _, _ in checkpoint.heads} <= {run, STORE_STREAM}
    return CheckpointPart(
        number=checkpoint.number,
        at=checkpoint.at,
        digest=checkpoint_digest(checkpoint),
        n=n,
        hash=hash_hex,
        sealed=sealed if is_ours else None,
    )
