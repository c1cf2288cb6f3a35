"""Tools, servers with their circuit breakers, and rules. No server is started for a look."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from handrail.assembly.checks import rules_of
from handrail.assembly.opening import Assembly
from handrail.assembly.tools import tools_off
from handrail.domain.checks.rule import RuleCard
from handrail.domain.errors import HandrailError, NotFound
from handrail.domain.journal.mark import Mark
from handrail.domain.run.status import RUN_UNENDED
from handrail.domain.scheduling.breaker import Breaker, BreakerStatus
from handrail.domain.suggestion import did_you_mean
from handrail.engine.reading.pin_changes import PinChange, PinnedUse, pin_changes
from handrail.engine.reading.tool_stats import ToolReport, breakers_of, tool_figures
from handrail.engine.reading.tool_tally import Outage, ToolFigures
from handrail.engine.tool import ToolSpec
from handrail.foundation.bounded_cache import BoundedCache
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.api.instants import instant_of, shown
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import tools as given
from handrail.interfaces.http.contract.given.tools import ServerState
from handrail.interfaces.http.edge.cursors import page_of
from handrail.library.shelf.search_words import matching

FIGURES_SINCE: Final = "24h"
SLOT_MS: Final = 1_800_000
SLOTS: Final = 48
"""How many slots a line has at most; over longer times each is longer."""
SHARE: Final = 10
"""A report waits until ten times the time that the last one took has passed: a busy store is not read all the time."""
WAIT_MS: Final = 800
KEPT_MS: Final = 60_000
PLANS_MAX: Final = 200
RUNS_MAX: Final = 200
TROUBLE: Final = (
    ServerState.OPEN,
    ServerState.HALF_OPEN,
    ServerState.UNTRUSTED,
    ServerState.CHANGED,
    ServerState.NOT_CALLED,
    ServerState.USED,
)


class _ToolsReport(Struct, frozen=True):
    """What the journal says of tools, as of a time."""

    figures: ToolReport
    changes: tuple[PinChange, ...]
    head: Mark
    made: int
    took: int


_reports: Final[BoundedCache[tuple[int, str, str], _ToolsReport]] = BoundedCache(8)


async def list_tools(call: ApiCall) -> given.ToolPage:
    """Servers, those in trouble first, and tools."""
    query: asked.ToolsQuery = call.query
    program = call.program
    known = program.toolbox.overview()
    specs = [spec for spec in known.specs if not query.server or spec.server == query.server]
    found = matching(query.q, specs, heading=lambda spec: spec.name, text=lambda spec: spec.description)
    off = tools_off(program.writer.reader.settings)
    page, cursor = page_of(found, query.limit, query.cursor)
    report = await _report(program, FIGURES_SINCE)
    servers = [one for one in await _servers(program, report) if not query.server or one.server == query.server]
    figures = {one.tool: one for one in figures_of(report.figures.tools) if not one.is_undo}
    return given.ToolPage(
        servers=tuple(servers),
        tools=tuple(_tool(spec, off, figures.get(spec.name)) for spec in page),
        total=len(found),
        broken=dict(program.toolbox.broken),
        cursor=cursor,
    )


async def show_server(call: ApiCall) -> given.ServerView:
    """One server: tools, figures, outages."""
    name = str(call.path["server"])
    servers = await _servers(call.program, await _report(call.program, call.query.since or FIGURES_SINCE))
    found = next((one for one in servers if one.server == name), None)
    if found is None:
        names = [one.server for one in servers]
        hint = did_you_mean(name, names) or "declare it in .handrail/tools.json, under mcpServers"
        raise NotFound(f"there is no server {name[:100]!r}", hint=hint)
    return found


async def _report(program: Assembly, since: str) -> _ToolsReport:
    reader, clock = program.writer.reader, program.worker.settings.clock
    head = await reader.store.end()
    known = _reports.get((id(reader.store), reader.project.id, since))
    if known is not None:
        if known.head == head and clock() - known.made < KEPT_MS:
            return known
        left = known.made + SHARE * known.took - clock()
        await asyncio.sleep(min(max(left, 0), WAIT_MS) / 1_000)
    now = clock()
    head = await reader.store.end()
    start = instant_of(since, "since", now=now, default=0)
    slot_ms = max(SLOT_MS, (now - start) // SLOTS)
    figures = await tool_figures(reader.store, since=start, project=reader.project.id, slot_ms=slot_ms)
    changes = await pin_changes(reader.store, program.toolbox.cards(), await _pinned(program))
    report = _ToolsReport(figures, tuple(changes), head=head, made=clock(), took=clock() - now)
    return _reports.put((id(reader.store), reader.project.id, since), report)


async def _pinned(program: Assembly) -> list[PinnedUse]:
    """What the saved plans and the open runs of this project are pinned to, if a server has described its tools."""
    if not program.toolbox.cards():
        return []
    reader = program.writer.reader
    rows = await reader.store.plans(limit=PLANS_MAX, project=reader.project.id)
    plans = [await program.writer.plans.get(row.id) for row in rows if row.retired is None]
    opened = await reader.store.runs(status=sorted(RUN_UNENDED), limit=RUNS_MAX, project=reader.project.id)
    runs = [one for row in opened if (one := await _pinned_run(program, row.id)) is not None]
    return [*(PinnedUse(name=plan.id, pins=plan.newest.pins) for plan in plans), *runs]


async def _pinned_run(program: Assembly, run_id: str) -> PinnedUse | None:
    try:
        run = await program.run_reader.run(run_id)
    except HandrailError:  # a run that can't be read must not hide the others
        return None
    return PinnedUse(name=run.id, pins=run.pins, is_run=True)


async def _servers(program: Assembly, report: _ToolsReport) -> list[given.ServerView]:
    servers = program.toolbox.servers
    names = sorted(servers.names()) if servers is not None else []
    reader = program.writer.reader
    breakers = await breakers_of(reader.store, names, project=reader.project.id)
    now = program.worker.settings.clock()
    views = [_server(program, name, breakers[name], report, now) for name in names]
    return sorted(views, key=lambda one: (TROUBLE.index(one.state), one.server))


def _server(program: Assembly, name: str, breaker: Breaker, report: _ToolsReport, now: int) -> given.ServerView:
    known = program.toolbox.overview()
    off = program.toolbox.servers.off() if program.toolbox.servers is not None else {}
    changed = tuple(one for one in report.changes if _server_of(one.tool) == name)
    state, why = _state(name, breaker, off, known.unasked)
    state = ServerState.CHANGED if changed and state is ServerState.USED else state
    outages = next((one.outages for one in report.figures.servers if one.server == name), ())
    return given.ServerView(
        server=name,
        state=state,
        tools=tuple(spec.name for spec in known.specs if spec.server == name),
        why=why,
        until=shown(breaker.until) if state is ServerState.OPEN else "",
        failures=breaker.failures,
        whole=next(iter(figures_of(one for one in report.figures.by_server if one.tool == name)), None),
        figures=figures_of(one for one in report.figures.tools if _server_of(one.tool) == name),
        outages=tuple(_outage(one, now) for one in outages),
        changed=changed,
    )


def _server_of(tool: str) -> str:
    return tool.partition(".")[0]


def _state(name: str, breaker: Breaker, off: Mapping[str, str], unasked: Iterable[str]) -> tuple[ServerState, str]:
    if name in off:
        return ServerState.UNTRUSTED, off[name]
    if breaker.status is BreakerStatus.OPEN:
        return ServerState.OPEN, breaker.message
    if breaker.status is BreakerStatus.HALF_OPEN:
        return ServerState.HALF_OPEN, breaker.message
    return (ServerState.NOT_CALLED if name in unasked else ServerState.USED), ""


def _tool(spec: ToolSpec, off: Mapping[str, str], figures: given.ToolFiguresView | None) -> given.ToolView:
    return given.ToolView(
        name=spec.name,
        description=spec.description,
        effect=spec.effect,
        args=spec.args,
        output=spec.output,
        server=spec.server,
        undo=spec.undo,
        idempotent=spec.idempotent,
        off=off.get(spec.name, ""),
        figures=figures,
    )


def figures_of(figures: Iterable[ToolFigures]) -> tuple[given.ToolFiguresView, ...]:
    """The calls of tools as readers see them."""
    return tuple(
        given.ToolFiguresView(
            tool=one.tool,
            calls=one.calls,
            failures=one.failures,
            retries=one.retries,
            p50_ms=one.p50_ms,
            p95_ms=one.p95_ms,
            p99_ms=one.p99_ms,
            max_ms=one.max_ms,
            last=shown(one.last),
            is_undo=one.is_undo,
            slots=tuple(
                given.LatencySlot(
                    start=shown(slot.start),
                    calls=slot.calls,
                    failed=slot.failed,
                    p50_ms=slot.p50_ms,
                    p95_ms=slot.p95_ms,
                )
                for slot in one.slots
            ),
        )
        for one in figures
    )


def _outage(one: Outage, now: int) -> given.OutageView:
    return given.OutageView(
        opened=shown(one.opened),
        reason=one.reason,
        failures=one.failures,
        openings=one.openings,
        probes=one.probes,
        lasted_ms=(one.closed or now) - one.opened,
        closed=shown(one.closed),
        until="" if one.closed else shown(one.until),
    )


# --- rules ----------------------------------------------------------------------------------------


async def list_rules(call: ApiCall) -> given.RuleList:
    """The rules that checks can name here."""
    shelf = rules_of(call.program.writer.reader.settings)
    cards = matching(
        call.query.q, list(await shelf.cards()), heading=lambda card: card.name, text=lambda card: card.summary
    )
    return given.RuleList(rules=tuple(map(_rule, cards)), broken=dict(shelf.broken))


async def show_rule(call: ApiCall) -> given.RuleView:
    """One rule."""
    name = str(call.path["rule"])
    shelf = rules_of(call.program.writer.reader.settings)
    card = await shelf.card(name)
    if card is None:
        raise NotFound(f"there is no rule {name[:100]!r}", hint=did_you_mean(name, sorted(shelf.names())))
    return _rule(card)


def _rule(card: RuleCard) -> given.RuleView:
    return given.RuleView(
        name=card.name,
        summary=card.summary,
        looks_at=card.looks_at.value,
        reads=card.reads.value,
        parameters=card.parameters,
        required=card.required,
        origin=card.origin,
        version=card.version,
        timeout=card.timeout,
        example=card.example,
    )
