"""Lists of runs, newest first, with filters and search; and the first page of the console.

Ids don't sort by time, so the rows are read and sorted here, and kept until the store has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.assembly.opening import Assembly
from handrail.domain.errors import HandrailError, NotFound
from handrail.domain.journal.projection import RunRow
from handrail.domain.policy.actor import name_of
from handrail.domain.run.status import RUN_ENDED, RUN_ENDED_BADLY, RUN_UNENDED, RunStatus
from handrail.domain.scheduling.breaker import BreakerStatus
from handrail.domain.trust.decision import off_words
from handrail.engine.journal import FAR_BEHIND
from handrail.engine.reading.run_view import RunSummary, WaitingKind, listed, project_view
from handrail.engine.reading.tool_stats import breakers_of
from handrail.foundation.bounded_cache import BoundedCache
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.api.instants import instant_of
from handrail.interfaces.http.contract.asked import RunsQuery
from handrail.interfaces.http.contract.given.runs import Home, RunPage, WaitingItem
from handrail.interfaces.http.edge.cursors import cursor_of, place_in

ROWS_MAX: Final = 20_000
"""How many runs are sorted; more are cut, the oldest ids first."""
PAGE: Final = 1_000
ALL: Final = "*"
SHOWN_MAX: Final = 20
STARTERS_KEPT: Final = 50_000
WAITING_ON_PEOPLE: Final = frozenset({WaitingKind.APPROVAL, WaitingKind.CONFIRMATION, WaitingKind.DECISION})


class _Sorted(Struct, frozen=True):
    """All rows as of a place of the store."""

    at: int
    rows: list[RunRow]


_rows: Final[BoundedCache[tuple[int, str], _Sorted]] = BoundedCache(4)
_starters: Final[BoundedCache[str, str]] = BoundedCache(STARTERS_KEPT)


async def list_runs(call: ApiCall) -> RunPage:
    """Runs that match, newest first."""
    query: RunsQuery = call.query
    program = call.program
    place = place_in(query.cursor, int, str)
    project = project_of(query.project, program)
    rows = await newest_rows(program, project)
    fits = _fitting(program, query)
    found: list[RunSummary] = []
    looked_at = 0
    async for one in _listed(program, _after(rows, place), fits, all_projects=project is None):
        looked_at += 1
        if query.state and one.status.value not in query.state:
            continue
        if query.by and not _is_by(query.by, await starter_of(program, one.run)):
            continue
        if len(found) == query.limit:
            last = next(row for row in rows if row.id == found[-1].run)
            return RunPage(runs=tuple(found), cursor=cursor_of(last.started, last.id), looked_at=looked_at)
        found.append(one)
    return RunPage(runs=tuple(found), looked_at=looked_at)


async def newest_rows(program: Assembly, project: str | None) -> list[RunRow]:
    """The rows of all runs of a project, or of all projects, newest first."""
    store = program.writer.reader.store
    at, _ = await store.heads(after=FAR_BEHIND)
    known = _rows.get((id(store), project or ALL))
    if known is not None and known.at == at:
        return known.rows
    rows: list[RunRow] = []
    after = ""
    while len(rows) < ROWS_MAX:
        page = await store.runs(after=after, limit=PAGE, project=project)
        rows += page
        if len(page) < PAGE:
            break
        after = page[-1].id
    rows.sort(key=lambda row: (row.started, row.id), reverse=True)
    _rows.put((id(store), project or ALL), _Sorted(at, rows))
    return rows


def project_of(asked: str, program: Assembly) -> str | None:
    """The project that a query means; None for all."""
    return None if asked == ALL else asked or program.writer.reader.project.id


async def starter_of(program: Assembly, run: str) -> str:
    """Who started a run, from its first event: that never changes."""
    known = _starters.get(run)
    if known is not None:
        return known
    records = await program.writer.reader.store.read(run, limit=1)
    return _starters.put(run, records[0].actor) if records else ""


async def _listed(
    program: Assembly, rows: list[RunRow], fits: Callable[[RunRow], bool], *, all_projects: bool
) -> AsyncIterator[RunSummary]:
    """Runs as readers see them; open ones are read in full, to tell waiting runs from running ones."""
    reader = program.run_reader
    for row in rows:
        if not fits(row):
            continue
        try:
            seen = await reader.status(row.id) if row.status in RUN_UNENDED else None
        except HandrailError:  # a run that can't be read must not hide the others
            seen = None
        one = listed(row, seen)
        yield replace(one, project=project_view(row.id, row.project, reader.find_project)) if all_projects else one


def _after(rows: list[RunRow], place: tuple[str | int, ...] | None) -> list[RunRow]:
    return rows if place is None else [row for row in rows if (row.started, row.id) < place]


def _fitting(program: Assembly, query: RunsQuery) -> Callable[[RunRow], bool]:
    """Whether a row can match, without reading the run."""
    now = program.worker.settings.clock()
    since = instant_of(query.since, "since", now=now, default=0)
    until = instant_of(query.until, "until", now=now, default=FAR_BEHIND)
    words = query.q.lower().split()

    def fits(row: RunRow) -> bool:
        is_named = not query.workflow or query.workflow in (row.workflow, row.workflow.partition("@")[0])
        is_found = all(word in f"{row.id} {row.workflow} {row.goal}".lower() for word in words)
        # Whether an open run waits is only known once it is read.
        is_in_state = not query.state or row.status in query.state or row.status in RUN_UNENDED
        return since <= row.started <= until and is_named and is_found and is_in_state

    return fits


def _is_by(asked: str, actor: str) -> bool:
    return asked in (actor, name_of(actor))


# --- home -----------------------------------------------------------------------------------------


async def home(call: ApiCall) -> Home:
    """What waits for me, runs, failed, needs attention."""
    program = call.program
    rows = await newest_rows(program, None)
    ended = [row for row in rows if row.status in RUN_ENDED]
    opened = await _all_listed(program, [row for row in rows if row.status in RUN_UNENDED][:PAGE])
    waiting = [item for one in opened for item in await _waiting(call, one)]
    counts = Counter(row.status for row in ended) + Counter(one.status.value for one in opened)
    failed = [row for row in ended if row.status in RUN_ENDED_BADLY][:SHOWN_MAX]
    well = [row for row in ended if row.status not in RUN_ENDED_BADLY][:SHOWN_MAX]
    return Home(
        waiting_for_me=tuple(item for item in waiting if item.may_answer),
        waiting_for_others=tuple(item for item in waiting if not item.may_answer),
        running=tuple(one for one in opened if one.status is not RunStatus.WAITING)[:SHOWN_MAX],
        failed=tuple(await _all_listed(program, failed)),
        ended=tuple(await _all_listed(program, well)),
        counts=dict(counts),
        attention=tuple(await _attention(program)),
    )


async def _all_listed(program: Assembly, rows: list[RunRow]) -> list[RunSummary]:
    return [one async for one in _listed(program, rows, _any, all_projects=True)]


def _any(_: RunRow) -> bool:
    return True


async def _waiting(call: ApiCall, one: RunSummary) -> list[WaitingItem]:
    own = call.program.writer.reader.project.id
    is_own = one.project is None or one.project.id == own
    items = []
    for waits in one.waiting_for:
        is_mine = is_own and waits.kind in WAITING_ON_PEOPLE
        if is_mine and waits.kind is WaitingKind.APPROVAL:
            is_mine = await _may_answer(call, one.run, waits.step)
        items.append(
            WaitingItem(
                run=one.run,
                workflow=one.workflow,
                goal=one.goal,
                step=waits.step,
                kind=waits.kind.value,
                text=waits.text,
                since=waits.since,
                expires=waits.expires,
                by=waits.by,
                may_answer=is_mine,
                project=None if is_own else one.project,
            )
        )
    return items


async def _may_answer(call: ApiCall, run: str, step: str) -> bool:
    try:
        seen = await call.program.approvals.one(run, step, actor=call.caller.actor, channel=call.caller.channel)
    except NotFound:  # answered meanwhile
        return False
    return seen.may_answer


async def _attention(program: Assembly) -> list[str]:
    reader = program.writer.reader
    servers = program.toolbox.servers
    names = sorted(servers.names()) if servers is not None else []
    breakers = await breakers_of(reader.store, names, project=reader.project.id)
    said = [
        f"{name} is not being called: {one.message}"
        for name, one in breakers.items()
        if one.status is not BreakerStatus.CLOSED
    ]
    trust = reader.settings.trust
    return [*said, *([off_words(trust)] if trust.is_off else [])]
