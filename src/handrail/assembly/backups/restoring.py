"""Restores a backup into a new home, whole or up to an earlier event or instant.

Everything happens in a folder beside the new home, which gets its name at the end: a restore that fails or is killed
leaves no home. What is restored is verified first. That a journal was restored becomes an event of it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Final

from msgspec import Struct

from handrail.assembly.backups.opening import Access, compared, prove, read_manifest, unpack
from handrail.assembly.backups.shared import at_store, load, mark_restored, proved, require_server
from handrail.assembly.backups.taking import JOURNAL
from handrail.domain.backups.manifest import Manifest, SignedManifest, StoreKind
from handrail.domain.backups.moment import AtEvent, AtInstant, moment_from
from handrail.domain.errors import Conflict, IntegrityBroken, Invalid, NotFound, Unavailable
from handrail.domain.journal.checkpoint import checkpoint_from
from handrail.domain.journal.event import STORE_STREAM, Entry
from handrail.domain.journal.store_event import PayloadErased, RunsArchived, StoreRestored
from handrail.engine.clock import system_clock, system_entropy
from handrail.engine.proving import store_facts
from handrail.engine.proving.audit import AuditResult
from handrail.engine.proving.checkpointer import Checkpointer
from handrail.engine.proving.projection_repair import WholeStore, rebuild
from handrail.engine.record_writer import RecordWriter
from handrail.engine.retention.archiving import Archiver
from handrail.engine.stream_pages import entries_of, tombstones_of
from handrail.foundation.atomic_file import make_private_folder, sync_folder, write_whole
from handrail.settings import Settings
from handrail.storage.backups import home_files
from handrail.storage.backups.sqlite_copy import cut_copy, erased_in, place_of, place_until
from handrail.storage.checkpoint_log import LOG_FILE, CheckpointFile
from handrail.storage.keys import open_key
from handrail.storage.sqlite.store import SqliteStore

LOGS: Final = "logs"
"""What a home may contain that is not one yet: the command that restores logs into it."""


class Restored(Struct, frozen=True):
    """A restored home."""

    home: Path
    manifest: Manifest
    events: int
    """How many events of the backup were restored."""
    has_keys: bool


async def restore_backup(
    backup: Path, home: Path, access: Access, *, until: str = "", actor: str, settings: Settings | None = None
) -> Restored:
    """Restore a backup into a home that does not exist yet; `settings` name the server, if the journal was on one."""
    moment = moment_from(until) if until else None
    require_new_home(home)
    signed = read_manifest(backup, trusted=access.trusted)
    is_file = signed.manifest.kind is StoreKind.SQLITE
    if not is_file and moment is not None:
        raise Invalid(
            "an earlier moment can be restored only of a journal in a file",
            hint="restore all of it; PostgreSQL itself has point-in-time recovery",
        )
    try:
        work = await asyncio.to_thread(fresh_work, home)
        try:
            has_keys = await asyncio.to_thread(unpack, backup, signed, access, work)
            if is_file:
                events = await _restored_file(work, signed, moment, until=until, has_keys=has_keys, actor=actor)
            else:
                there = at_store(_required(settings), require_server(_required(settings)), work)
                await load(there, work)
                events = _intact(compared(signed, *await proved(there, signed)))
                event = StoreRestored(backup=signed.manifest.id, made=signed.manifest.at, events=events)
                await mark_restored(there, event, has_keys=has_keys, actor=actor)
            await asyncio.to_thread(put_home, work, home)
        finally:
            await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)
    except OSError as error:
        raise Unavailable(
            f"the backup can't be restored to {home}: {error.strerror}",
            hint="check that the folder is writable and its disk has space; nothing was restored",
        ) from error
    return Restored(home, signed.manifest, events, has_keys)


async def _restored_file(
    work: Path, signed: SignedManifest, moment: AtEvent | AtInstant | None, *, until: str, has_keys: bool, actor: str
) -> int:
    """Prove an unpacked journal in a file, cut it where it has to end, and mark it; how many events were restored."""
    # Before anything gets the name of a home: a broken backup must not become one that somebody starts to use.
    events, notes = _intact(await prove(work, signed)), list[PayloadErased]()
    if moment is not None:
        await _bring_back(work / JOURNAL, moment, actor=actor)
        events = await asyncio.to_thread(_place, work / JOURNAL, moment)
        # An erasure after that moment has erased content that is in the cut: its note goes with it, or `verify`
        # would report the content as changed.
        notes = await _cut(work, events)
    event = StoreRestored(backup=signed.manifest.id, made=signed.manifest.at, events=events, until=until)
    await _mark(work, event, notes, has_keys=has_keys, actor=actor, rebuilds=moment is not None)
    return events


def _intact(found: AuditResult) -> int:
    """How many events were found; IntegrityBroken if anything is wrong with them."""
    if found.first_bad is not None:
        raise IntegrityBroken(f"the backup is broken: {found.first_bad.reason}", hint="use another backup")
    return found.events


def _required(settings: Settings | None) -> Settings:
    if settings is None:
        raise Unavailable("no server is named", hint="set HANDRAIL_STORE to an empty database")
    return settings


def fresh_work(home: Path) -> Path:
    """The folder in which a home is restored, without what a restore that was killed has left there."""
    work = home.absolute().with_name(f".{home.name}.part")
    if work.exists():
        shutil.rmtree(work)
    return work


def require_new_home(home: Path) -> None:
    """Refuse a folder that may be a home already."""
    if home.is_dir() and not {entry.name for entry in home.iterdir()} - {LOGS}:
        return
    if home.exists() or home.is_symlink():
        raise Conflict(
            f"{home} exists: a backup is restored into a new home only",
            hint="name a new folder, then set HANDRAIL_HOME to it; or move the old home out of the way first",
        )


def _place(journal: Path, moment: AtEvent | AtInstant) -> int:
    """The position of the last event that is restored."""
    if isinstance(moment, AtEvent):
        place = place_of(journal, moment.stream, moment.n)
        if place is None:
            raise NotFound(
                f"the backup has no event {moment.n} of {moment.stream}", hint="`handrail journal show RUN` lists them"
            )
        return place
    place = place_until(journal, moment.at)
    if not place:
        raise NotFound("the backup has no event up to that instant", hint="name a later one")
    return place


async def _bring_back(journal: Path, moment: AtEvent | AtInstant, *, actor: str) -> None:
    """Put the runs back that were archived after a moment: before it, their events were in the journal."""
    place = await asyncio.to_thread(_place, journal, moment) if isinstance(moment, AtEvent) else 0
    async with await SqliteStore.open(journal) as store:
        later = set[str]()
        for entry in await entries_of(store, STORE_STREAM):
            if isinstance(entry.event, RunsArchived):
                is_later = await asyncio.to_thread(_is_later, journal, entry, moment, place)
                runs = {one.run for one in entry.event.runs}
                # Archived, brought back and archived again: the last time counts.
                later = later | runs if is_later else later - runs
        late = [stone.stream async for stone in tombstones_of(store) if stone.stream in later]
        record_writer = RecordWriter(system_clock, system_entropy)
        # The event about this comes after the moment, so that the cut removes it.
        if late:
            await Archiver(store, record_writer).unarchive(late, reason="restored up to an earlier moment", actor=actor)


def _is_later(journal: Path, entry: Entry, moment: AtEvent | AtInstant, place: int) -> bool:
    """Whether an event of the store comes after a moment, which for an event is a place."""
    if isinstance(moment, AtInstant):
        return entry.at > moment.at
    return (place_of(journal, STORE_STREAM, entry.n) or 0) > place


async def _cut(home: Path, events: int) -> list[PayloadErased]:
    """Leave only the first events in a home, and the checkpoints of those; the erasures whose notes are cut off."""
    whole, cut = home / JOURNAL, home / f"{JOURNAL}.cut"
    async with await SqliteStore.open_migrated(whole) as store:
        entries = await entries_of(store, STORE_STREAM)
    await asyncio.to_thread(cut_copy, whole, cut, until=events)
    erased = await asyncio.to_thread(erased_in, cut)
    async with await SqliteStore.open(cut) as store:
        known = len(await store.read(STORE_STREAM))
    notes = [
        entry.event
        for entry in entries[known:]
        if isinstance(entry.event, PayloadErased) and (entry.event.stream, entry.event.event) in erased
    ]
    await asyncio.to_thread(cut.replace, whole)
    await asyncio.to_thread(_cut_log, home / home_files.CHECKPOINTS / LOG_FILE, events)
    return notes


def _cut_log(log: Path, events: int) -> None:
    if log.exists():
        lines = log.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if checkpoint_from(line).checkpoint.events <= events]
        write_whole(log, b"".join(kept), takes_turns=True)


async def _mark(
    home: Path, event: StoreRestored, notes: list[PayloadErased], *, has_keys: bool, actor: str, rebuilds: bool
) -> None:
    """Write that the journal was restored, and sign it if the key is there."""
    record_writer = RecordWriter(system_clock, system_entropy)
    log = CheckpointFile(home / home_files.CHECKPOINTS)
    async with await SqliteStore.open(home / JOURNAL) as store:
        if rebuilds:
            await rebuild(store)
        await store_facts.restored(store, record_writer, event, notes, actor=actor)
        if has_keys:
            await _seal(home, store, log, record_writer)


async def _seal(home: Path, store: WholeStore, log: CheckpointFile, record_writer: RecordWriter) -> None:
    key = open_key(home / "keys", has_checkpoints=True)
    checkpointer = Checkpointer(store, log, key, record_writer.clock)
    if breaks := await checkpointer.compare():
        raise IntegrityBroken(f"the restored journal differs from its checkpoints: {breaks[0].reason}")
    await checkpointer.seal()


def put_home(work: Path, home: Path) -> None:
    """Give the restored home its name; the journal comes last, if its entries have to be moved one by one."""
    if not home.exists():
        make_private_folder(home.absolute().parent)
        work.rename(home)
    else:
        for entry in sorted(work.iterdir(), key=lambda one: one.name == JOURNAL):
            entry.rename(home / entry.name)
    sync_folder(home.absolute().parent)
