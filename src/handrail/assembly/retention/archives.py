"""Archives of a home: opened for the commands and the schedule, one process at a time; and listed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from handrail.assembly.opening import OpenStore, StoreReader, open_store
from handrail.domain.errors import Invalid, Unavailable
from handrail.domain.journal.archived import Tombstone
from handrail.domain.journal.event import STORE_STREAM, Entry
from handrail.domain.journal.projection import RunRow
from handrail.domain.journal.store_event import ArchivedRunsDeleted, RunsArchived
from handrail.domain.retention.rules import RetentionRule, RetentionRules, is_due, outcomes, require_sensible
from handrail.domain.suggestion import did_you_mean
from handrail.engine.proving.projection_repair import WholeStore
from handrail.engine.retention.archiving import Archiver
from handrail.engine.stream_pages import PAGE, entries_of, tombstones_of
from handrail.settings import Settings
from handrail.storage.archives.archive_folder import ArchiveFolder
from handrail.storage.file_lock import locked

TABLE: Final = "retention"
LOCK: Final = "archive.lock"
LOCK_WAIT_S: Final = 10.0


class ArchivedLine(Struct, frozen=True, kw_only=True):
    """An archived run in a list."""

    run: str
    workflow: str
    status: str
    started: int
    ended: int | None
    events: int
    project: str
    archive: str
    """The archive that has its events; empty if they were deleted."""
    file: str
    """Where that is."""
    archived: int = 0
    """When it was archived."""
    reason: str = ""
    deleted: int = 0
    """When it was deleted; 0 if it was not."""
    deleted_by: str = ""
    deleted_because: str = ""


class ArchivedIn(Struct, frozen=True):
    """The archive that a run is in, and its file."""

    archive: str
    file: str


@dataclass(frozen=True)
class OpenArchives:
    """The archives of a store that is open for writing; no other process of this home changes them meanwhile."""

    opened: OpenStore
    archiver: Archiver


def rules_of(settings: Settings) -> RetentionRules | None:
    """The rules of a home; None if it has none. Invalid says what is wrong with them."""
    table: Any = settings.home_tables.get(TABLE)
    if table is None:
        return None
    _require_known(table, RetentionRules, "[retention]")
    for rule in table.get("rules", ()):
        if isinstance(rule, dict):
            _require_known(rule, RetentionRule, "[[retention.rules]]")
    try:
        rules = msgspec.convert(table, RetentionRules)
        require_sensible(rules)
    except msgspec.ValidationError as error:
        raise Invalid(f"config.toml: [retention]: {error}", hint='write: archive_after = "90d"') from error
    except Invalid as error:
        raise Invalid(f"config.toml: {error}", hint=error.hint) from error
    return rules


@asynccontextmanager
async def open_archives(settings: Settings, *, wait_s: float = LOCK_WAIT_S) -> AsyncIterator[OpenArchives]:
    """Open the archives of a home; what a killed process has left of an archive is removed first."""
    async with open_store(settings) as opened:
        with archives_locked(settings.home, wait_s=wait_s):
            yield OpenArchives(opened, await archiver_of(opened))


@asynccontextmanager
async def archives_of(settings: Settings, opened: OpenStore, *, wait_s: float = 0) -> AsyncIterator[OpenArchives]:
    """The same over a store that is open already."""
    with archives_locked(settings.home, wait_s=wait_s):
        yield OpenArchives(opened, await archiver_of(opened))


@contextmanager
def archives_locked(home: Path, *, wait_s: float) -> Iterator[None]:
    """Let no other process of this home change its archives."""
    with ExitStack() as held:
        try:
            held.enter_context(locked(home / LOCK, wait_s=wait_s))
        except Unavailable as error:
            hint = "wait until it has ended, then repeat this"
            raise Unavailable("another process is archiving", hint=hint) from error
        yield


async def archiver_of(opened: OpenStore) -> Archiver:
    """What archives the runs of an open store."""
    archiver = Archiver(
        opened.store, opened.record_writer, opened.checkpointer.signer, opened.journal.checkpointer.seal
    )
    await archiver.tidy()
    return archiver


async def due_runs(store: WholeStore, rules: RetentionRules, *, now: int) -> list[RunRow]:
    """The runs that the rules archive now, oldest end first."""
    gone = {stone.stream async for stone in tombstones_of(store)}
    found = [row async for row in _ended(store) if row.id not in gone and is_due(rules, row, now=now)]
    return sorted(found, key=lambda row: (row.ended or 0, row.id))


async def archived_lines(look: StoreReader) -> list[ArchivedLine]:
    """All archived runs as a list shows them, the latest end first."""
    store = look.store
    entries = await entries_of(store, STORE_STREAM)
    noted, deleted = _notes(entries)
    folder = ArchiveFolder.beside(look.settings.journal)
    found = []
    async for stone in tombstones_of(store):
        row = await store.run(stone.stream)
        if row is not None:
            found.append(_line(stone, row, noted.get(row.id), deleted.get(row.id), folder))
    return sorted(found, key=lambda line: (-(line.ended or 0), line.run))


def _notes(entries: Iterable[Entry]) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """By run, the last event that archived it, and the one that deleted it."""
    noted, deleted = dict[str, Entry](), dict[str, Entry]()
    for entry in entries:
        match entry.event:
            case RunsArchived(runs=runs):
                noted |= {one.run: entry for one in runs}
            case ArchivedRunsDeleted(runs=gone):
                deleted |= dict.fromkeys(gone, entry)
            case _:
                pass
    return noted, deleted


def _line(
    stone: Tombstone, row: RunRow, noted: Entry | None, deleted: Entry | None, folder: ArchiveFolder
) -> ArchivedLine:
    line = ArchivedLine(
        run=row.id,
        workflow=row.workflow,
        status=row.status,
        started=row.started,
        ended=row.ended,
        events=stone.n,
        project=row.project,
        archive=stone.archive,
        file=str(folder.path(stone.archive)) if stone.archive else "",
    )
    if noted is not None and isinstance(noted.event, RunsArchived):
        line = replace(line, archived=noted.at, reason=noted.event.reason)
    if deleted is not None and isinstance(deleted.event, ArchivedRunsDeleted) and not stone.archive:
        because = deleted.event.reason
        line = replace(line, deleted=deleted.at, deleted_by=deleted.actor, deleted_because=because)
    return line


async def _ended(store: WholeStore) -> AsyncIterator[RunRow]:
    after, wanted = "", [status.value for status in outcomes()]
    while rows := await store.runs(status=wanted, after=after, limit=PAGE):
        for row in rows:
            yield row
        after = rows[-1].id


def _require_known(table: dict[str, Any], shape: type[Struct], named: str) -> None:
    known = sorted(shape.__struct_fields__)
    for name in sorted(table.keys() - set(known)):
        raise Invalid(f"config.toml: {named} has no key `{name}`", hint=did_you_mean(name, known))


async def archived_in(look: StoreReader, run: str) -> ArchivedIn | None:
    """Where a run is archived; None if its events are in the journal."""
    stone = await look.store.archives().tombstone(run)
    if stone is None or not stone.archive:
        return None
    return ArchivedIn(stone.archive, str(ArchiveFolder.beside(look.settings.journal).path(stone.archive)))
