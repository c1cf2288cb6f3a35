"""Salvages a damaged journal: every stream that can still be proved goes into a new home, and what is lost is named.

The damaged file is only read. The new journal is accepted as what it is, by the operator who asked for it: that is an
event, with what was lost, and its checkpoint log starts again."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from handrail.assembly.backups.restoring import fresh_work, put_home, require_new_home
from handrail.assembly.backups.taking import JOURNAL
from handrail.domain.errors import IntegrityBroken, Unavailable
from handrail.domain.journal.archive_file import content_of
from handrail.domain.journal.archived import ARCHIVES
from handrail.domain.journal.chain import Head, body_digest
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import STORE_STREAM
from handrail.domain.journal.salvage import FoundEvent, LostStream, SalvageResult, salvaged
from handrail.domain.journal.store_event import PayloadErased
from handrail.domain.plural import plural
from handrail.engine.clock import system_clock, system_entropy
from handrail.engine.proving import store_facts
from handrail.engine.proving.audit import verify
from handrail.engine.proving.checkpointer import Checkpointer
from handrail.engine.proving.projection_repair import rebuild
from handrail.engine.reading.ledger import event_view
from handrail.engine.record_writer import RecordWriter
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.storage.archives.archive_folder import ArchiveFolder
from handrail.storage.backups import home_files
from handrail.storage.backups.damaged import DamagedJournal, read_damaged
from handrail.storage.backups.sqlite_copy import write_journal
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.keys import KEY_FILE, open_key
from handrail.storage.sqlite.store import SqliteStore

PARTIAL: Final = "salvaged"
"""The folder in the new home with the beginnings of streams that are not whole, to read."""
NAMED_MAX: Final = 20


class SalvageReport(Struct, frozen=True):
    """What was brought out of a damaged file, and what was not."""

    home: Path
    events: int
    streams: int
    definitions: int
    lost: tuple[LostStream, ...]


async def salvage_journal(journal: Path, home: Path, *, reason: str, actor: str) -> SalvageReport:
    """Bring everything that can be proved out of a damaged journal into a new home."""
    require_new_home(home)
    damaged = await asyncio.to_thread(_with_archives, await asyncio.to_thread(read_damaged, journal), journal)
    log = CheckpointFile(journal.parent / home_files.CHECKPOINTS)
    found = salvaged(
        damaged.events, ends=await _signed_ends(log), rows=damaged.rows, definitions=frozenset(damaged.definitions)
    )
    if not found.whole:
        raise IntegrityBroken("no stream of this file can be proved", hint="restore a backup: `handrail db restore`")
    try:
        work = await asyncio.to_thread(fresh_work, home)
        try:
            await asyncio.to_thread(_write, journal.parent, work, found, damaged)
            await _accept(work, found, reason=reason, actor=actor)
            await asyncio.to_thread(put_home, work, home)
        finally:
            await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)
    except OSError as error:
        raise Unavailable(
            f"{home} can't be written: {error.strerror}", hint="check the folder and its disk; nothing was changed"
        ) from error
    events = sum(len(events) for events in found.whole.values())
    return SalvageReport(home, events, len(found.whole), len(damaged.definitions), found.lost)


def _with_archives(damaged: DamagedJournal, journal: Path) -> DamagedJournal:
    """The same, with the runs of all archives that are intact: in the new journal they are not archived."""
    folder, events, definitions = ArchiveFolder.beside(journal), list(damaged.events), dict(damaged.definitions)
    for archive in folder.names():
        try:
            content = content_of(folder.read(archive), archive)
        except IntegrityBroken:
            continue  # its runs are reported as lost: their rows say that there were some
        events += [FoundEvent(one.place, one.record) for run in content.runs.values() for one in run]
        definitions |= content.definitions
    return replace(damaged, events=events, definitions=definitions)


async def _signed_ends(log: CheckpointFile) -> list[Head]:
    """The ends of streams that checkpoints have signed; of a damaged log, those before the damage."""
    ends: dict[str, Head] = {}
    try:
        async for sealed in log.all():
            for stream, n, digest in sealed.checkpoint.heads:
                ends[stream] = Head(stream, n, bytes.fromhex(digest))
    except (IntegrityBroken, ValueError):
        pass  # what is signed later is unknown then, not lost
    return list(ends.values())


def _write(old: Path, work: Path, found: SalvageResult, damaged: DamagedJournal) -> None:
    """Write the new home: the files of the old one, the journal, and the beginnings of streams that are not whole."""
    make_private_folder(work)
    names = [name for keys in (False, True) for name in home_files.names_of(old, keys=keys)] if _is_home(old) else []
    names = [name for name in names if name != ARCHIVES]
    for file in home_files.files_below(old, [*names, home_files.CHECKPOINTS]):
        copy = work / file.relative_to(old)
        make_private_folder(copy.parent)
        shutil.copy2(file, copy)
    write_journal(work / JOURNAL, (one.record for one in found.in_order()), damaged.definitions.items())
    for number, (stream, events) in enumerate(sorted(found.partial.items()), 1):
        make_private_folder(work / PARTIAL)
        lines = [msgspec.json.encode(event_view(one.record)) + b"\n" for one in events]
        name = "".join(letter if letter.isalnum() or letter in "_-" else "-" for letter in stream)[:100]
        write_whole(work / PARTIAL / f"{number:04d}-{name}.jsonl", b"".join(lines), is_synced=False)


def _is_home(folder: Path) -> bool:
    """Whether a damaged file is in its home: a copy elsewhere must not bring its neighbours along."""
    return (folder / "keys" / KEY_FILE).exists()


async def _accept(home: Path, found: SalvageResult, *, reason: str, actor: str) -> None:
    """Rebuild the rows, record what was lost, sign all of it again, and verify it."""
    record_writer = RecordWriter(system_clock, system_entropy)
    key = open_key(home / "keys", has_checkpoints=False)
    log = CheckpointFile(home / home_files.CHECKPOINTS)
    async with await SqliteStore.open(home / JOURNAL) as store:
        await store_facts.create(store, record_writer, key=key.public)
        await rebuild(store)
        await store_facts.salvaged(
            store, record_writer, _notes_missing(found), reason=reason, found=_lost_text(found.lost), actor=actor
        )
        await Checkpointer(store, log, key, record_writer.clock).seal(restart=True)
        verdict = await verify(store, log, key, replay=True)
    if verdict.first_bad is not None:
        raise IntegrityBroken(
            f"the salvaged journal does not verify: {verdict.first_bad.reason}",
            hint="report this; the damaged file is as it was",
        )


def _notes_missing(found: SalvageResult) -> list[PayloadErased]:
    """Notes for erased events whose own are lost with the store's stream."""
    entries = [entry_of(one.record).event for one in found.whole.get(STORE_STREAM, ())]
    noted = {(event.stream, event.event) for event in entries if isinstance(event, PayloadErased)}
    return [
        PayloadErased(
            stream=one.record.stream,
            event=one.record.n,
            digest=one.record.erased.hex(),
            residue=body_digest(b"", one.record.body).hex(),
            reason="erased before the journal was damaged; the note about it is lost",
        )
        for one in found.in_order()
        if one.record.erased is not None and (one.record.stream, one.record.n) not in noted
    ]


def _lost_text(lost: Sequence[LostStream]) -> str:
    if not lost:
        return "a damaged file; no stream is lost"
    named = [f"{one.stream} ({one.reason})" for one in lost[:NAMED_MAX]]
    more = [f"and {len(lost) - NAMED_MAX} more"] if len(lost) > NAMED_MAX else []
    return f"a damaged file; {plural(len(lost), 'stream')} lost: " + "; ".join([*named, *more])
