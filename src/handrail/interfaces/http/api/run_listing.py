"""Lists of runs, newest first, with filters and search; and the first page of the console.

Ids don't sort by time, so the rows are read and sorted here, and kept until the store has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from handrail.assembly.opening import Assembly
from handrail.domain.errors import NotFound
from handrail.domain.journal.archived import Tombstone
from handrail.domain.journal.mark import Mark
from handrail.domain.journal.projection import RunRow
from handrail.domain.metrics.cache_catalog import RUN_LISTS
from handrail.domain.policy.actor import name_of
from handrail.domain.project import ALL_PROJECTS
from handrail.domain.run.status import RUN_ENDED, RUN_ENDED_BADLY, RUN_UNENDED, RunStatus
from handrail.domain.scheduling.breaker import BreakerStatus
from handrail.domain.trust.decision import off_words
from handrail.engine.journal import FAR_FUTURE
from handrail.engine.reading.run_lines import RunLine, WaitingLine
from handrail.engine.reading.run_view import WaitingKind
from handrail.engine.reading.tool_stats import breakers_of
from handrail.foundation.bounded_cache import BoundedCache
from handrail.foundation.cache_use import use_of
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.api.instants import instant_of
from handrail.interfaces.http.contract.asked import RunsQuery
from handrail.interfaces.http.contract.given.runs import Home, RunPage, WaitingItem
from handrail.interfaces.http.edge.cursors import cursor_of, place_in

ROWS_MAX: Final = 20_000
"""How many runs are sorted; more are cut, the oldest ids first."""
PAGE: Final = 1_000
SHOWN_MAX: Final = 20
LISTS_KEPT: Final = 16
"""Of how many projects the sorted rows are kept."""
DELETED: Final = "its events were archived, and then deleted"
DAY_MS: Final = 86_400_000
WAITING_ON_PEOPLE: Final = frozenset({WaitingKind.APPROVAL, WaitingKind.CONFIRMATION, WaitingKind.DECISION})


class _Sorted(Struct, frozen=True):
    """All rows as of a mark of the store."""

    at: Mark
    rows: list[RunRow]


_use: Final = use_of(RUN_LISTS)
_rows: Final[BoundedCache[tuple[int, str], _Sorted]] = _use.keeps(BoundedCache(LISTS_KEPT))


async def list_runs(call: ApiCall) -> RunPage:
    """Runs that match, newest first."""
    query: RunsQuery = call.query
    program = call.program
    place = place_in(query.cursor, int, str)
    project = project_of(query.project, program)
    rows = await newest_rows(program, project)
    fits = _fitting(program, query)
    found: list[RunLine] = []
    looked_at = 0
    async for one in _listed(program, _after(rows, place), fits, all_projects=project is None):
        looked_at += 1
        if not _is_wanted(query, one):
            continue
        if len(found) == query.limit:
            last = next(row for row in rows if row.id == found[-1].run)
            return RunPage(runs=tuple(found), cursor=cursor_of(last.started, last.id), looked_at=looked_at)
        found.append(one)
    return RunPage(runs=tuple(found), looked_at=looked_at)


async def newest_rows(program: Assembly, project: str | None) -> list[RunRow]:
    """The rows of all runs of a project, or of all projects, newest first."""
    store = program.writer.reader.store
    at = await store.end()
    known = _rows.get((id(store), project or ALL_PROJECTS))
    if known is not None and known.at == at:
        _use.hit()
        return known.rows
    with _use.making():
        rows = await _all_rows(program, project)
    _rows.put((id(store), project or ALL_PROJECTS), _Sorted(at, rows))
    return rows


async def _all_rows(program: Assembly, project: str | None) -> list[RunRow]:
    store = program.writer.reader.store
    rows: list[RunRow] = []
    after = ""
    while len(rows) < ROWS_MAX:
        page = await store.runs(after=after, limit=PAGE, project=project)
        rows += page
        if len(page) < PAGE:
            break
        after = page[-1].id
    return sorted(rows, key=lambda row: (row.started, row.id), reverse=True)


def project_of(asked: str, program: Assembly) -> str | None:
    """The project that a query means; None for all."""
    return None if asked == ALL_PROJECTS else asked or program.writer.reader.project.id


async def _listed(
    program: Assembly, rows: list[RunRow], fits: Callable[[RunRow], bool], *, all_projects: bool
) -> AsyncIterator[RunLine]:
    """Runs as readers see them."""
    archives = program.writer.reader.store.archives()
    for row in rows:
        if fits(row):
            line = (await program.run_reader.line(row, with_project=all_projects))[0]
            stone = await archives.tombstone(row.id) if row.ended is not None else None
            yield line if stone is None else archived_line(line, stone)


def archived_line(line: RunLine, stone: Tombstone) -> RunLine:
    """A run whose events are in an archive, or were deleted with it."""
    return replace(line, archived=stone.archive) if stone.archive else replace(line, why=DELETED)


def _after(rows: list[RunRow], place: tuple[str | int, ...] | None) -> list[RunRow]:
    return rows if place is None else [row for row in rows if (row.started, row.id) < place]


def _fitting(program: Assembly, query: RunsQuery) -> Callable[[RunRow], bool]:
    """Whether a row can match, without reading the run."""
    now = program.worker.settings.clock()
    since = instant_of(query.since, "since", now=now, default=0)
    until = instant_of(query.until, "until", now=now, default=FAR_FUTURE)
    words = query.q.lower().split()

    def fits(row: RunRow) -> bool:
        is_named = query.workflow in ("", row.workflow, row.workflow.partition("@")[0])
        is_found = all(word in f"{row.id} {row.workflow} {row.goal}".lower() for word in words)
        # Whether an open run waits is only known once it is read.
        is_in_state = not query.state or row.status in query.state or row.status in RUN_UNENDED
        return since <= row.started <= until and is_named and is_found and is_in_state

    return fits


def _is_wanted(query: RunsQuery, one: RunLine) -> bool:
    """Whether a run matches, once its state is known."""
    if query.state and one.status.value not in query.state:
        return False
    return not query.by or query.by in (one.starter, name_of(one.starter))


# --- home -----------------------------------------------------------------------------------------


async def home(call: ApiCall) -> Home:
    """What waits for me, runs, failed, needs attention: in one project, or in all."""
    program = call.program
    wanted = project_of(call.query.project, program)
    rows = await newest_rows(program, wanted)
    ended = _in(rows, RUN_ENDED)
    seen = [await program.run_reader.line(row, with_project=True) for row in _in(rows, RUN_UNENDED)[:PAGE]]
    lines = [line for line, _ in seen]
    waiting = [await _waiting(call, line, one) for line, waits in seen for one in waits]
    now = {line.run: line.status.value for line in lines}
    since = program.worker.settings.clock() - DAY_MS
    return Home(
        waiting_for_me=tuple(item for item in waiting if item.may_answer),
        waiting_for_others=tuple(item for item in waiting if not item.may_answer),
        open=tuple(lines[:SHOWN_MAX]),
        running=tuple(one for one in lines if one.status is not RunStatus.WAITING)[:SHOWN_MAX],
        failed=await _all_listed(program, _in(ended, RUN_ENDED_BADLY)),
        ended=await _all_listed(program, _in(ended, RUN_ENDED - RUN_ENDED_BADLY)),
        counts=Counter(now.get(row.id, row.status) for row in rows),
        today=Counter(now.get(row.id, row.status) for row in rows if row.started >= since),
        attention=tuple(await _attention(program)),
        elsewhere=await _elsewhere(call, wanted) if wanted is not None else 0,
    )


async def _elsewhere(call: ApiCall, here: str) -> int:
    """How many things wait for the person who asks in other projects that are open here."""
    found = 0
    for project, parts in call.server.projects.opened.items():
        if project == here:
            continue
        rows = [row for row in await newest_rows(parts, project) if row.status in RUN_UNENDED][:PAGE]
        for line, waits in [await parts.run_reader.line(row, with_project=True) for row in rows]:
            found += sum([(await _waiting(call, line, one)).may_answer for one in waits])
    return found


def _in(rows: list[RunRow], statuses: Collection[RunStatus]) -> list[RunRow]:
    return [row for row in rows if row.status in statuses]


async def _all_listed(program: Assembly, rows: list[RunRow]) -> tuple[RunLine, ...]:
    return tuple([(await program.run_reader.line(row, with_project=True))[0] for row in rows[:SHOWN_MAX]])


async def _waiting(call: ApiCall, line: RunLine, waits: WaitingLine) -> WaitingItem:
    is_own = line.project is None or line.project.id == call.project.id
    parts = call.program if line.project is None else call.server.projects.of(line.project.id)
    is_mine = parts is not None and waits.kind in WAITING_ON_PEOPLE
    if parts is not None and is_mine and waits.kind is WaitingKind.APPROVAL:
        is_mine = await _may_answer(parts, call, line.run, waits.step)
    return WaitingItem(
        **asdict(waits),
        run=line.run,
        workflow=line.workflow,
        name=line.name,
        label=line.label,
        goal=line.goal,
        may_answer=is_mine,
        project=None if is_own else line.project,
    )


async def _may_answer(parts: Assembly, call: ApiCall, run: str, step: str) -> bool:
    try:
        seen = await parts.approvals.one(run, step, actor=call.caller.actor, channel=call.caller.channel)
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
