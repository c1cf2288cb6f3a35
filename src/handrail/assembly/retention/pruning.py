"""Pruning: what the rules of a home do now, planned without doing it, and done. Nothing is deleted by it that is not
superfluous: archives that no run needs, and kept contents of runs that are deleted or unknown."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.assembly.opening import OpenStore, open_reader
from handrail.assembly.people import policy_of
from handrail.assembly.retention.archives import due_runs, rules_of
from handrail.assembly.retention.archives import open_archives as opened_archives
from handrail.domain.errors import HandrailError, Invalid
from handrail.domain.retention.rules import RetentionRules
from handrail.engine.clock import steady_clock, system_clock
from handrail.engine.dispatch import Dispatch
from handrail.engine.journal import Journal
from handrail.engine.proving.projection_repair import WholeStore
from handrail.engine.record_writer import RecordWriter
from handrail.engine.retention.abandoned import AbandonedRun, abandoned_runs, settle
from handrail.engine.retention.archiving import Archived, Archiver
from handrail.engine.stream_pages import tombstones_of
from handrail.settings import Settings

AT_ONCE_MAX: Final = 20_000
"""How many runs are archived in one go of the schedule: the rest follows with the next."""


class PrunePlan(Struct, frozen=True, kw_only=True):
    """What the rules of a home do now."""

    archive: tuple[str, ...] = ()
    """Ended runs that leave the journal."""
    abandoned: tuple[AbandonedRun, ...] = ()
    archives: tuple[str, ...] = ()
    """Archives that no run needs."""
    contents: tuple[str, ...] = ()
    """Runs whose kept contents can't be needed any more."""


class Pruned(Struct, frozen=True):
    """What pruning has done; of abandoned runs, each with the reason if it could not be settled."""

    archived: Archived
    abandoned: tuple[AbandonedRun, ...]
    archives: tuple[str, ...]
    contents: tuple[str, ...]


def required_rules(settings: Settings) -> RetentionRules:
    """The rules of a home; Invalid if it has none."""
    rules = rules_of(settings)
    if rules is None:
        raise Invalid("config.toml of HANDRAIL_HOME has no table [retention]", hint='write: archive_after = "90d"')
    return rules


async def prune_plan(settings: Settings) -> PrunePlan:
    """What pruning would do now; changes nothing."""
    rules = required_rules(settings)
    async with open_reader(settings) as look:
        record_writer = RecordWriter(system_clock, lambda size: bytes(size))
        dispatch_of = _dispatches(settings, look.store, record_writer)
        now = system_clock()
        needed = {stone.archive async for stone in tombstones_of(look.store)}
        names = await asyncio.to_thread(look.store.archives().files.names)
        return PrunePlan(
            archive=tuple(row.id for row in await due_runs(look.store, rules, now=now)),
            abandoned=tuple(await abandoned_runs(look.store, dispatch_of, rules, now=now)),
            archives=tuple(name for name in names if name not in needed),
            contents=tuple(await superfluous_contents(settings, look.store)),
        )


async def prune(settings: Settings, *, actor: str) -> Pruned:
    """Do what the rules say, as this actor."""
    rules = required_rules(settings)
    async with opened_archives(settings) as open_:
        return await pruned(settings, open_.opened, open_.archiver, rules, actor=actor)


async def pruned(
    settings: Settings, opened: OpenStore, archiver: Archiver, rules: RetentionRules, *, actor: str
) -> Pruned:
    """The same over what is open already."""
    now = system_clock()
    superfluous = await archiver.tidy()
    due = await due_runs(opened.store, rules, now=now)
    # Oldest first, and not all at once: a server that is stopped meanwhile has to wait for this.
    archived = await archiver.archive([row.id for row in due[:AT_ONCE_MAX]], reason="[retention]", actor=actor)
    if archived.runs:
        await archiver.give_back()
    dispatch_of = _dispatches(settings, opened.journal, opened.record_writer)
    abandoned = [
        await _settled(one, dispatch_of(one.project), rules)
        for one in await abandoned_runs(opened.store, dispatch_of, rules, now=now)
    ]
    contents = await superfluous_contents(settings, opened.store)
    await asyncio.to_thread(_remove, settings.kept, contents)
    return Pruned(archived, tuple(abandoned), tuple(superfluous), tuple(contents))


async def superfluous_contents(settings: Settings, store: WholeStore) -> list[str]:
    """The runs for which contents are kept although they are deleted, or this store does not know them."""
    folders = await asyncio.to_thread(_folders, settings.kept)
    found = []
    for run in folders:
        stone = await store.archives().tombstone(run)
        is_deleted = stone is not None and not stone.archive
        if is_deleted or await store.run(run) is None:
            found.append(run)
    return found


async def _settled(one: AbandonedRun, dispatch: Dispatch, rules: RetentionRules) -> AbandonedRun:
    try:
        await settle(one, dispatch, rules)
    except HandrailError as error:  # an agent may have come back just now
        return replace(one, reason=str(error))
    return one


def _dispatches(settings: Settings, journal: Journal, record_writer: RecordWriter) -> Callable[[str], Dispatch]:
    """Dispatch for the runs of each project: nothing of a project itself is needed to pause or to end a run."""
    known: dict[str, Dispatch] = {}
    clock, policy = steady_clock(record_writer.clock), policy_of(settings)

    def dispatch_of(project: str) -> Dispatch:
        if project not in known:
            known[project] = Dispatch(journal, record_writer, clock, policy, project=project)
        return known[project]

    return dispatch_of


def _folders(kept: Path) -> list[str]:
    return sorted(folder.name for folder in kept.iterdir() if folder.is_dir()) if kept.is_dir() else []


def _remove(kept: Path, runs: Sequence[str]) -> None:
    for run in runs:
        shutil.rmtree(kept / run, ignore_errors=True)
