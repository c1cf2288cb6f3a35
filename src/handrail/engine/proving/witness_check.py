"""Compares what a witness has with the store, its checkpoint log and its key.

Async; reads only. Anyone who can write HANDRAIL_HOME can replace key, log and database together, and they agree with
each other again. A witness has what was signed before: that is what the store must still contain."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from handrail.domain.errors import IntegrityBroken, NotFound
from handrail.domain.journal.chain import Break
from handrail.domain.journal.checkpoint import checkpoint_digest
from handrail.domain.journal.witnessed import WITNESS, Copies, Witnessed
from handrail.domain.plural import plural
from handrail.engine.proving.checkpointer import (
    CheckpointedStore,
    CheckpointLog,
    Verifier,
    signature_problem,
    store_id,
)

BREAKS_MAX: Final = 20


class WitnessAgreement(Struct, frozen=True):
    """How many checkpoints of a witness are in the log as they were signed, and the number of the newest."""

    agreeing: int = 0
    newest: int = 0


class WitnessComparison(Struct, frozen=True):
    """How a store compares with what a witness has."""

    breaks: tuple[Break, ...] = ()
    notes: tuple[str, ...] = ()
    agreement: WitnessAgreement | None = None


async def compare_witness(
    store: CheckpointedStore, log: CheckpointLog, verifier: Verifier | None, copies: Copies
) -> WitnessComparison:
    """How the store differs from what a witness has, notes, and how much agrees."""
    if not copies.found:
        raise NotFound("the witness has no checkpoint: there is nothing to compare", hint="name another witness")
    present = await store_id(store)
    digests = await _digests(log)
    restarted = max((one.at for one in copies.found if one.is_restart), default=0)
    breaks, agreeing = list[Break](), list[Witnessed]()
    notes = [f"line {number} of the witness can't be read" for number in copies.damaged]
    for one in {one.digest: one for one in copies.found}.values():  # a copy that was repeated counts once
        if reason := _stranger(one, present, verifier):
            breaks.append(Break(WITNESS, one.number, reason))
        elif one.at < restarted:  # from before an operator restarted the log: the store itself must still have it
            lost = await _lost(store, one)
            notes += lost
            agreeing += [] if lost else [one]
        elif one.digest not in digests:
            breaks.append(Break(WITNESS, one.number, _unknown(one, digests)))
        else:
            agreeing.append(one)
    behind = len(digests.keys() - {one.digest for one in copies.found})
    notes += [f"the witness does not have {plural(behind, 'checkpoint')} of the log"] if behind else []
    newest = max(agreeing, key=lambda one: one.at, default=None)
    agreement = WitnessAgreement(len(agreeing), newest.number if newest is not None else 0)
    return WitnessComparison(tuple(_cut(_folded(breaks))), tuple(notes[:BREAKS_MAX]), agreement)


async def _digests(log: CheckpointLog) -> dict[str, int]:
    """The checkpoints of the log, by digest, up to the first that can't be read: the audit reports that one."""
    digests: dict[str, int] = {}
    try:
        async for sealed in log.all():
            digests[checkpoint_digest(sealed.checkpoint)] = sealed.checkpoint.number
    except IntegrityBroken:
        return digests
    return digests


def _stranger(one: Witnessed, present: str, verifier: Verifier | None) -> str | None:
    """Why a copy can't be of this store and key; None if it can."""
    if one.store != present:
        return f"the witness has a checkpoint of store {one.store!r}, this is {present!r}: the database was replaced"
    if verifier is None:
        return None
    signer = verifier.of(one.key)
    if signer is None:
        return f"the witness has a checkpoint of key {one.key[:16]!r}, this is {verifier.key!r}: the key was replaced"
    if one.sealed is not None and signature_problem(one.sealed, signer):
        return "the copy in the witness was edited: its signature is invalid"
    return None


def _unknown(one: Witnessed, digests: dict[str, int]) -> str:
    if one.number > max(digests.values(), default=0):
        return (
            f"the witness has this checkpoint of {plural(one.events, 'event')}, the log does not:"
            " log and database were replaced by an older copy"
        )
    return "the log has another checkpoint in the place of the one that the witness has: it was rewritten"


async def _lost(store: CheckpointedStore, one: Witnessed) -> list[str]:
    """What a checkpoint from before an accepted restart says that the store does not have."""
    for stream, n, hash_hex in one.heads:
        try:
            records = await store.read(stream, after=n - 1, limit=1)
        except IntegrityBroken:
            records = []
        if not records or records[0].hash.hex() != hash_hex:
            before = f"checkpoint {one.number} of the witness, from before an operator accepted the journal"
            return [f"{before}, has event {n} of {stream}; it is gone or changed since"]
    return []


def _folded(breaks: list[Break]) -> list[Break]:
    """Breaks with the same reason as one, at the first of them."""
    alike: dict[str, list[Break]] = {}
    for one in breaks:
        alike.setdefault(one.reason, []).append(one)
    return [
        first if not rest else Break(first.stream, first.n, f"{reason} (and {plural(len(rest), 'more checkpoint')})")
        for reason, (first, *rest) in alike.items()
    ]


def _cut(breaks: list[Break]) -> list[Break]:
    more = len(breaks) - BREAKS_MAX
    if more <= 0:
        return breaks
    first = breaks[BREAKS_MAX]
    also = f", and so do {more - 1} more" if more > 1 else ""
    return [*breaks[:BREAKS_MAX], Break(first.stream, first.n, f"this checkpoint of the witness differs{also}")]
