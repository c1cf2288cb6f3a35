"""Compares projections with the events they are derived from, and rewrites them where they differ.

Async; uses the store's protocols. Events are only read. audit.py verifies a stream's chain."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, Protocol, TypeAlias

from handrail.domain.errors import IntegrityBroken, Unavailable
from handrail.domain.journal.event import PLAN_PREFIX, RUN_PREFIX, Entry
from handrail.domain.journal.projection import Change, PlanRow, RunRow
from handrail.domain.project import plan_in, row_stream, scoped
from handrail.engine.fleet.node_table import NodeTable
from handrail.engine.journal import Archive, Journal, ProjectionReader
from handrail.engine.notify.outbox import Outbox
from handrail.engine.proving.stream_fold import change_of
from handrail.engine.run_archive import ArchivingStore
from handrail.engine.running.lease import Leases
from handrail.engine.stream_pages import PAGE, entries_of

TRIES_MAX: Final = 5

ChangeOf: TypeAlias = Callable[[str, Iterable[Entry]], Change]
"""How a stream's events become its projection rows."""


class WholeStore(Journal, ProjectionReader, Archive, ArchivingStore, Leases, Protocol):
    """A whole store: its events, projections, file and leases, who works on it, and what waits for channels."""

    def nodes(self) -> NodeTable:
        """Who works on this store."""
        ...

    def outbox(self) -> Outbox:
        """What waits to be sent to channels."""
        ...


async def rebuild(store: WholeStore, *, fold: ChangeOf = change_of) -> int:
    """Rewrite the projections of every stream where they differ from its events; returns how many were rewritten."""
    _, heads = await store.heads()
    streams = {head.stream for head in heads}
    rewritten = 0
    for stream in sorted(streams):
        if not await _is_deleted(store, stream):
            rewritten += await _rewrite(store, stream, fold)
    async for stream in streams_with_rows(store):
        if stream not in streams and not await store.read(stream, limit=1):
            await store.forget(stream)
            rewritten += 1
    return rewritten


async def difference(store: WholeStore, stream: str, *, fold: ChangeOf = change_of) -> str | None:
    """How a stream's projections differ from its events, as a message; None if they are equal."""
    reason = None
    for _ in range(TRIES_MAX):  # another writer may append between two reads: a difference counts only if it stays
        try:
            reason = _compared(await stored_change(store, stream), await folded_change(store, stream, fold))
        except IntegrityBroken as error:
            reason = str(error)
        if reason is None:
            return None
    return reason


async def stored_change(store: WholeStore, stream: str) -> Change:
    """The projections of a stream as they are stored."""
    if stream.startswith(RUN_PREFIX):
        return Change(run=await store.run(stream), steps=tuple(await store.steps(stream)))
    if stream.startswith(PLAN_PREFIX):
        owner, plan_id = plan_in(stream)
        return Change(plan=await store.plan(plan_id, project=owner))
    return Change()


async def folded_change(store: Journal, stream: str, fold: ChangeOf) -> Change:
    """The projections of a stream, computed from its events."""
    entries = await entries_of(store, stream)
    try:
        change = fold(stream, entries)
    except Exception as error:  # forged events can raise anything: that is a finding, not a crash
        raise IntegrityBroken(f"its events can't be replayed: {error!r}") from error
    steps = tuple(sorted(change.steps, key=lambda step: step.path))
    return Change(run=change.run, steps=steps, plan=change.plan)


async def streams_with_rows(store: ProjectionReader) -> AsyncIterator[str]:
    """Every stream that has a row."""
    async for run in run_rows(store):
        yield run.id
    async for plan in plan_rows(store):
        yield row_stream(plan.project, plan.id)


async def run_rows(store: ProjectionReader) -> AsyncIterator[RunRow]:
    """The rows of all runs."""
    after = ""
    while rows := await store.runs(after=after, limit=PAGE):
        for row in rows:
            yield row
        after = rows[-1].id


async def plan_rows(store: ProjectionReader) -> AsyncIterator[PlanRow]:
    """The rows of all plans."""
    after = ""
    while rows := await store.plans(after=after, limit=PAGE):
        for row in rows:
            yield row
        after = scoped(rows[-1].project, rows[-1].id)


async def _rewrite(store: WholeStore, stream: str, fold: ChangeOf) -> bool:
    """Whether a stream's projections had to be rewritten; if a writer appends meanwhile, they are rewritten again."""
    for tries in range(TRIES_MAX):
        if await difference(store, stream, fold=fold) is None:
            return tries > 0
        await store.rebuild(stream, await folded_change(store, stream, fold))
    raise Unavailable(f"{stream} changes too fast to be rebuilt", hint="repeat it when the run is idle")


async def _is_deleted(store: WholeStore, stream: str) -> bool:
    """Whether nothing is left of a run that its rows could be compared with."""
    stone = await store.archives().tombstone(stream) if stream.startswith(RUN_PREFIX) else None
    return stone is not None and not stone.archive


def _compared(stored: Change, folded: Change) -> str | None:
    if stored == folded:
        return None
    if stored.run != folded.run:
        return _differs("row", stored.run, folded.run)
    if stored.plan != folded.plan:
        return _differs("row", stored.plan, folded.plan)
    rows, wanted = ({step.path: step for step in change.steps} for change in (stored, folded))
    path = min(path for path in {*rows, *wanted} if rows.get(path) != wanted.get(path))
    return _differs(f"row of step {path!r}", rows.get(path), wanted.get(path))


def _differs(what: str, stored: object, folded: object) -> str:
    if stored is None:
        return f"its {what} is missing"
    if folded is None:
        return f"its {what} has no events"
    return f"its {what} does not match its events"
