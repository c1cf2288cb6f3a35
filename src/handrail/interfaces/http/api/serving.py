"""The server itself: figures so far, doctor, settings, projects, clients, about, session."""

from __future__ import annotations

import asyncio
import platform
from collections import Counter
from importlib.metadata import version
from typing import Final

from msgspec import UNSET

from handrail.assembly.opening import Assembly
from handrail.assembly.secrets import secrets_of
from handrail.domain.health.check import CheckLevel
from handrail.domain.journal.projection import RunRow
from handrail.domain.policy.actor import AGENT_PREFIX, kind_of, name_of
from handrail.domain.project import opening
from handrail.domain.trust.decision import COMMAND as TRUST
from handrail.engine.fleet.node_table import pause_node
from handrail.engine.reading.heard import HeardReader, LiveSession
from handrail.engine.reading.node_view import NodesView, NodeView, node_view
from handrail.engine.reading.tool_stats import tool_figures
from handrail.interfaces.health.home_checks import clocks, home_checks
from handrail.interfaces.health.live_checks import ProgramHealth
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.api.instants import instant_of, shown
from handrail.interfaces.http.api.run_listing import newest_rows, project_of
from handrail.interfaces.http.api.tooling import figures_of
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import server as given
from handrail.interfaces.project_rows import project_rows
from handrail.interfaces.setting_rows import project_file, setting_rows

WORKFLOWS_SHOWN: Final = 100
DAYS_SHOWN: Final = 60
NOTE: Final = "a program that runs as you can act as you here"
CHANGED: Final = "the configuration has changed, but this server still uses what it read: restart `handrail serve`"


async def statistics(call: ApiCall) -> given.Statistics:
    """Runs by outcome, workflow and day, and the calls of tools."""
    query: asked.StatisticsQuery = call.query
    program = call.program
    since = instant_of(query.since, "since", now=program.worker.settings.clock(), default=0)
    project = project_of(query.project, program)
    rows = [
        row
        for row in await newest_rows(program, project)
        if row.started >= since and (not query.workflow or row.workflow.partition("@")[0] == query.workflow)
    ]
    report = await tool_figures(program.writer.reader.store, since=since, project=project)
    return given.Statistics(
        runs=len(rows),
        statuses=Counter(row.status for row in rows),
        workflows=_by_workflow(rows),
        days=_by_day(rows),
        tools=figures_of(report.tools),
        since=shown(since),
        is_cut=report.is_cut,
    )


def _by_workflow(rows: list[RunRow]) -> tuple[given.WorkflowFigures, ...]:
    groups: dict[str, list[RunRow]] = {}
    for row in rows:
        groups.setdefault(row.workflow.partition("@")[0], []).append(row)
    largest = sorted(groups.items(), key=lambda one: (-len(one[1]), one[0]))[:WORKFLOWS_SHOWN]
    return tuple(_figures(name, group) for name, group in largest)


