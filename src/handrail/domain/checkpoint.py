"""Checkpoints: signed statements of where every stream stood, kept outside the database.

Pure: what a checkpoint says, its exact bytes, and whether one follows another. Signing and comparing them with the
store is engine/notary.py's work; the file they are kept in is storage/checkpoint_log.py's."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from handrail.domain.chain import Head
from handrail.domain.errors import IntegrityBroken

CHECKPOINT_FORMAT: Final = 1

CHECKPOINTS: Final = "checkpoints"
"""Where a break stands that concerns the checkpoint log; its n is the checkpoint's number."""
JOURNAL: Final = "journal"
"""Where a break stands that concerns no single stream; its n is a place in the store."""

_encode: Final = msgspec.json.Encoder().encode


class Checkpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the store held at an instant: how many events, in which order, and the ends of the streams that changed."""

    format: int = CHECKPOINT_FORMAT
    number: int
    store: str
    at: int
    events: int
    order: str
    """The digest of all event hashes since the checkpoint before, in their order: see `Order`."""
    heads: tuple[tuple[str, int, str], ...]
    """Stream, number of its last event, hash of that event, of every stream that changed since the one before."""
    previous: str = ""
    """The digest of the checkpoint before."""
    anew: bool = False
    """Whether an operator had the log begun anew: what was wrong with the journal before has been seen."""


class SealedCheckpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A checkpoint with the signature over its exact bytes and the id of the key that made it."""

    checkpoint: Checkpoint
    key: str
    signature: str

    @property
    def signature_bytes(self) -> bytes:
        """The signature; empty if it is not readable, which no key accepts."""
        try:
            return base64.b64decode(self.signature, validate=True)
        except binascii.Error:
            return b""


_decoder: Final = msgspec.json.Decoder(SealedCheckpoint)


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """The exact bytes that are signed and that the next checkpoint refers to."""
    return _encode(checkpoint)


def checkpoint_digest(checkpoint: Checkpoint) -> str:
    """How the next checkpoint refers to this one."""
    return hashlib.sha256(checkpoint_bytes(checkpoint)).hexdigest()


def sealed_with(checkpoint: Checkpoint, *, key: str, signature: bytes) -> SealedCheckpoint:
    """The checkpoint with its signature."""
    return SealedCheckpoint(checkpoint=checkpoint, key=key, signature=base64.b64encode(signature).decode())


def checkpoint_line(sealed: SealedCheckpoint) -> bytes:
    """The line under which a sealed checkpoint is kept, its newline included."""
    return _encode(sealed) + b"\n"


def checkpoint_from(line: bytes) -> SealedCheckpoint:
    """The sealed checkpoint that a line stands for; a line that handrail would not have written is refused."""
    try:
        sealed = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IntegrityBroken(f"it can't be read: {error}") from error
    if sealed.checkpoint.format != CHECKPOINT_FORMAT:
        raise IntegrityBroken(f"its format {sealed.checkpoint.format} is not known to this handrail")
    if checkpoint_line(sealed) != line:
        raise IntegrityBroken("it is not written as handrail writes")
    return sealed


class Order:
    """The digest of event hashes in their order: streams are chained one by one, this ties them to each other."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, hashes: Iterable[bytes]) -> None:
        """Take in the hashes of the next events."""
        self._digest.update(b"".join(hashes))

    def text(self) -> str:
        """The digest of all hashes so far."""
        return self._digest.hexdigest()


def next_checkpoint(
    previous: Checkpoint | None, *, store: str, at: int, events: int, order: str, heads: Iterable[Head]
) -> Checkpoint:
    """The checkpoint that follows `previous`, or the first."""
    return Checkpoint(
        number=previous.number + 1 if previous else 1,
        store=store,
        at=at,
        events=events,
        order=order,
        heads=tuple(sorted((head.stream, head.n, head.hash.hex()) for head in heads)),
        previous=checkpoint_digest(previous) if previous else "",
    )


def misplaced(previous: Checkpoint | None, checkpoint: Checkpoint) -> str | None:
    """Why a checkpoint can't be the one behind `previous`; None if it can."""
    number = previous.number + 1 if previous else 1
    if checkpoint.number != number:
        return f"checkpoint {number} is missing: {checkpoint.number} stands in its place"
    if checkpoint.previous != (checkpoint_digest(previous) if previous else ""):
        return "it does not follow the checkpoint before it"
    if previous and checkpoint.store != previous.store:
        return "it speaks of another store"
    if previous and checkpoint.anew:
        return "it begins the log anew, and is not the first"
    if previous and checkpoint.events <= previous.events:
        return "it counts no more events than the checkpoint before it"
    return None


def another_store(sealed: str, present: str) -> str:
    """What to say when the store is not the one that the checkpoints speak of."""
    return f"another database was put in place: the checkpoints speak of {sealed!r}, this is {present!r}"


def shorter(events: int, sealed: int, than: str) -> str:
    """What to say when the store holds fewer events than were sealed."""
    return f"the journal is shorter than {than} ({events} < {sealed}): it was cut, or an older copy was put back"
