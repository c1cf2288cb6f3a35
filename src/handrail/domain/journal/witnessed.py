"""What a witness has of a checkpoint: the sealed checkpoint itself, or a short line with its digest. Pure.

Short lines are for witnesses that take only short texts (syslog). Comparing what a witness has with the store is done
in engine/proving/witness_check.py; the kinds of witnesses are in storage/witnesses/."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct, field

from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.checkpoint import (
    CHECKPOINT_FORMAT,
    Checkpoint,
    SealedCheckpoint,
    checkpoint_digest,
    checkpoint_from,
)

WITNESS: Final = "witness"
"""The `stream` of a break between a witness and the store; its n is the checkpoint's number."""

SHORT_MARK: Final = b'{"handrail":"checkpoint",'
WHOLE_MARK: Final = b'{"checkpoint":'


class ShortCopy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="handrail", tag="checkpoint"):
    """The facts of a checkpoint that fit a line of syslog."""

    format: int = CHECKPOINT_FORMAT
    number: int
    store: str
    at: int
    events: int
    digest: str
    key: str
    is_restart: bool = field(default=False, name="restart")


class Witnessed(Struct, frozen=True, kw_only=True):
    """A checkpoint as a witness has it."""

    number: int
    store: str
    at: int
    events: int
    digest: str
    key: str
    is_restart: bool
    sealed: SealedCheckpoint | None = None
    """The whole checkpoint; None if the witness has only a short line."""

    @property
    def heads(self) -> tuple[tuple[str, int, str], ...]:
        """The ends of streams that the witness knows."""
        return self.sealed.checkpoint.heads if self.sealed else ()


class Copies(Struct, frozen=True, kw_only=True):
    """All that was read from a witness."""

    found: tuple[Witnessed, ...] = ()
    damaged: tuple[int, ...] = ()
    """The numbers of the lines that can't be read."""


_encode: Final = msgspec.json.Encoder().encode
_short: Final = msgspec.json.Decoder(ShortCopy)


def short_line(sealed: SealedCheckpoint) -> bytes:
    """A checkpoint in one short line, without a line end."""
    one = sealed.checkpoint
    return _encode(
        ShortCopy(
            number=one.number,
            store=one.store,
            at=one.at,
            events=one.events,
            digest=checkpoint_digest(one),
            key=sealed.key,
            is_restart=one.is_restart,
        )
    )


def witnessed_from(line: bytes) -> Witnessed | None:
    """The checkpoint in a line of a witness; None if the line is about something else.

    A short line may have other text in front, as loggers write it. IntegrityBroken for a line that was damaged."""
    if line.startswith(WHOLE_MARK):
        return _whole(checkpoint_from(line.rstrip(b"\r\n") + b"\n"))
    start = line.find(SHORT_MARK)
    if start < 0:
        return None
    try:
        one = _short.decode(line[start:].strip())
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IntegrityBroken(f"it can't be read: {error}") from error
    return Witnessed(
        number=one.number,
        store=one.store,
        at=one.at,
        events=one.events,
        digest=one.digest,
        key=one.key,
        is_restart=one.is_restart,
    )


def _whole(sealed: SealedCheckpoint) -> Witnessed:
    one: Checkpoint = sealed.checkpoint
    return Witnessed(
        number=one.number,
        store=one.store,
        at=one.at,
        events=one.events,
        digest=checkpoint_digest(one),
        key=sealed.key,
        is_restart=one.is_restart,
        sealed=sealed,
    )
