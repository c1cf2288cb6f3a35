"""The journal's tools: write down plans, decisions and actions, and look them up again, with proof.

Handlers translate: words in, a call of the engine, words out. Nothing is decided here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET

from handrail.assembly import Working
from handrail.domain.check import blocks
from handrail.domain.command import CancelRun, Command, FinishRun, StartRun
from handrail.domain.command import RecordAction as ActionCommand
from handrail.domain.command import RecordDecision as DecisionCommand
from handrail.domain.errors import Conflict, Invalid
from handrail.domain.event import ActionKind, ActionRecorded, DecisionRecorded, Mode, Outcome
from handrail.domain.fact import granted
from handrail.domain.path import top_lane
from handrail.domain.rounds import outputs_of
from handrail.domain.run import Run
from handrail.domain.status import RUN_OPEN, STEP_SATISFIED, RunStatus
from handrail.engine.journal import FAR_BEHIND
from handrail.engine.ledger import Query
from handrail.engine.view import shown_status
from handrail.interfaces.mcp.surface import arguments as args
from handrail.interfaces.mcp.surface.answering import reply
from handrail.interfaces.mcp.surface.caller import Caller, Reply
from handrail.interfaces.mcp.surface.desk import Desk
from handrail.interfaces.mcp.surface.ledger_page import ledger_page
from handrail.interfaces.mcp.surface.paging import place_of
from handrail.interfaces.mcp.surface.repetition import OF_ACTION, was_recorded
from handrail.interfaces.mcp.surface.run_tools import saved
from handrail.library.inputs import check_inputs

READY_MAX: Final = 50


async def record_plan(desk: Desk, caller: Caller, given: args.RecordPlan) -> Reply:
    """Keep a plan that the agent performs itself: its tools need not be known here."""
    at_work = await desk.open()
    return await saved(at_work, caller, at_work.books.load_plan(given.plan), "")


async def record_execution_start(desk: Desk, caller: Caller, given: args.RecordStart) -> Reply:
    """Begin a run whose steps the agent performs itself."""
    at_work = await desk.open()
    definition, _ = await at_work.handrail.plans.newest(given.plan)
    inputs, findings = check_inputs(definition, dict(given.inputs))
    if blocks(findings):
        raise Invalid(f"{given.plan} can't start with these inputs", findings=findings)
    ask = StartRun(mode=Mode.RECORD, goal=given.note)
    run = await at_work.worker.start(definition, inputs, actor=caller.actor, ask=ask)
    return await _reported(at_work, run)


async def record_decision(desk: Desk, caller: Caller, given: args.RecordDecision) -> Reply:
    """Write down why the agent chose."""
    command = DecisionCommand(
        decision=given.decision,
        reason=given.reason,
        step=given.step or None,
        alternatives=given.alternatives,
        details=given.details,
    )
    at_work = await desk.open()
    run = await at_work.handrail.dispatch.current(given.run)
    event = granted(DecisionRecorded, command)
    if known := await was_recorded(at_work, run, event, actor=caller.actor):
        return _noted(run, f"{known.n}:{known.hash.hex()[:16]}", is_repeated=True)
    run = await at_work.handrail.dispatch.grant(given.run, command, actor=caller.actor)
    return _noted(run, run.receipt, is_repeated=False)


def _noted(run: Run, receipt: str, *, is_repeated: bool) -> Reply:
    data: dict[str, Any] = {"run": run.id, "receipt": receipt}
    if is_repeated:
        data["repeated"] = True
    return reply(data, f"recorded in {run.id}{', as before' if is_repeated else ''}; receipt {receipt}")


async def record_action(desk: Desk, caller: Caller, given: args.RecordAction) -> Reply:
    """Write down what the agent did; in a recorded run its outcome moves the step."""
    at_work = await desk.open()
    dispatch = at_work.handrail.dispatch
    run = await dispatch.current(given.run)
    outcome = None if given.outcome is UNSET else Outcome(given.outcome)
    command = ActionCommand(
        description=given.description,
        step=given.step or None,
        outcome=outcome,
        action=ActionKind(given.kind),
        output=None if given.output is UNSET else given.output,
        details=given.details,
    )
    if await _is_repeated(at_work, run, command, caller.actor):
        return await _reported(at_work, await _ended(at_work, run, caller.actor), repeated=True)
    commands: list[Command] = [command]
    is_own = run.mode is Mode.RECORD and run.status in RUN_OPEN
    if is_own and not given.step and command.action is ActionKind.STOPPED:
        commands.append(CancelRun(reason=given.description))
    run = await dispatch.grant(given.run, *commands, actor=caller.actor)
    return await _reported(at_work, await _ended(at_work, run, caller.actor))


async def _is_repeated(at_work: Working, run: Run, command: ActionCommand, actor: str) -> bool:
    """Whether the same was reported just before, or what it reports has come about by it."""
    event = granted(ActionRecorded, command)
    if run.mode is not Mode.RECORD:
        return await was_recorded(at_work, run, event, actor=actor) is not None
    is_done = command.step is not None and run.step(command.step).status in STEP_SATISFIED
    known = await was_recorded(at_work, run, event, actor=actor, then=OF_ACTION, is_last=not is_done)
    return known is not None


async def _ended(at_work: Working, run: Run, actor: str) -> Run:
    """The run; ended, if the agent has reported on all of it."""
    if run.mode is not Mode.RECORD or run.status is not RunStatus.RUNNING:
        return run
    definition = await at_work.handrail.dispatch.definition(run.definition)
    if any(run.step(step.id).status not in STEP_SATISFIED for step in definition.steps):
        return run
    try:
        command = FinishRun(outputs=outputs_of(definition, run, top_lane(definition)))
    except Invalid as error:
        command = FinishRun(flaw=f"the outputs can't be worked out: {error}")
    try:
        return await at_work.handrail.dispatch.grant(run.id, command, actor=actor)
    except Conflict:  # somebody else has ended it meanwhile
        return await at_work.handrail.dispatch.current(run.id)


async def _reported(at_work: Working, run: Run, *, repeated: bool = False) -> Reply:
    definition = await at_work.handrail.dispatch.definition(run.definition)
    outlook = at_work.guide.horizon.outlook(run, definition, now=at_work.worker.terms.clock())
    ready = list(outlook.for_agent[:READY_MAX])
    status = shown_status(run, outlook).value
    data: dict[str, Any] = {"run": run.id, "status": status, "ready": ready, "receipt": run.receipt}
    if repeated:
        data["repeated"] = True
    following = f"next: {', '.join(ready)}" if ready else "nothing is left"
    return reply(data, f"{run.id} {status}; {following}\nreceipt {run.receipt}")


async def query_ledger(desk: Desk, _caller: Caller, given: args.QueryLedger) -> Reply:
    """Look up events, and prove them."""
    at_work = await desk.open()
    place, _, offset = given.cursor.partition("+")
    query = Query(
        stream=given.run,
        kinds=frozenset(given.kinds),
        step=given.step,
        actor=given.actor,
        text=given.text,
        since=_instant(given.since, "since", 0),
        until=_instant(given.until, "until", FAR_BEHIND),
        limit=given.limit,
        after=place_of(place),
    )
    found = await at_work.handrail.look.ledger.query(query)
    data, lines = ledger_page(found, offset=place_of(offset) or 0)
    if given.verify:
        verdict = await at_work.handrail.look.verify(stream=given.run or None)
        data["verified"] = {"ok": verdict.ok, "events": verdict.events}
        if verdict.first_bad is not None:
            data["verified"]["first_bad"] = msgspec.to_builtins(verdict.first_bad)
        lines.append(f"verified: {'sound' if verdict.ok else 'BROKEN'}, {verdict.events} events")
    if "cursor" in data:
        lines.append(f"more: cursor {data['cursor']}")
    return reply(data, "\n".join(lines) or "no such event")


def _instant(text: str, name: str, default: int) -> int:
    if not text:
        return default
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(f"{name} {text!r} is not an instant", hint="write it as 2026-11-15T18:04:11Z") from error
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return int(instant.timestamp() * 1_000)
