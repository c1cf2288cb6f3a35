"""Makes a backup: a folder with the journal, the other files of the home, the keys, and a signed manifest.

Others go on writing meanwhile. The checkpoints are read before the journal, so that everything they cover is in it; the
files that an undo needs are read after it, because they are written before the event that names them."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.assembly.backups.register import BackupRegister, KnownBackup
from handrail.assembly.stores import is_shared, postgres_dump
from handrail.domain.backups.manifest import (
    BackupPart,
    JournalCounts,
    Manifest,
    PartContent,
    SignedManifest,
    StoreKind,
    manifest_bytes,
    signed_bytes,
)
from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import NotFound, Unavailable
from handrail.domain.journal.chain import Record
from handrail.domain.journal.checkpoint import checkpoint_from
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import STORE_STREAM
from handrail.domain.journal.store_event import StoreCreated
from handrail.engine.clock import system_clock
from handrail.foundation.atomic_file import make_private_folder, sync_folder, write_whole
from handrail.settings import Settings
from handrail.storage.backups import home_files
from handrail.storage.backups.encryption import KEY_BYTES, encrypted_for
from handrail.storage.backups.packing import Packer, chunks_of, packed
from handrail.storage.backups.sqlite_copy import copy_of, counts_of, first_record
from handrail.storage.checkpoint_log import LOG_FILE
from handrail.storage.keys import PrivateKey, open_key

MANIFEST: Final = "manifest.json"
PREFIX: Final = "handrail-"
ENCRYPTED: Final = ".sealed"
JOURNAL: Final = "journal.db"
DUMP: Final = "dump"

CheckpointFiles: TypeAlias = tuple[list[tuple[str, bytes]], int]
"""The files of the checkpoint log by name, and the number of the newest checkpoint."""


class BackupRequest(Struct, frozen=True, kw_only=True):
    """Where a backup goes, and who can read it: everyone with the files, unless it is encrypted."""

    target: Path
    passphrase: str = ""
    recipients: Sequence[str] = ()


class MadeBackup(Struct, frozen=True):
    """A finished backup."""

    folder: Path
    manifest: Manifest
    key: str
    """The public key that signed it."""


class JournalCopy(Struct, frozen=True):
    """A consistent copy of the journal, before it is packed: a file, or a folder with a dump."""

    path: Path
    kind: StoreKind
    schema: int
    counts: JournalCounts
    store: str
    checkpoints: int | None = None
    """The number of its newest checkpoint, if the checkpoints are in it, too."""


async def make_backup(settings: Settings, request: BackupRequest) -> MadeBackup:
    """Back up a home while others use it."""
    if not is_shared(settings) and not settings.journal.exists():
        raise NotFound("this home has no journal", hint="name the home: `handrail --home FOLDER db backup ...`")
    key = open_key(settings.keys, has_checkpoints=True)
    at = system_clock()
    made = await _made(settings, request, key, at)
    known = KnownBackup(id=made.manifest.id, folder=str(made.folder), at=at, events=made.manifest.journal.events)
    await asyncio.to_thread(BackupRegister(settings.home).add, known)
    return made


async def _made(settings: Settings, request: BackupRequest, signer: PrivateKey, at: int) -> MadeBackup:
    name = f"{datetime.fromtimestamp(at // 1_000, UTC):%Y%m%dT%H%M%SZ}-{os.urandom(4).hex()}"
    folder = _absolute(request.target) / f"{PREFIX}{name}"
    work = folder.with_name(f".{folder.name}.part")
    try:
        try:
            log = await asyncio.to_thread(_started, settings, work)
            copy = await (
                _dumped(settings, work) if is_shared(settings) else asyncio.to_thread(_copied, settings, work)
            )
            manifest = await asyncio.to_thread(_packed, settings, request, work, (name, at), copy, log)
            signed = SignedManifest(
                manifest=manifest, key=signer.public, signature=signer.sign(manifest_bytes(manifest)).hex()
            )
            await asyncio.to_thread(_finished, work, signed, folder)
        except BaseException:  # also when the process is asked to stop: half a backup must not stay
            shutil.rmtree(work, ignore_errors=True)
            raise
    except OSError as error:
        raise Unavailable(
            f"the backup can't be written to {request.target}: {error.strerror}",
            hint="check that the folder is writable and its disk has space for twice the journal; no backup was made",
        ) from error
    return MadeBackup(folder, manifest, signer.public)


def _absolute(target: Path) -> Path:
    return target.absolute()


def _started(settings: Settings, work: Path) -> CheckpointFiles:
    make_private_folder(work)
    return _checkpoints(settings)


def _finished(work: Path, signed: SignedManifest, folder: Path) -> None:
    write_whole(work / MANIFEST, signed_bytes(signed), takes_turns=True)
    # The name comes last: a folder with this name is a whole backup, whatever happens before.
    work.rename(folder)
    sync_folder(folder.parent)


def _copied(settings: Settings, work: Path) -> JournalCopy:
    """A consistent copy of a journal in a file."""
    copy = work / JOURNAL
    schema = copy_of(settings.journal, copy, busy_ms=duration_ms(settings.choices.busy))
    return JournalCopy(copy, StoreKind.SQLITE, schema, counts_of(copy), store_id_of(copy))


async def _dumped(settings: Settings, work: Path) -> JournalCopy:
    """A consistent dump of a journal in PostgreSQL."""
    folder = work / DUMP
    await asyncio.to_thread(make_private_folder, folder)
    dumped = await postgres_dump(settings).dump(folder)
    store = _id_in(dumped.first)
    return JournalCopy(folder, StoreKind.POSTGRESQL, dumped.schema, dumped.counts, store, dumped.checkpoints)


def _packed(
    settings: Settings,
    request: BackupRequest,
    work: Path,
    named: tuple[str, int],
    copy: JournalCopy,
    log: CheckpointFiles,
) -> Manifest:
    """Write the files of a backup; what its manifest says about them."""
    secret = os.urandom(KEY_BYTES)
    encryption = encrypted_for(secret, passphrase=request.passphrase, recipients=request.recipients)
    key, suffix = (secret, ENCRYPTED) if encryption else (None, "")
    journal = _journal_part(work, copy, suffix, key)
    name, at = named
    files, newest = log
    return Manifest(
        id=name,
        store=copy.store,
        kind=copy.kind,
        schema=copy.schema,
        handrail=version("handrail"),
        at=at,
        journal=copy.counts,
        checkpoints=newest if copy.checkpoints is None else copy.checkpoints,
        parts=(
            journal,
            _home_part(settings, request, work, f"home.tar.gz{suffix}", key, also=files),
            _home_part(settings, request, work, f"keys.tar.gz{suffix}", key, also=None),
        ),
        encryption=encryption,
    )


def _journal_part(work: Path, copy: JournalCopy, suffix: str, key: bytes | None) -> BackupPart:
    """Pack the copy of the journal, and remove it."""
    if copy.kind is StoreKind.SQLITE:
        part = packed(work, PartContent.JOURNAL, f"{JOURNAL}.gz{suffix}", chunks_of(copy.path), key=key)
        copy.path.unlink()
        return part
    packer = Packer(work, PartContent.JOURNAL, f"journal.tar.gz{suffix}", key=key)
    try:
        home_files.archive_folder(packer, copy.path)
        part = packer.finish()
    finally:
        packer.close()
    shutil.rmtree(copy.path)
    return part


def _checkpoints(settings: Settings) -> CheckpointFiles:
    """The files of the checkpoint log, and the number of the newest checkpoint."""
    files = [
        (file.relative_to(settings.home).as_posix(), file.read_bytes())
        for file in home_files.files_below(settings.home, [home_files.CHECKPOINTS])
    ]
    name, newest = f"{home_files.CHECKPOINTS}/{LOG_FILE}", 0
    for place, (file, content) in enumerate(files):
        if file == name:
            # A line that another process is just writing is cut off: it is not acknowledged yet.
            files[place] = (file, whole := content[: content.rfind(b"\n") + 1])
            newest = checkpoint_from(whole.splitlines(keepends=True)[-1]).checkpoint.number if whole else 0
    return files, newest


def store_id_of(journal: Path) -> str:
    """The id of the store in a file; empty if it has none."""
    return _id_in(first_record(journal, STORE_STREAM))


def _id_in(record: Record | None) -> str:
    event = entry_of(record).event if record else None
    return event.store if isinstance(event, StoreCreated) else ""


def _home_part(
    settings: Settings,
    request: BackupRequest,
    work: Path,
    name: str,
    key: bytes | None,
    *,
    also: list[tuple[str, bytes]] | None,
) -> BackupPart:
    """The keys of a home, or (with the checkpoints in `also`) everything else."""
    home, inside = settings.home, request.target.absolute()
    names = home_files.names_of(home, keys=also is None)
    # A target inside the home must not be backed up into itself.
    files = [file for file in home_files.files_below(home, names) if not file.is_relative_to(inside)]
    packer = Packer(work, PartContent.KEYS if also is None else PartContent.HOME, name, key=key)
    try:
        home_files.archive(packer, home, files, also=also or ())
        return packer.finish()
    finally:
        packer.close()
