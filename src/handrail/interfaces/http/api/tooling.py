"""Tools, servers with their circuit breakers, and rules. No server is started for a look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from handrail.assembly.checks import rules_of
from handrail.assembly.opening import Assembly
from handrail.assembly.tools import tools_off
from handrail.domain.checks.rule import RuleCard
from handrail.domain.errors import NotFound
from handrail.domain.scheduling.breaker import Breaker, BreakerStatus
from handrail.domain.suggestion import did_you_mean
from handrail.engine.reading.tool_stats import ToolReport, breakers_of, tool_figures
from handrail.engine.reading.tool_tally import Outage, ToolFigures
from handrail.engine.tool import ToolSpec
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.api.instants import instant_of, shown
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import tools as given
from handrail.interfaces.http.contract.given.tools import ServerState
from handrail.interfaces.http.edge.cursors import cursor_of, number_in
from handrail.library.shelf.search_words import matching

FIGURES_SINCE: Final = "24h"
TROUBLE: Final = (ServerState.OPEN, ServerState.HALF_OPEN, ServerState.UNTRUSTED, ServerState.UNASKED, ServerState.USED)


async def list_tools(call: ApiCall) -> given.ToolPage:
    """Servers, those in trouble first, and tools."""
    query: asked.ToolsQuery = call.query
    program = call.program
    known = program.toolbox.overview()
    specs = [spec for spec in known.specs if not query.server or spec.server == query.server]
    found = matching(query.q, specs, heading=lambda spec: spec.name, text=lambda spec: spec.description)
    off = tools_off(program.writer.reader.settings)
    start = number_in(query.cursor) or 0
    end = start + query.limit
    servers = [one for one in await _servers(call, FIGURES_SINCE) if not query.server or one.server == query.server]
    return given.ToolPage(
        servers=tuple(servers),
        tools=tuple(_tool(spec, off) for spec in found[start:end]),
        total=len(found),
        broken=dict(program.toolbox.broken),
        cursor=cursor_of(end) if end < len(found) else "",
    )


async def show_server(call: ApiCall) -> given.ServerView:
    """One server: tools, figures, outages."""
    name = str(call.path["server"])
    servers = await _servers(call, call.query.since)
    found = next((one for one in servers if one.server == name), None)
    if found is None:
        names = [one.server for one in servers]
        hint = did_you_mean(name, names) or "declare it in .handrail/tools.json, under mcpServers"
        raise NotFound(f"there is no server {name[:100]!r}", hint=hint)
    return found


async def _servers(call: ApiCall, since: str) -> list[given.ServerView]:
    program = call.program
    servers = program.toolbox.servers
    names = sorted(servers.names()) if servers is not None else []
    reader = program.writer.reader
    now = program.worker.settings.clock()
    start = instant_of(since, "since", now=now, default=0)
    report = await tool_figures(reader.store, since=start, project=reader.project.id)
    breakers = await breakers_of(reader.store, names, project=reader.project.id)
    views = [_server(program, name, breakers[name], report, now) for name in names]
    return sorted(views, key=lambda one: (TROUBLE.index(one.state), one.server))


def _server(program: Assembly, name: str, breaker: Breaker, report: ToolReport, now: int) -> given.ServerView:
    known = program.toolbox.overview()
    off = program.toolbox.servers.off() if program.toolbox.servers is not None else {}
    state, why = _state(name, breaker, off, known.unasked)
    outages = next((one.outages for one in report.servers if one.server == name), ())
    return given.ServerView(
        server=name,
        state=state,
        tools=tuple(spec.name for spec in known.specs if spec.server == name),
        why=why,
        until=shown(breaker.until) if state is ServerState.OPEN else "",
        failures=breaker.failures,
        figures=figures_of(one for one in report.tools if one.tool.partition(".")[0] == name),
        outages=tuple(_outage(one, now) for one in outages),
    )


def _state(name: str, breaker: Breaker, off: Mapping[str, str], unasked: Iterable[str]) -> tuple[ServerState, str]:
    if name in off:
        return ServerState.UNTRUSTED, off[name]
    if breaker.status is BreakerStatus.OPEN:
        return ServerState.OPEN, breaker.message
    if breaker.status is BreakerStatus.HALF_OPEN:
        return ServerState.HALF_OPEN, breaker.message
    return (ServerState.UNASKED if name in unasked else ServerState.USED), ""


def _tool(spec: ToolSpec, off: Mapping[str, str]) -> given.ToolView:
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
