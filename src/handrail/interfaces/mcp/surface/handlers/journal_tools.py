"""The tools of the journal toolset: record plans, decisions and actions, look them up, and verify them.

Handlers only translate arguments into engine calls, and results into answers. Decisions are made in the engine."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET

from handrail.assembly.opening import Assembly
from handrail.domain.checks.finding import blocks
from handrail.domain.errors import Invalid
from handrail.domain.journal.event import ActionKind, ActionRecorded, DecisionRecorded, Mode, Outcome
from handrail.domain.journal.fact import granted
from handrail.domain.journal.kind_name import kinds_named
from handrail.domain.run.command import RecordAction, RecordDecision, StartRun
from handrail.domain.run.decide import comes_late
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_SATISFIED
from handrail.domain.run.step_path import locate
from handrail.engine.journal import FAR_FUTURE
from handrail.engine.reading.ledger import Query
from handrail.engine.reading.run_view import shown_status
from handrail.engine.reading.step_view import recorded_text
from handrail.interfaces.mcp.surface.answering import project_words, reply
from handrail.interfaces.mcp.surface.caller import Caller, ToolReply
from handrail.interfaces.mcp.surface.handlers import arguments as args
from handrail.interfaces.mcp.surface.handlers.run_tools import save
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.interfaces.mcp.surface.paging import place_of
from handrail.interfaces.mcp.surface.runs.ledger_page import ledger_page
from handrail.interfaces.mcp.surface.runs.repetition import OF_ACTION, was_recorded
from handrail.library.inputs import check_inputs

READY_MAX: Final = 50


async def record_plan(lazy: LazyProgram, caller: Caller, given: args.RecordPlanArguments) -> ToolReply:
    """Save a plan that the agent carries out itself; handrail doesn't need to know its tools."""
    program = await lazy.open()
    return await save(program, caller, program.library.load_plan(given.plan), "")


async def record_execution_start(
    lazy: LazyProgram, caller: Caller, given: args.RecordExecutionStartArguments
) -> ToolReply:
    """Start a run whose steps the agent carries out itself."""
    program = await lazy.open()
    definition, _ = await program.writer.plans.newest(given.plan)
    inputs, findings = check_inputs(definition, dict(given.inputs))
    if blocks(findings):
        raise Invalid(f"{given.plan} can't start with these inputs", findings=findings)
    ask = StartRun(mode=Mode.RECORD, goal=given.note)
    run = await program.worker.start(definition, inputs, actor=caller.actor, ask=ask)
    return await _progress_reply(program, await program.recorder.settle(run))


async def record_decision(lazy: LazyProgram, caller: Caller, given: args.RecordDecisionArguments) -> ToolReply:
    """Record a decision of the agent, with its reason."""
    command = RecordDecision(
        decision=given.decision,
        reason=given.reason,
        step=given.step or None,
        alternatives=given.alternatives,
        details=given.details,
    )
    program = await lazy.open()
    run = await program.writer.dispatch.own(given.run)
    event = granted(DecisionRecorded, command)
    if known := await was_recorded(program, run, event, actor=caller.actor):
        return _receipt_reply(run, f"{known.n}:{known.hash.hex()[:16]}", is_repeated=True)
    run = await program.writer.dispatch.grant(given.run, command, actor=caller.actor)
    return _receipt_reply(run, run.receipt, is_repeated=False)


def _receipt_reply(run: Run, receipt: str, *, is_repeated: bool) -> ToolReply:
    data: dict[str, Any] = {"run": run.id, "receipt": receipt}
    if is_repeated:
        data["repeated"] = True
    return reply(data, f"recorded in {run.id}{', as before' if is_repeated else ''}; receipt {receipt}")


async def record_action(lazy: LazyProgram, caller: Caller, given: args.RecordActionArguments) -> ToolReply:
    """Record an action of the agent; in a recorded run its outcome changes the step's status."""
    program = await lazy.open()
    dispatch = program.writer.dispatch
    run = await dispatch.own(given.run)
    outcome = None if given.outcome is UNSET else Outcome(given.outcome)
    command = RecordAction(
        description=given.description,
        step=given.step or None,
        outcome=outcome,
        action=ActionKind(given.kind),
        output=None if given.output is UNSET else given.output,
        details=given.details,
    )
    if await _is_repeated(program, run, command, caller.actor):
        return await _progress_reply(program, await program.recorder.settle(run), repeated=True)
    after = await program.recorder.record(run, command, actor=caller.actor)
    return await _progress_reply(program, after, note_on=_late_step(run, command))


