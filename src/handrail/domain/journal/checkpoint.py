"""Checkpoints: signed statements of where every stream ended, stored outside the database.

Pure: what a checkpoint contains, its exact bytes, and whether one follows another. Signing them and comparing them
with the store is done in engine/proving/checkpointer.py; the file they are in is storage/checkpoint_log.py."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.chain import Head
from handrail.domain.journal.mark import ONE_LANE, START, Mark

CHECKPOINT_FORMAT: Final = 1
"""Of a store with one lane."""
LANES_FORMAT: Final = 2
"""Of a store with several lanes; see docs/decisions/0015."""

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
    """The digest of all event hashes since the previous checkpoint, in order: see `Order`. With lanes, empty."""
    heads: tuple[tuple[str, int, str], ...]
    """(stream, number of its last event, hash of that event) for each stream that changed since the previous one."""
    previous: str = ""
    """The digest of the previous checkpoint."""
    is_restart: bool = field(default=False, name="anew")  # the key in files that are already signed
    """Whether an operator restarted the log: earlier problems of the journal were reviewed and accepted."""
    lanes: tuple[tuple[int, int, str], ...] | UnsetType = UNSET  # left out of the bytes if there is only one lane
    """(lane, number of its events, digest of the hashes of those since the previous checkpoint; empty: none) for each
    lane that has events."""

    @property
    def mark(self) -> Mark:
        """How far the checkpoint goes."""
        if isinstance(self.lanes, UnsetType):
            return Mark.at(self.events)
        return Mark.of({lane: count for lane, count, _ in self.lanes})

    @property
    def orders(self) -> dict[int, str]:
        """The digests of what is new since the previous checkpoint, by lane."""
        if isinstance(self.lanes, UnsetType):
            return {ONE_LANE: self.order}
        return {lane: digest for lane, _, digest in self.lanes}


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
    if sealed.checkpoint.format not in (CHECKPOINT_FORMAT, LANES_FORMAT):
        raise IntegrityBroken(f"its format {sealed.checkpoint.format} is not known to this handrail")
    if checkpoint_line(sealed) != line:
        raise IntegrityBroken("it is not in the form that handrail writes")
    if reason := _uneven(sealed.checkpoint):
        raise IntegrityBroken(reason)
    return sealed


def _uneven(checkpoint: Checkpoint) -> str | None:
    """What is wrong with the lanes of a checkpoint in itself; None if nothing."""
    lanes = checkpoint.lanes
    if isinstance(lanes, UnsetType):
        return None if checkpoint.format == CHECKPOINT_FORMAT else "it has no lanes"
    is_even = checkpoint.mark.lanes == tuple((lane, count) for lane, count, _ in lanes)  # sorted, and none of them 0
    if checkpoint.format == LANES_FORMAT and is_even and checkpoint.mark.events == checkpoint.events:
        return None
    return "its lanes do not add up to its events"


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
    previous: Checkpoint | None,
    *,
    store: str,
    at: int,
    mark: Mark,
    orders: Mapping[int, str],
    heads: Iterable[Head],
) -> Checkpoint:
    """The checkpoint that follows `previous`, or the first; `orders` are the digests of what is new, by lane."""
    is_one = mark == Mark.at(mark.events)
    return Checkpoint(
        format=CHECKPOINT_FORMAT if is_one else LANES_FORMAT,
        number=previous.number + 1 if previous else 1,
        store=store,
        at=at,
        events=mark.events,
        order=orders.get(ONE_LANE, "") if is_one else "",
        heads=tuple(sorted((head.stream, head.n, head.hash.hex()) for head in heads)),
        previous=checkpoint_digest(previous) if previous else "",
        lanes=UNSET if is_one else tuple((lane, count, orders.get(lane, "")) for lane, count in mark.lanes),
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
    if not checkpoint.mark.covers(previous.mark if previous else START):
        return "it has fewer events in a lane than the checkpoint before it"
    return None


def another_store(sealed: str, present: str) -> str:
    """The message when the store is not the one that the checkpoints are of."""
    return f"the database was replaced by another: the checkpoints are of {sealed!r}, this is {present!r}"


def shorter(events: int, sealed: int, than: str) -> str:
    """The message when the store has fewer events than were sealed."""
    return f"the journal is shorter than {than} ({events} < {sealed}): it was cut, or an older copy was restored"