def _figures(name: str, rows: list[RunRow]) -> given.WorkflowFigures:
    took = sorted(row.ended - row.started for row in rows if row.ended)
    return given.WorkflowFigures(
        workflow=name,
        runs=len(rows),
        statuses=Counter(row.status for row in rows),
        p50_ms=took[len(took) // 2] if took else None,
        p95_ms=took[len(took) * 95 // 100] if took else None,
    )


def _by_day(rows: list[RunRow]) -> tuple[given.DayFigures, ...]:
    days: dict[str, Counter[str]] = {}
    for row in rows:
        days.setdefault(shown(row.started)[:10], Counter())[row.status] += 1
    latest = sorted(days.items())[-DAYS_SHOWN:]
    return tuple(given.DayFigures(day=day, statuses=statuses) for day, statuses in latest)


async def doctor(call: ApiCall) -> given.DoctorReport:
    """Check what this server needs."""
    settings = call.program.writer.reader.settings

    async def program() -> Assembly:
        return call.program

    checks = await ProgramHealth(settings, program, lambda: [call.program]).checks()
    live = {check.name for check in checks}  # this process knows more of these than a look from outside
    checks += [check async for check in home_checks(settings, started=clocks()) if check.name not in live]
    return given.DoctorReport(
        ok=not any(check.level is CheckLevel.FAIL for check in checks),
        checks=tuple(
            given.DoctorFinding(
                name=one.name,
                level=one.level.value,
                message=one.message,
                fix=one.fix,
                age_ms=None if one.age_ms is UNSET else one.age_ms,
            )
            for one in checks
        ),
        at=shown(call.program.worker.settings.clock()),
    )


async def list_settings(call: ApiCall) -> given.SettingList:
    """The settings in effect."""
    settings = call.program.writer.reader.settings
    rows = [
        given.SettingView(setting=one.setting, value=one.value, origin=one.origin) for one in setting_rows(settings)
    ]
    trust = settings.trust
    if trust.is_off:
        rows += [
            given.SettingView(setting=one.name, value=one.text, origin=project_file(settings), is_off=True)
            for one in trust.settings
        ]
    hint = f"look at what is off, then run `{TRUST}`" if trust.is_off else ""
    return given.SettingList(settings=tuple(rows), trust=trust.state.value, hint=hint)


async def list_secrets(call: ApiCall) -> given.SecretList:
    """The secrets that are stored, by name."""
    cards = await asyncio.to_thread(secrets_of(call.program.writer.reader.settings).cards)
    return given.SecretList(
        secrets=tuple(
            given.SecretView(name=one.name, stored_in=one.kept, set=shown(one.set), given_to=tuple(one.given_to))
            for one in cards
        )
    )


async def list_projects(call: ApiCall) -> given.ProjectList:
    """The projects of this home."""
    rows = await project_rows(call.program.writer.reader)
    opened = call.server.projects.opened
    return given.ProjectList(
        projects=tuple(
            given.ProjectEntry(
                id=one.id,
                name=one.name,
                folder=one.folder,
                is_here=one.id == (call.caller.project or call.project.id),
                is_open=one.id in opened,
                command="" if one.id in opened or not one.exists else opening(one.folder),
                exists=one.exists,
                open=one.open,
                runs=one.runs,
            )
            for one in rows
        )
    )


async def list_clients(call: ApiCall) -> given.ClientList:
    """Who is connected now, and who was last heard of in the journal."""
    sessions = [LiveSession(actor=f"{AGENT_PREFIX}{one.name}", heard=one.heard) for one in call.server.connected()]
    heard = await HeardReader(call.program.writer.reader.ledger).all(sessions)
    return given.ClientList(
        clients=tuple(
            given.ClientView(
                name=name_of(one.actor),
                kind=kind_of(one.actor).value,
                connected=one.is_connected,
                heard=one.last,
                run=one.run,
                step=one.step,
            )
            for one in heard
        )
    )


async def list_nodes(call: ApiCall) -> NodesView:
    """Who executes runs here."""
    return await call.program.writer.reader.nodes()


async def pause_a_node(call: ApiCall) -> NodeView:
    """Let a node take no more runs."""
    return await _pause(call, is_paused=True)


async def resume_a_node(call: ApiCall) -> NodeView:
    """Let a node take runs again."""
    return await _pause(call, is_paused=False)


async def _pause(call: ApiCall, *, is_paused: bool) -> NodeView:
    store = call.program.writer.reader.store
    changed = await pause_node(store.nodes(), call.path["node"], actor=call.caller.actor, is_paused=is_paused)
    return node_view(changed)


async def about(call: ApiCall) -> given.AboutServer:
    """This server."""
    reader = call.program.writer.reader
    events = (await reader.store.end()).events
    rules = call.program.writer.control.answers.rules
    journal = reader.settings.journal
    return given.AboutServer(
        version=version("handrail"),
        python=platform.python_version(),
        home=str(reader.settings.home),
        project=reader.project,
        person=call.caller.actor,
        url=call.server.url,
        started=shown(call.server.started),
        events=events,
        journal_bytes=journal.stat().st_size if journal.exists() else 0,
        readers=call.server.feed.readers,
        channels=rules.channels,
        needs_passphrase=rules.passphrase,
        note=NOTE,
        restart=CHANGED if await call.server.projects.is_changed(call.program) else "",
    )


async def session(call: ApiCall) -> given.WhoAsks:
    """Who asks."""
    opened = call.caller.session
    return given.WhoAsks(
        person=call.caller.actor,
        channel=call.caller.channel,
        expires=shown(opened.expires * 1_000) if opened is not None else "",
        project=call.caller.project or call.project.id,
    )
