"""The manifest of a backup: what it contains, in numbers and digests, signed with the key of the store.

Pure values: their exact bytes, and what two of them have to agree on. Files are packed in storage/backups/; making,
restoring and verifying a backup is in assembly/backups/. The format is docs/decisions/0017."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct

from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.chain import Head

MANIFEST_FORMAT: Final = 1
MANIFEST_BYTES_MAX: Final = 1_000_000
RECIPIENTS_MAX: Final = 20

_name: Final = re.compile(r"[a-z][a-z.]{0,63}")
_encode: Final = msgspec.json.Encoder().encode


class PartContent(StrEnum):
    """What a file of a backup contains; each is a file of its own, so that keys can be stored elsewhere."""

    JOURNAL = "journal"
    HOME = "home"
    KEYS = "keys"


class StoreKind(StrEnum):
    """In which kind of database the journal was."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


class BackupPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of a backup: as it is on the disk, and its content before it was compressed and encrypted."""

    content: PartContent
    name: str
    bytes: int
    sha256: str
    content_bytes: int
    content_sha256: str


class ByPassphrase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The key of an encrypted backup, encrypted with a passphrase: scrypt, then ChaCha20-Poly1305; all in hex."""

    salt: str
    n: int
    r: int
    box: str


class ForRecipient(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The key of an encrypted backup, in a box that one recipient can open; both in hex."""

    recipient: str
    box: str


class Encryption(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who can open an encrypted backup: each way leads to the same key."""

    passphrase: ByPassphrase | None = None
    recipients: tuple[ForRecipient, ...] = ()


class JournalCounts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The journal in a backup, in numbers and digests."""

    events: int
    streams: int
    definitions: int
    heads: str
    """The digest of the ends of all streams; see `heads_digest`."""
    latest: int
    """The instant of the newest event; 0 if there is none."""


class Manifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a restored journal is compared with."""

    format: int = MANIFEST_FORMAT
    id: str
    store: str
    kind: StoreKind
    schema: int
    """The number of the newest migration of the database."""
    handrail: str
    """The version of the program that made the backup."""
    at: int
    journal: JournalCounts
    checkpoints: int
    """The number of the newest checkpoint in the backup; 0 if there is none."""
    parts: tuple[BackupPart, ...]
    encryption: Encryption | None = None

    def part(self, content: PartContent) -> BackupPart | None:
        """The file with this content."""
        return next((part for part in self.parts if part.content is content), None)


class SignedManifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A manifest with the public key that signed it, and the signature of its exact bytes; both in hex."""

    manifest: Manifest
    key: str
    signature: str


_decoder: Final = msgspec.json.Decoder(SignedManifest)


def manifest_bytes(manifest: Manifest) -> bytes:
    """The exact bytes that are signed."""
    return _encode(manifest)


def signed_bytes(signed: SignedManifest) -> bytes:
    """A signed manifest as it is written."""
    return _encode(signed) + b"\n"


def manifest_from(content: bytes) -> SignedManifest:
    """The signed manifest in a file; content that handrail would not have written is refused."""
    try:
        signed = _decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IntegrityBroken(f"the manifest can't be read: {error}", hint=ANOTHER) from error
    if signed.manifest.format != MANIFEST_FORMAT:
        raise IntegrityBroken(f"format {signed.manifest.format} of backups is not known", hint="update handrail")
    if signed_bytes(signed) != content:
        raise IntegrityBroken("the manifest is not in the form that handrail writes: it was edited", hint=ANOTHER)
    contents, names = ([getattr(part, key) for part in signed.manifest.parts] for key in ("content", "name"))
    is_once = len(set(contents)) == len(contents) and PartContent.JOURNAL in contents
    if not is_once or not all(_name.fullmatch(name) for name in names):  # a name must not lead out of the folder
        raise IntegrityBroken("the manifest does not name each file once", hint=ANOTHER)
    return signed


ANOTHER: Final = "use another backup"
"""What to do about a backup that is damaged."""


def heads_digest(heads: Iterable[Head]) -> str:
    """The digest of the ends of streams, in the order of their names."""
    digest = hashlib.sha256()
    for head in sorted(heads, key=lambda one: one.stream):
        digest.update(_encode((head.stream, head.n, head.hash.hex())) + b"\n")
    return digest.hexdigest()


def differences(expected: JournalCounts, found: JournalCounts) -> list[str]:
    """What a restored journal does not share with its manifest, as messages; empty if they agree."""
    names = ("events", "streams", "definitions", "latest", "heads")
    pairs = [(name, getattr(expected, name), getattr(found, name)) for name in names]
    return [f"the manifest has {name} {one}, the journal {other}" for name, one, other in pairs if one != other]