def _late_step(run: Run, command: RecordAction) -> str:
    """The step that a report does not move, because the run was over before; empty if there is none."""
    moves = run.mode is Mode.RECORD and command.outcome is not None and command.step is not None
    return command.step or "" if moves and comes_late(run) else ""


async def _is_repeated(program: Assembly, run: Run, command: RecordAction, actor: str) -> bool:
    """Whether the same caller has just recorded the same action: the repeat of a call whose answer was lost."""
    event = granted(ActionRecorded, command)
    if run.mode is not Mode.RECORD:
        return await was_recorded(program, run, event, actor=actor) is not None
    is_done = command.step is not None and run.step(command.step).status in STEP_SATISFIED
    known = await was_recorded(program, run, event, actor=actor, then=OF_ACTION, is_last=not is_done)
    return known is not None


async def _progress_reply(program: Assembly, run: Run, *, repeated: bool = False, note_on: str = "") -> ToolReply:
    """Where a run stands after a report; `note_on` is a step that was over before, so that the report is a note."""
    definition = await program.writer.dispatch.definition(run.definition)
    prospect = program.guide.agenda_cache.prospect(run, definition, now=program.worker.settings.clock())
    ready = list(prospect.for_agent[:READY_MAX])
    texts = {path: recorded_text(run, locate(definition, path).step) for path in ready}
    status = shown_status(run, prospect).value
    data: dict[str, Any] = {"run": run.id, "status": status, "ready": ready, "receipt": run.receipt}
    if any(texts.values()):
        data["steps"] = texts
    if repeated:
        data["repeated"] = True
    following = f"next: {', '.join(ready)}" if ready else "no steps left"
    lines = [f"{run.id} {status}; {following}", *(f"- {path}: {text}" for path, text in texts.items() if text)]
    if note_on:
        data["note"] = f"recorded as a note: {note_on} stays {run.step(note_on).status.value}"
        lines.append(data["note"])
    return reply(data, "\n".join([*lines, f"receipt {run.receipt}"]))


async def query_ledger(lazy: LazyProgram, _caller: Caller, given: args.QueryLedgerArguments) -> ToolReply:
    """Look up events, and verify them."""
    program = await lazy.open()
    place, _, offset = given.cursor.partition("+")
    look = program.writer.reader
    stream = await look.ledger.stream_of(given.run, look.project.id)
    query = Query(
        stream=stream,
        kinds=kinds_named(given.kinds),
        step=given.step,
        actor=given.actor,
        text=given.text,
        since=_instant(given.since, "since", 0),
        until=_instant(given.until, "until", FAR_FUTURE),
        limit=given.limit,
        after=place_of(place),
        project=program.writer.dispatch.project,
    )
    found = await look.ledger.query(query)
    data, lines = ledger_page(found, offset=place_of(offset) or 0)
    if other := await program.run_reader.other_project(given.run):
        data["project"] = msgspec.to_builtins(other)
        lines = [*project_words(data["project"]), *lines]
    if given.verify:
        verdict = await look.verify(stream=stream or None)
        data["verified"] = {"ok": verdict.ok, "events": verdict.events}
        if verdict.first_bad is not None:
            data["verified"]["first_bad"] = msgspec.to_builtins(verdict.first_bad)
        lines.append(f"verified: {'ok' if verdict.ok else 'BROKEN'}, {verdict.events} events")
    if "cursor" in data:
        lines.append(f"more: cursor {data['cursor']}")
    return reply(data, "\n".join(lines) or "no matching events")


def _instant(text: str, name: str, default: int) -> int:
    if not text:
        return default
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(f"{name} {text!r} is not a valid time", hint="write it as 2026-11-15T18:04:11Z") from error
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return int(instant.timestamp() * 1_000)
