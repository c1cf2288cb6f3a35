"""The run reader: runs as readers see them, read from a store; nothing is written.

Async; uses only the protocols of the journal and of the list of runs. What is shown of a run is decided in
run_view.py."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec.structs import replace

from handrail.domain.definition.model import Definition, Tool
from handrail.domain.errors import HandrailError, NotFound
from handrail.domain.fleet.node import NodeState, able_nodes, wait_for
from handrail.domain.fleet.placing import asks_for_labels
from handrail.domain.history.spans import SpanFold
from handrail.domain.history.story import StoryFold
from handrail.domain.instant import instant_text
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import AttemptFailed, Mode, UndoFailed
from handrail.domain.journal.projection import RunRow
from handrail.domain.project import FindProject, refusal, server_stream, unknown_project
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_ENDED, RUN_UNENDED, RUN_WORKING, RunStatus
from handrail.domain.run.step_path import locate
from handrail.domain.scheduling.breaker import Breaker, BreakerStatus, replay_breaker
from handrail.domain.scheduling.step_start import CallTool, start_of
from handrail.domain.suggestion import did_you_mean
from handrail.engine.journal import Journal, ProjectionReader
from handrail.engine.passed_in import Clock
from handrail.engine.reading.agenda_cache import AgendaCache
from handrail.engine.reading.check_view import JUDGED, JudgedOutput, judged_output
from handrail.engine.reading.node_view import FleetStore
from handrail.engine.reading.past_run import PastRun, past_run
from handrail.engine.reading.prospect import Prospect
from handrail.engine.reading.run_lines import Beginning, OpenRun, RunLine, RunLines, WaitingLine
from handrail.engine.reading.run_view import (
    Detail,
    ProjectView,
    RunSummary,
    Status,
    Try,
    listed,
    project_view,
    status_of,
    steps_seen,
)
from handrail.engine.reading.step_view import NOTHING, LiveState, PostponedView, StepView, Why
from handrail.engine.reading.stored_runs import StoredRuns
from handrail.engine.reading.story_view import RunStory, WhyLine, run_story, why_lines
from handrail.engine.reading.time_view import (
    RunTimeline,
    TryView,
    person_waited,
    timed_steps,
    timeline_of,
    tries_view,
)
from handrail.engine.stream_pages import entries_of, pages_of
from handrail.engine.tool import Toolbox
from handrail.foundation.bounded_cache import BoundedCache

READ_IN_FULL_MAX: Final = 1_000
"""How many open runs of a list are read in full."""
RUNS_KEPT: Final = 100
"""How many ended runs are cached, so that they are not read again for each call."""
SPANS_KEPT: Final = 20
"""Of how many runs it is cached where their time went."""
PAST_KEPT: Final = 4
"""How many runs are kept as they were: a page that shows one reads several views of it."""
SPANS_SHOWN: Final = 20_000
TRIES_SHOWN: Final = 5
TRY_LENGTH_MAX: Final = 300
JUDGED_SHOWN: Final = 50
FAILING: Final = frozenset({"attempt_failed", "undo_failed"})
POSTPONED_MAX: Final = 50
"""For how many ready steps the circuit breaker of their server is looked up."""


class RunStore(Journal, ProjectionReader, Protocol):
    """What a run reader needs of a store."""


@dataclass
class RunReader:
    """Reads runs, and caches them so that the next call reads only what is new."""

    store: RunStore
    clock: Clock
    toolbox: Toolbox | None = None
    agenda_cache: AgendaCache | None = None
    """The agendas of a process that executes runs; without it, only the store is read."""
    project: str = ""
    """The id of the reader's own project: its lists show the runs of this one."""
    find_project: FindProject = unknown_project
    fleet: FleetStore | None = None
    """Who works on the store, if runs may wait for a node."""
    is_shared: bool = False
    """Whether other machines work on it."""
    _agendas: AgendaCache = field(init=False)
    _lines: RunLines = field(init=False)
    _ended: BoundedCache[str, Run] = field(default_factory=lambda: BoundedCache(RUNS_KEPT))
    _tried: BoundedCache[str, tuple[int, str, tuple[Try, ...]]] = field(default_factory=lambda: BoundedCache(RUNS_KEPT))
    """By run: the attempts of the failed step, as of this event."""
    _past: BoundedCache[tuple[str, int], PastRun] = field(default_factory=lambda: BoundedCache(PAST_KEPT))
    _stories: BoundedCache[str, StoryFold] = field(default_factory=lambda: BoundedCache(SPANS_KEPT))
    _spans: BoundedCache[str, SpanFold] = field(default_factory=lambda: BoundedCache(SPANS_KEPT))

    def __post_init__(self) -> None:
        self._agendas = self.agenda_cache or AgendaCache(StoredRuns(self.store))
        self._lines = RunLines(self.store, self._agendas.runs)

    async def run(self, run_id: str, *, at: int = 0) -> Run:
        """The current state of a run, or as it was after its event `at`; NotFound suggests similar ids."""
        if at:
            return (await self.past(run_id, at)).run
        # An ended run can still be undone or adopted, so it is asked whether there is anything new.
        ended = self._ended.get(run_id)
        if ended is not None and not await entries_of(self.store, run_id, after=ended.n):
            return ended
        try:
            run = await self._agendas.runs.current(run_id)
        except NotFound:
            raise await self._no_such(run_id) from None
        if run.status in RUN_ENDED:  # dispatch does not cache these, and reading them again takes long
            self._ended.put(run_id, run)
        return run

    async def past(self, run_id: str, at: int) -> PastRun:
        """A run as it was after one of its events."""
        await self.run(run_id)  # a wrong id is said first
        known = self._past.get((run_id, at))
        return known or self._past.put((run_id, at), await past_run(self.store, self._agendas.runs, run_id, at))

    async def _no_such(self, run_id: str) -> NotFound:
        known = [row.id for row in await self.store.runs(limit=1_000, project=self.project)]
        return NotFound(f"there is no run {run_id!r}", hint=did_you_mean(run_id, known) or "none was started yet")

    async def definition(self, run: Run) -> Definition:
        """The definition that a run is pinned to."""
        return await self._agendas.runs.definition(run.definition)

    async def status(
        self, run_id: str, *, detail: Detail = Detail.SUMMARY, within: LiveState = NOTHING, at: int = 0
    ) -> Status:
        """The status of a run, or as it was after its event `at`; `within` is what a worker in this process knows."""
        if at:
            past = await self.past(run_id, at)
            seen = status_of(past.run, past.definition, now=past.now, detail=detail)
            return replace(seen, steps=timed_steps(seen.steps, past.spans, now=past.now))
        run = await self.run(run_id)
        return await self._status(run, await self.definition(run), detail, within)

    async def _status(
        self, run: Run, definition: Definition, detail: Detail = Detail.SUMMARY, within: LiveState = NOTHING
    ) -> Status:
        now = self.clock()
        prospect = self._agendas.prospect(run, definition, now=now)
        node = await self._awaited_node(run, definition, prospect)
        if detail is Detail.FULL:
            within = await self._live(run, definition, prospect, within, node)
        seen = status_of(run, definition, now=now, detail=detail, within=within, prospect=prospect)
        seen = replace(seen, project=self._other_project(run.id, run.project), node=node)
        if seen.steps:
            seen = replace(seen, steps=timed_steps(seen.steps, await self.spans(run), now=now))
        if seen.failure is None:
            return seen
        return replace(seen, failure=replace(seen.failure, tries=await self._tries(run, seen.failure.step)))

    async def steps(self, run_id: str, *, within: LiveState = NOTHING, at: int = 0) -> tuple[StepView, ...]:
        """The steps of a run with their times, or as they were after its event `at`."""
        if at:
            return (await self.status(run_id, detail=Detail.FULL, at=at)).steps
        run = await self.run(run_id)
        definition = await self.definition(run)
        now = self.clock()
        prospect = self._agendas.prospect(run, definition, now=now)
        node = await self._awaited_node(run, definition, prospect)
        steps = steps_seen(run, definition, prospect, await self._live(run, definition, prospect, within, node))
        return timed_steps(steps, await self.spans(run), now=now)

    async def _awaited_node(self, run: Run, definition: Definition, prospect: Prospect) -> str:
        return await self._node_wait(run, definition) if not prospect.is_settled else ""

    async def _live(
        self, run: Run, definition: Definition, prospect: Prospect, within: LiveState, node: str
    ) -> LiveState:
        postponed = await self._postponed(run, definition)
        moving = _waiting_for_node(prospect.agenda.ready, definition, node) if node else {}
        return LiveState({**moving, **postponed, **within.postponed}, within.words)

    async def spans(self, run: Run) -> SpanFold:
        """Where the time of a run went so far; only new events are read."""
        fold = self._spans.get(run.id) or SpanFold()
        async for page in pages_of(self.store, run.id, after=fold.n):
            for record in page:
                fold.take(entry_of(record))
        return self._spans.put(run.id, fold)

    async def timeline(self, run_id: str, *, at_most: int = SPANS_SHOWN, at: int = 0) -> RunTimeline:
        """What happened when in a run, and the steps that decided how long it took."""
        if at:
            past = await self.past(run_id, at)
            return timeline_of(past.run, past.definition, past.spans, now=past.now, at_most=at_most)
        run = await self.run(run_id)
        return timeline_of(run, await self.definition(run), await self.spans(run), now=self.clock(), at_most=at_most)

    async def person_waited(self, run_id: str, *, at: int = 0) -> int:
        """How long a run waited for people who then acted, in milliseconds."""
        spans = (await self.past(run_id, at)).spans if at else await self.spans(await self.run(run_id))
        return person_waited(spans)

    async def tries(self, run_id: str, step: str, *, at: int = 0) -> tuple[TryView, ...]:
        """All tries of a step, and of its undo, in order; NotFound if there is no such step."""
        run = await self.run(run_id, at=at)
        definition = await self.definition(run)
        locate(definition, step)
        spans = (await self.past(run_id, at)).spans if at else await self.spans(run)
        return tries_view([one for one in spans.tries if one.step == step], definition)

    async def story(self, run_id: str, *, at: int = 0) -> RunStory:
        """What happened in a run, as a story, and why it is where it is; or until its event `at`."""
        if at:
            past = await self.past(run_id, at)
            return run_story(past.run, past.definition, past.story)
        run = await self.run(run_id)
        return run_story(run, await self.definition(run), await self._story(run))

    async def why(self, run_id: str, *, at: int = 0) -> tuple[WhyLine, ...]:
        """Why a run is where it is, or was after its event `at`."""
        if at:
            past = await self.past(run_id, at)
            return why_lines(past.run, past.definition, past.story)
        run = await self.run(run_id)
        return why_lines(run, await self.definition(run), await self._story(run))

    async def _story(self, run: Run) -> StoryFold:
        """The story of a run so far; only new events are read."""
        fold = self._stories.get(run.id) or StoryFold()
        async for page in pages_of(self.store, run.id, after=fold.n):
            for record in page:
                fold.take(entry_of(record))
        return self._stories.put(run.id, fold)

    async def evidence(self, run_id: str) -> tuple[tuple[str, JudgedOutput], ...]:
        """The latest output of each step that went through checks, in the order of the journal."""
        await self.run(run_id)
        found: dict[str, JudgedOutput] = {}
        async for page in pages_of(self.store, run_id):
            for record in page:
                one = judged_output(entry_of(record)) if record.kind in JUDGED and record.step else None
                if one is not None and record.step is not None:
                    found[record.step] = one
        return tuple(found.items())

    async def judged(self, run_id: str, step: str) -> tuple[JudgedOutput, ...]:
        """The outputs of a step that went through checks, the latest of them, each check with its evidence."""
        run = await self.run(run_id)
        locate(await self.definition(run), step)
        found: deque[JudgedOutput] = deque(maxlen=JUDGED_SHOWN)
        async for page in pages_of(self.store, run.id):
            chosen = (record for record in page if record.step == step and record.kind in JUDGED)
            found += [one for record in chosen if (one := judged_output(entry_of(record))) is not None]
        return tuple(found)

    async def require_own(self, run_id: str) -> None:
        """Refuse a run of another project: before a person is shown what it asks."""
        row = await self.store.run(run_id)
        if row is not None and row.project != self.project:
            raise refusal(run_id, row.project, self.find_project)

    async def other_project(self, run_id: str) -> ProjectView | None:
        """The project of a run, if it is not the reader's own; from its row, so that a damaged run can be looked at."""
        row = await self.store.run(run_id)
        return self._other_project(run_id, row.project) if row is not None else None

    def _other_project(self, run_id: str, project: str) -> ProjectView | None:
        return None if project == self.project else project_view(run_id, project, self.find_project)

    async def _tries(self, run: Run, path: str) -> tuple[Try, ...]:
        """The last attempts of a failed step, or of its undo."""
        known = self._tried.get(run.id)
        if known is not None and known[:2] == (run.n, path):
            return known[2]
        tries: deque[Try] = deque(maxlen=TRIES_SHOWN)
        async for page in pages_of(self.store, run.id):
            for record in page:
                if record.step != path or record.kind not in FAILING:
                    continue  # decoding is expensive, and most events are of other kinds
                event = entry_of(record).event
                if isinstance(event, AttemptFailed | UndoFailed):
                    tries.append(_try(record.at, event))
        self._tried.put(run.id, (run.n, path, tuple(tries)))
        return tuple(tries)

    async def is_settled(self, run_id: str) -> bool:
        """Whether nothing happens to a run until an agent or a person acts."""
        run = await self.run(run_id)
        return self._agendas.prospect(run, await self.definition(run), now=self.clock()).is_settled

    async def runs(
        self,
        *,
        status: Collection[str] = (),
        after: str = "",
        limit: int = 50,
        project: str = "",
        all_projects: bool = False,
    ) -> list[RunSummary]:
        """Runs of the reader's project by id; or of another `project`, or of all, each with its project.

        Open ones are read in full, to tell waiting runs from running ones."""
        wanted = None if all_projects else project or self.project
        # No store knows `waiting`: it is what a running run is called while only others can move it.
        stored = tuple(dict.fromkeys(RunStatus.RUNNING if one == RunStatus.WAITING else one for one in status))
        found: list[RunSummary] = []
        left = READ_IN_FULL_MAX
        while len(found) < limit:
            rows = await self.store.runs(status=stored, after=after, limit=limit, project=wanted)
            for row in rows:
                # Beyond that many open runs a list shows what the rows say: it must stay fast with any number of them.
                is_close = row.status in RUN_UNENDED and left > 0
                left -= is_close
                seen = await self._seen(row) if is_close else None
                one = listed(row, seen)
                if wanted != self.project:
                    one = replace(one, project=project_view(row.id, row.project, self.find_project))
                if not status or one.status in status:
                    found.append(one)
            if len(rows) < limit or not left:
                break
            after = rows[-1].id
        return found[:limit]

    async def line(self, row: RunRow, *, with_project: bool = False) -> tuple[RunLine, tuple[WaitingLine, ...]]:
        """A run in a list, and what waits in it; open ones are read in full, to tell which wait."""
        line, waiting = await self._lines.line(row, await self._open(row) if row.status in RUN_UNENDED else None)
        if with_project:
            line = replace(line, project=project_view(row.id, row.project, self.find_project))
        return line, waiting

    async def _open(self, row: RunRow) -> OpenRun | None:
        try:
            run = await self.run(row.id)
            definition = await self.definition(run)
            return OpenRun(run, definition, await self._status(run, definition))
        except HandrailError:  # a run that can't be read must not hide the others
            return None

    async def beginning(self, run_id: str) -> Beginning:
        """What a run is called, and who started it; empty of one that can't be read."""
        try:
            return await self._lines.beginning(run_id)
        except HandrailError:  # the journal of a damaged run can still be looked at
            return Beginning()

    async def _seen(self, row: RunRow) -> Status | None:
        try:
            return await self.status(row.id)
        except HandrailError:  # a run that can't be read must not hide the others
            return None

    async def _postponed(self, run: Run, definition: Definition) -> Mapping[str, PostponedView]:
        """The ready steps whose server has an open circuit breaker."""
        if self.toolbox is None or run.status is not RunStatus.RUNNING:
            return {}
        postponed: dict[str, PostponedView] = {}
        breakers: dict[str, Breaker] = {}
        ready = self._agendas.prospect(run, definition, now=self.clock()).agenda.ready
        for path in sorted(ready)[:POSTPONED_MAX]:
            server = self._server(run, definition, path)
            if not server:
                continue
            if server not in breakers:
                breakers[server] = await self._breaker(run.project, server)
            if breakers[server].status is not BreakerStatus.CLOSED:
                until = instant_text(breakers[server].until)
                postponed[path] = PostponedView(
                    kind=Why.BREAKER, until=until, reason=f"{server}: {breakers[server].message}"
                )
        return postponed

    async def _node_wait(self, run: Run, definition: Definition) -> str:
        """Which node a run waits for that has work to do and that no node has taken; empty if it waits for none."""
        if self.fleet is None or run.status not in RUN_WORKING or run.mode is not Mode.RUN:
            return ""
        if not self.is_shared and not asks_for_labels(definition):
            return ""  # on one machine, any worker executes it
        held = await self.fleet.lease_holder(run.id)
        if held is None or held.owner:
            return ""
        return wait_for(await self.fleet.nodes().all(), run.project, held.needs)

    async def is_stranded(self, run_id: str) -> bool:
        """Whether only a node can go on with a run that is not up, or that a person has paused."""
        run = await self.run(run_id)
        if self.fleet is None or not await self._node_wait(run, await self.definition(run)):
            return False
        held = await self.fleet.lease_holder(run_id)
        if held is None:
            return False
        able = able_nodes(await self.fleet.nodes().all(), run.project, held.needs)
        return not any(one.state is NodeState.UP for one in able)

    def _server(self, run: Run, definition: Definition, path: str) -> str:
        if self.toolbox is None or not isinstance(locate(definition, path).step.work, Tool):
            return ""
        start = start_of(run, definition, path, now=self.clock(), check=lambda _, given: (given, ()))
        if not isinstance(start, CallTool):
            return ""
        try:
            return self.toolbox.find(start.work.tool).server(start.args)
        except NotFound:
            return ""

    async def _breaker(self, project: str, server: str) -> Breaker:
        return replay_breaker(await entries_of(self.store, server_stream(project, server)), Breaker(server=server))


def _waiting_for_node(ready: Collection[str], definition: Definition, why: str) -> dict[str, PostponedView]:
    """The ready calls of a run that no node has taken; only those that ask for labels, if any does."""
    calls = [path for path in sorted(ready)[:POSTPONED_MAX] if isinstance(locate(definition, path).step.work, Tool)]
    asking = [path for path in calls if locate(definition, path).step.runs_on] or calls
    return {path: PostponedView(kind=Why.NODE, reason=why) for path in asking}


def _try(at: int, event: AttemptFailed | UndoFailed) -> Try:
    return Try(
        attempt=event.attempt,
        at=instant_text(at - event.took),
        category=event.category,
        message=event.message[:TRY_LENGTH_MAX],
        took_ms=event.took,
    )
