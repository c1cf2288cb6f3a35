"""The hash chain, which reveals a changed, removed, inserted or moved event.

Pure. A record is an event as stored. Its hash covers the hash before it, its header and its body:

    hash = sha256(hash before || header || sha256(salt || body))

The body is hashed through a salted digest, so that it can be erased later without breaking the chain: the digest
stays, and without the salt the content can't be guessed from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

GENESIS: Final = bytes(32)
SALT_BYTES: Final = 16
RECEIPT_DIGITS: Final = 16

_encode = msgspec.json.Encoder().encode
_sha256 = hashlib.sha256


class Record(Struct, frozen=True, gc=False):
    """An event as it is stored: the header's columns, then salt, body and hash as bytes.

    `erased` is the salted digest of a body that was erased; the body then contains what was left of it."""

    stream: str
    n: int
    at: int
    kind: str
    actor: str
    step: str | None
    attempt: int | None
    format: int
    salt: bytes
    body: bytes
    hash: bytes
    erased: bytes | None = None


class Head(Struct, frozen=True):
    """The end of a stream: how many events it has, and the hash of the last."""

    stream: str
    n: int = 0
    hash: bytes = GENESIS


class Break(Struct, frozen=True):
    """The first event of a stream that was tampered with or damaged, and what is wrong with it."""

    stream: str
    n: int
    reason: str


def receipt(n: int, head: bytes) -> str:
    """What a caller keeps, to prove later that the journal still contains what it was answered."""
    return f"{n}:{head.hex()[:RECEIPT_DIGITS]}"


def body_digest(salt: bytes, body: bytes) -> bytes:
    """The digest of a body that the chain covers."""
    return _sha256(salt + body).digest()


def chain_hash(prev: bytes, record: Record) -> bytes:
    """The hash that a record must have when it follows the record with hash `prev`."""
    header = _encode(
        # As a JSON array, whose parts can't run into each other: with plain concatenation two records could hash alike.
        (record.format, record.stream, record.n, record.at, record.kind, record.actor, record.step, record.attempt)
    )
    # Inlined body_digest: this runs for every event that is verified, and a call costs.
    body = _sha256(record.salt + record.body).digest() if record.erased is None else record.erased
    return _sha256(prev + header + body).digest()


def chained(prev: bytes, record: Record) -> Record:
    """The record with the hash that it gets after `prev`."""
    return replace(record, hash=chain_hash(prev, record))


def first_break(head: Head, records: Iterable[Record]) -> tuple[Head, Break | None]:
    """Follow a stream from `head`: where it ends, and the first invalid record, if any."""
    stream, n, prev = head.stream, head.n, head.hash
    for record in records:
        if record.n != n + 1:
            return Head(stream, n, prev), Break(stream, n + 1, f"event {n + 1} is missing: {record.n} follows {n}")
        if chain_hash(prev, record) != record.hash:
            return Head(stream, n, prev), Break(stream, record.n, "its hash does not match its content and place")
        n, prev = record.n, record.hash
    return Head(stream, n, prev), None
