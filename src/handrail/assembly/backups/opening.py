"""Opens a backup: reads its manifest, checks its signature, unpacks its files, and proves what was unpacked.

Used to verify a backup and to restore it: both do exactly the same up to the proof."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from handrail.assembly.backups.taking import DUMP, JOURNAL, MANIFEST
from handrail.domain.backups.manifest import (
    ANOTHER,
    MANIFEST_BYTES_MAX,
    JournalCounts,
    Manifest,
    PartContent,
    SignedManifest,
    StoreKind,
    differences,
    manifest_bytes,
    manifest_from,
)
from handrail.domain.errors import Forbidden, IntegrityBroken, NotFound
from handrail.domain.journal.chain import Break
from handrail.engine.proving.audit import AuditResult, verify
from handrail.engine.proving.signature import fingerprint, holds
from handrail.foundation.atomic_file import make_private_folder
from handrail.foundation.open_flags import BINARY
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.storage.backups import home_files
from handrail.storage.backups.encryption import key_of, read_passphrase
from handrail.storage.backups.packing import require_unchanged, unpacked
from handrail.storage.backups.sqlite_copy import counts_of
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.keys import PublicKey
from handrail.storage.sqlite.store import SqliteStore

BACKUP: Final = "backup"
"""The `stream` of a break that concerns the backup as a whole."""


class Access(Struct, frozen=True, kw_only=True):
    """What opens a backup, and which key it has to be signed with."""

    passphrase_file: Path | None = None
    key_file: Path | None = None
    keys: Path | None = None
    """Where the file with the keys is, if it is not with the backup."""
    trusted: str = ""
    """The fingerprint of the key that must have signed; empty: any."""


def read_manifest(backup: Path, *, trusted: str = "") -> SignedManifest:
    """The manifest of a backup; IntegrityBroken if its signature does not hold."""
    try:
        signed = manifest_from(read_plain(backup / MANIFEST, bytes_max=MANIFEST_BYTES_MAX))
    except (FileNotFoundError, NotADirectoryError, NotPlain) as error:
        raise NotFound(
            f"{backup} is not a backup: it has no {MANIFEST}", hint="name the folder that `handrail db backup` made"
        ) from error
    if not holds(signed.key, manifest_bytes(signed.manifest), signed.signature):
        raise IntegrityBroken("the signature of the manifest is invalid: it was edited", hint=ANOTHER)
    if trusted and fingerprint(signed.key) != trusted:
        raise IntegrityBroken(f"the backup is signed by another key: {fingerprint(signed.key)}", hint=ANOTHER)
    return signed


def unpack(backup: Path, signed: SignedManifest, access: Access, home: Path) -> bool:
    """Unpack a backup into a folder that becomes a home; whether its keys are there, too."""
    manifest = signed.manifest
    secret = _secret(manifest, access)
    journal = manifest.part(PartContent.JOURNAL)
    assert journal is not None, "manifest_from() refuses one without a journal"  # noqa: S101
    make_private_folder(home)
    # By the signed digest, before a byte is unpacked: what is unpacked comes from a disk that others may write to.
    require_unchanged(backup / journal.name, journal)
    content = unpacked(backup / journal.name, journal, key=secret)
    if manifest.kind is StoreKind.SQLITE:
        _write(home / JOURNAL, content)
    else:
        home_files.extract(content, home / DUMP)
    if (rest := manifest.part(PartContent.HOME)) is not None:
        home_files.extract(unpacked(backup / rest.name, rest, key=secret), home)
    keys = manifest.part(PartContent.KEYS)
    where = access.keys or (backup / keys.name if keys else None)
    if keys is None or where is None or not where.exists():
        return False
    home_files.extract(unpacked(where, keys, key=secret), home)
    return True


def _write(path: Path, chunks: Iterator[bytes]) -> None:
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | BINARY, 0o600)
    with os.fdopen(file, "wb") as opened:
        for chunk in chunks:
            opened.write(chunk)
        opened.flush()
        os.fsync(file)


async def prove(home: Path, signed: SignedManifest) -> AuditResult:
    """Verify an unpacked backup: its file, every chain, the signed log, all runs replayed, and its manifest."""
    journal = home / JOURNAL
    counts = counts_of(journal)
    key = PublicKey(bytes.fromhex(signed.key))
    log = CheckpointFile(home / home_files.CHECKPOINTS)
    async with await SqliteStore.open_migrated(journal) as store:
        # With the key of the manifest, so that a backup can be verified where the home and its keys are lost.
        verdict = await verify(store, log, key, replay=True)
    return compared(signed, verdict, counts)


def compared(signed: SignedManifest, verdict: AuditResult, counts: JournalCounts) -> AuditResult:
    """What was found in an unpacked journal, with everything in which it differs from its manifest."""
    reasons = differences(signed.manifest.journal, counts)
    if verdict.checkpoints != signed.manifest.checkpoints:
        reasons.append(f"the manifest has {signed.manifest.checkpoints} checkpoints, the log {verdict.checkpoints}")
    breaks = (*(Break(BACKUP, 0, reason) for reason in reasons), *verdict.breaks)
    return AuditResult(
        ok=not breaks,
        events=verdict.events,
        streams=verdict.streams,
        checkpoints=verdict.checkpoints,
        signed_events=verdict.signed_events,
        breaks=breaks,
        first_bad=breaks[0] if breaks else None,
        notes=verdict.notes,
    )


def _secret(manifest: Manifest, access: Access) -> bytes | None:
    if manifest.encryption is None:
        if access.passphrase_file or access.key_file:
            raise Forbidden("the backup is not encrypted", hint="leave the passphrase and the key out")
        return None
    passphrase = read_passphrase(access.passphrase_file) if access.passphrase_file else ""
    return key_of(manifest.encryption, passphrase=passphrase, key_file=access.key_file)
