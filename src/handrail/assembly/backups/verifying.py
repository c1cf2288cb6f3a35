"""Verifies a backup by restoring it into a throw-away folder; only a backup that passed this counts as verified."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from handrail.assembly.backups.opening import Access, compared, prove, read_manifest, unpack
from handrail.assembly.backups.register import BackupProof, BackupRegister
from handrail.assembly.backups.shared import at_store, load, proved, throw_away_database
from handrail.domain.backups.manifest import SignedManifest, StoreKind
from handrail.domain.errors import HandrailError, IntegrityBroken, Unavailable
from handrail.domain.journal.chain import Break
from handrail.engine.clock import system_clock
from handrail.engine.proving.audit import AuditResult
from handrail.engine.proving.signature import fingerprint
from handrail.settings import Settings
from handrail.storage.keys import open_public_key


class BackupVerdict(Struct, frozen=True, kw_only=True):
    """What verifying a backup has found."""

    proof: BackupProof
    id: str = ""
    store: str = ""
    made: int = 0
    key: str = ""
    """The fingerprint of the key that signed it."""
    is_own: bool = False
    """Whether that is the key of this home."""
    events: int = 0
    streams: int = 0
    checkpoints: int = 0
    latest: int = 0
    breaks: tuple[Break, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""
    hint: str = ""
    took_ms: int = 0


async def verify_backup(settings: Settings, backup: Path, access: Access) -> BackupVerdict:
    """Restore a backup somewhere and verify it; the result is noted in the register of this home."""
    started = time.monotonic()
    verdict = await _verdict(settings, backup, access)
    verdict = replace(verdict, took_ms=round(1_000 * (time.monotonic() - started)))
    if verdict.id:
        register, reason = BackupRegister(settings.home), verdict.reason
        if any(one.id == verdict.id for one in register.all()):
            register.prove(verdict.id, verdict.proof, at=system_clock(), reason=reason)
    return verdict


async def _verdict(settings: Settings, backup: Path, access: Access) -> BackupVerdict:
    try:
        signed = read_manifest(backup, trusted=access.trusted)
    except IntegrityBroken as error:
        return BackupVerdict(proof=BackupProof.BROKEN, reason=str(error), hint=error.hint)
    manifest = signed.manifest
    own, is_file = open_public_key(settings.keys), manifest.kind is StoreKind.SQLITE
    known = BackupVerdict(
        proof=BackupProof.FAILED,
        id=manifest.id,
        store=manifest.store,
        made=manifest.at,
        key=fingerprint(signed.key),
        is_own=own is not None and own.public == signed.key,
        latest=manifest.journal.latest,
    )
    folder = Path(tempfile.mkdtemp(prefix="handrail-verify-"))  # private: the content may have been encrypted
    try:
        home = folder / "home"
        await asyncio.to_thread(unpack, backup, signed, access, home)
        found = await (prove(home, signed) if is_file else _proved_in_database(settings, home, signed))
    except IntegrityBroken as error:
        return replace(known, proof=BackupProof.BROKEN, reason=str(error), hint=error.hint)
    except HandrailError as error:
        return replace(known, reason=str(error), hint=error.hint)
    except OSError as error:
        failure = Unavailable(
            f"it can't be unpacked: {error.strerror}", hint="make space in the folder for temporary files"
        )
        return replace(known, reason=str(failure), hint=failure.hint)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return replace(
        known,
        proof=BackupProof.VERIFIED if found.ok else BackupProof.BROKEN,
        events=found.events,
        streams=found.streams,
        checkpoints=found.checkpoints,
        breaks=found.breaks,
        notes=found.notes,
        reason=found.first_bad.reason if found.first_bad else "",
    )


async def _proved_in_database(settings: Settings, home: Path, signed: SignedManifest) -> AuditResult:
    async with throw_away_database(settings) as address:
        there = at_store(settings, address)
        await load(there, home)
        return compared(signed, *await proved(there, signed))
