"""Checkpoints: signed statements of where every stream ended, stored outside the database.

Pure: what a checkpoint contains, its exact bytes, and whether one follows another. Signing them and comparing them
with the store is done in engine/proving/checkpointer.py; the file they are in is storage/checkpoint_log.py."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct, field

from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.chain import Head

CHECKPOINT_FORMAT: Final = 1

CHECKPOINTS: Final = "checkpoints"
"""The `stream` of a break in the checkpoint log; its n is the checkpoint's number."""
JOURNAL: Final = "journal"
"""The `stream` of a break that belongs to no single stream; its n is a place in the store."""

_encode: Final = msgspec.json.Encoder().encode


class Checkpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The store at one moment: how many events, in which order, and the ends of the streams that changed."""

    format: int = CHECKPOINT_FORMAT
    number: int
    store: str
    at: int
    events: int
    order: str
    """The digest of all event hashes since the previous checkpoint, in order: see `Order`."""
    heads: tuple[tuple[str, int, str], ...]
    """(stream, number of its last event, hash of that event) for each stream that changed since the previous one."""
    previous: str = ""
    """The digest of the previous checkpoint."""
    is_restart: bool = field(default=False, name="anew")  # the key in files that are already signed
    """Whether an operator restarted the log: earlier problems of the journal were reviewed and accepted."""


class SealedCheckpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A checkpoint with the signature of its exact bytes and the id of the key that signed."""

    checkpoint: Checkpoint
    key: str
    signature: str

    @property
    def signature_bytes(self) -> bytes:
        """The signature; empty if it can't be decoded: no key accepts that."""
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
    """A sealed checkpoint as a line of the log, with its newline."""
    return _encode(sealed) + b"\n"


def checkpoint_from(line: bytes) -> SealedCheckpoint:
    """The sealed checkpoint in a line; a line that handrail would not have written is refused."""
    try:
        sealed = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IntegrityBroken(f"it can't be read: {error}") from error
    if sealed.checkpoint.format != CHECKPOINT_FORMAT:
        raise IntegrityBroken(f"its format {sealed.checkpoint.format} is not known to this handrail")
    if checkpoint_line(sealed) != line:
        raise IntegrityBroken("it is not in the form that handrail writes")
    return sealed


class Order:
    """The digest of event hashes in store order: each stream has its own chain; this links them to each other."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, hashes: Iterable[bytes]) -> None:
        """Add the hashes of the next events."""
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
    """Why a checkpoint can't be the one after `previous`; None if it can."""
    number = previous.number + 1 if previous else 1
    if checkpoint.number != number:
        return f"checkpoint {number} is missing: {checkpoint.number} is in its place"
    if checkpoint.previous != (checkpoint_digest(previous) if previous else ""):
        return "it does not refer to the checkpoint before it"
    if previous and checkpoint.store != previous.store:
        return "it is of another store"
    if previous and checkpoint.is_restart:
        return "it restarts the log, but is not the first"
    if previous and checkpoint.events <= previous.events:
        return "it has no more events than the checkpoint before it"
    return None


def another_store(sealed: str, present: str) -> str:
    """The message when the store is not the one that the checkpoints are of."""
    return f"the database was replaced by another: the checkpoints are of {sealed!r}, this is {present!r}"


def shorter(events: int, sealed: int, than: str) -> str:
    """The message when the store has fewer events than were sealed."""
    return f"the journal is shorter than {than} ({events} < {sealed}): it was cut, or an older copy was restored"
