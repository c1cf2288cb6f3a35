"""Verifies a proof bundle: whether a store's key signed its content, and whether its parts match.

No I/O, no store, no settings: bytes in, and either what is proven or IntegrityBroken with the first error. The author
of a bundle may be hostile and may have signed it with another key: a valid signature says only which key signed.
bundle_account.py describes the result of the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec
from msgspec import Struct

from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.chain import GENESIS, Head, Record, first_break
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_bytes, checkpoint_digest
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import RUN_PREFIX, Entry, RunStarted
from handrail.domain.journal.proof_bundle import (
    ApprovalPart,
    Bundle,
    BundleHeader,
    CheckpointPart,
    DefinitionPart,
    ErasurePart,
    EventPart,
    EvidencePart,
    ToolPart,
    approval_parts,
    broken,
    bundle_from,
    digest_of,
    evidence_parts,
    record_of,
    signed_bytes,
)
from handrail.domain.journal.store_event import PayloadErased
from handrail.engine.proving.evidence import erasure_breaks
from handrail.engine.proving.signature import fingerprint, holds


class Proven(Struct, frozen=True, kw_only=True):
    """The content of a bundle, after all of it was verified."""

    header: BundleHeader
    entries: tuple[Entry, ...]
    definition: str
    """The text of the definition."""
    tools: tuple[str, ...]
    evidence: tuple[EvidencePart, ...]
    approvals: tuple[ApprovalPart, ...]
    erasures: tuple[ErasurePart, ...]
    checkpoint: CheckpointPart | None
    fingerprint: str
    """Of the key that signed it."""


def check_bundle(data: bytes, *, trusted: str = "") -> Proven:
    """What a bundle proves; `trusted` is the fingerprint of the only accepted key."""
    bundle = bundle_from(data)
    header = bundle.header
    if not holds(header.key, signed_bytes(header), header.signature):
        raise broken("its signature is invalid: its header was edited, or another key signed it")
    # The key is in the bundle itself: a valid signature says that it is whole, only the fingerprint says who signed it.
    owner = fingerprint(header.key)
    if trusted and owner != trusted:
        raise broken(f"it is signed by another key than the one you trust: {owner}, not {trusted}")
    records = _records(bundle)
    entries = tuple(map(_entry, records))
    definition, tools = _texts(bundle, entries)
    erasures = _erasures(bundle, records)
    _compare_readable(bundle, records)
    return Proven(
        header=header,
        entries=entries,
        definition=definition,
        tools=tools,
        evidence=tuple(bundle.of(EvidencePart)),
        approvals=tuple(bundle.of(ApprovalPart)),
        erasures=erasures,
        checkpoint=_checkpoint(bundle, records),
        fingerprint=owner,
    )


def _records(bundle: Bundle) -> list[Record]:
    """The events, with a valid chain from the first to the last one named in the header."""
    header = bundle.header
    parts: list[EventPart] = bundle.of(EventPart)
    if not header.run.startswith(RUN_PREFIX) or not parts:
        raise broken("it is not of a run, or has no events")
    records = [record_of(header.run, part) for part in parts]
    end, found = first_break(Head(header.run), records)
    if found:
        raise broken(f"event {found.n} of {found.stream}: {found.reason}")
    if (end.n, end.hash.hex()) != (header.n, header.head):
        raise broken(f"its last event, {end.n}, is not the one named in its header: event {header.n}")
    # For readers without our code: they follow these links, so these must not differ from what the hashes cover.
    _compare_befores(parts)
    return records


def _compare_befores(parts: Sequence[EventPart]) -> None:
    before = GENESIS.hex()
    for part in parts:
        if part.prev != before:
            raise broken(f"event {part.n}: its link to the previous event is wrong")
        before = part.hash


def _entry(record: Record) -> Entry:
    try:
        return entry_of(record)
    except IntegrityBroken as error:
        raise broken(f"event {record.n}: {error}") from error


def _texts(bundle: Bundle, entries: Sequence[Entry]) -> tuple[str, tuple[str, ...]]:
    """The text of the definition, and the names of the pinned tools."""
    started = entries[0].event
    if not isinstance(started, RunStarted):
        raise broken("its first event does not start a run")
    definitions: list[DefinitionPart] = bundle.of(DefinitionPart)
    if [part.hash for part in definitions] != [started.definition]:
        raise broken(f"it does not contain the one definition that the run is pinned to: {started.definition}")
    tools: list[ToolPart] = bundle.of(ToolPart)
    # Exactly: a part too much would be shown to a reader as if the run had been pinned to it.
    if [(part.name, part.hash) for part in tools] != sorted(started.pins.items()):
        raise broken("it does not contain exactly the tools that the run is pinned to")
    _compare_texts([*definitions, *tools])
    return definitions[0].text, tuple(started.pins)


def _compare_texts(parts: Sequence[DefinitionPart | ToolPart]) -> None:
    for part in parts:
        if digest_of(part.text.encode()) != part.hash:
            raise broken(f"the text of {part.hash} has changed")


def _erasures(bundle: Bundle, records: Sequence[Record]) -> tuple[ErasurePart, ...]:
    parts: list[ErasurePart] = bundle.of(ErasurePart)
    _in_order(part.event for part in parts)
    notes = [
        PayloadErased(
            stream=bundle.header.run, event=part.event, digest=part.digest, residue=part.residue, reason=part.reason
        )
        for part in parts
    ]
    for found in erasure_breaks((record for record in records if record.erased is not None), notes):
        raise broken(f"event {found.n}: {found.reason}")
    return tuple(parts)


def _in_order(numbers: Iterable[int]) -> None:
    if any(after <= before for before, after in pairwise(numbers)):
        raise broken("its erasures are repeated or out of order")


def _compare_readable(bundle: Bundle, records: Sequence[Record]) -> None:
    """The parts for readers must match the events."""
    try:
        evidence, approvals = evidence_parts(records), approval_parts(records)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise broken(f"an event can't be read: {error}") from error
    if bundle.of(EvidencePart) != evidence:
        raise broken("the evidence in it differs from its events")
    if bundle.of(ApprovalPart) != approvals:
        raise broken("the approvals in it differ from its events")


def _checkpoint(bundle: Bundle, records: Sequence[Record]) -> CheckpointPart | None:
    parts: list[CheckpointPart] = bundle.of(CheckpointPart)
    if not parts:
        return None
    part, name = parts[0], f"checkpoint {parts[0].number}"
    if len(parts) > 1:
        raise broken("it contains more than one checkpoint")
    if not 1 <= part.n <= len(records) or records[part.n - 1].hash.hex() != part.hash:
        raise broken(f"{name} has a different event {part.n} of the run")
    if part.sealed is not None:
        _check_sealed(bundle.header, part, part.sealed)
    return part


def _check_sealed(header: BundleHeader, part: CheckpointPart, sealed: SealedCheckpoint) -> None:
    """Check that an included checkpoint was signed by the same key and matches its description."""
    checkpoint, name = sealed.checkpoint, f"checkpoint {part.number}"
    if not holds(header.key, checkpoint_bytes(checkpoint), sealed.signature_bytes.hex()):
        raise broken(f"the signature of {name} is invalid")
    stated = (part.number, part.at, part.digest)
    if stated != (checkpoint.number, checkpoint.at, checkpoint_digest(checkpoint)):
        raise broken(f"{name} does not match its description")
    if (header.run, part.n, part.hash) not in checkpoint.heads:
        raise broken(f"{name} does not cover event {part.n} of the run")
