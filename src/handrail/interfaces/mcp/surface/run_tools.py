"""The runner's tools: keep a plan, run it, see where it stands, steer it, and note what was undone by hand.

Handlers translate: words in, a call of the engine, words out. Nothing is decided here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from handrail.assembly import Working
from handrail.domain.command import FailUndo, RecordAction, StartRun
from handrail.domain.definition import Category, Definition
from handrail.domain.duration import duration_ms
from handrail.domain.errors import Conflict, Forbidden, Invalid, Limited
from handrail.domain.event import ActionKind, ActionRecorded, How, Outcome, StepCompensated
from handrail.domain.graph import waves
from handrail.domain.json import digest
from handrail.domain.legal import Action
from handrail.domain.path import locate
from handrail.domain.pin import NO_CARDS, Card
from handrail.domain.plan import Plan
from handrail.domain.redaction import redact_inputs
from handrail.domain.rehearsal import rehearse
from handrail.domain.run import Run
from handrail.domain.status import StepStatus
from handrail.domain.works import tools_in, tools_named
from handrail.engine.control import fork_key
from handrail.engine.view import Detail, Status
from handrail.interfaces.mcp.surface import arguments as args
from handrail.interfaces.mcp.surface.answering import compact, reply, status_data, status_words
from handrail.interfaces.mcp.surface.approval import approval_answer, approval_question, person_here
from handrail.interfaces.mcp.surface.caller import Caller, Reply, Response, TaskView
from handrail.interfaces.mcp.surface.desk import Desk
from handrail.interfaces.mcp.surface.guide_tools import startable
from handrail.interfaces.mcp.surface.refusal import finding_data
from handrail.interfaces.mcp.surface.repetition import OF_UNDO, was_granted, was_recorded
from handrail.interfaces.mcp.surface.run_list import open_runs
from handrail.interfaces.mcp.surface.run_tasks import task_of
from handrail.library.loading import Loaded, valid

WAIT_MS_MAX: Final = 25_000
ANSWERS: Final = frozenset({Action.APPROVE, Action.REJECT})


async def save_plan(desk: Desk, caller: Caller, given: args.SavePlan) -> Reply:
    """Keep a plan that can be run here."""
    at_work = await desk.open()
    cards = await at_work.toolbox.meet(tools_named(given.plan))
    loaded = at_work.books.load_plan(given.plan, survey=at_work.survey)
    return await saved(at_work, caller, loaded, given.note, cards)


async def saved(
    at_work: Working, caller: Caller, loaded: Loaded, note: str, cards: Mapping[str, Card] = NO_CARDS
) -> Reply:
    """Keep a plan that was found to be sound, pinned to what servers say of its tools."""
    definition = valid(loaded, "the plan")
    before = await at_work.handrail.plans.get(definition.id)
    plan = await at_work.handrail.plans.save(definition, actor=caller.actor, note=note, cards=cards)
    return _plan(plan, definition, loaded, is_repeated=plan.n == before.n)


def _plan(plan: Plan, definition: Definition, loaded: Loaded, *, is_repeated: bool) -> Reply:
    newest = plan.newest
    data: dict[str, Any] = {"plan": plan.id, "version": newest.number, "hash": newest.definition}
    data["waves"] = waves(definition.steps)
    data["findings"] = [finding_data(finding) for finding in loaded.findings]
    data["receipt"] = plan.receipt
    if is_repeated:
        data["repeated"] = True
    order = " -> ".join("+".join(wave) for wave in data["waves"])
    return reply(data, f"plan {plan.id} version {newest.number}: {compact(order)}\nreceipt {plan.receipt}")


async def execute_plan(desk: Desk, caller: Caller, given: args.ExecutePlan) -> Reply | TaskView:
    """Run a plan, a workflow or a definition, or say what would be run."""
    at_work = await desk.open()
    wait_ms = duration_ms(given.wait)
    if wait_ms > WAIT_MS_MAX:
        raise Limited("a call waits for 25s at most", hint="leave `wait` out and look with status: the run goes on")
    definition, pins = await _definition(at_work, given)
    inputs = startable(at_work, definition, given.inputs)
    if given.dry_run:
        shown, _ = redact_inputs(inputs, definition.inputs)
        steps = msgspec.to_builtins(rehearse(definition, shown, at_work.toolbox.effects()))
        lines = [f"{one['id']}: {one['kind']} {compact(one)}" for wave in steps for one in wave]
        return reply({"status": "dry_run", "workflow": definition.id, "waves": steps}, "\n".join(lines))
    asked = digest([given.plan, given.workflow, given.definition, given.inputs])
    ask = StartRun(key=given.idempotency_key, asked=asked if given.idempotency_key else "", pins=pins)
    known = await at_work.handrail.dispatch.begun(ask)
    run = known or await at_work.worker.start(definition, inputs, actor=caller.actor, ask=ask)
    if wait_ms and caller.wants_tasks:
        return await task_of(at_work, run.id)
    await _settled(at_work, caller, run.id, wait_ms / 1_000)
    more = {"repeated": True} if known else {}
    return told(await at_work.lookout.status(run.id), **more)


async def _definition(at_work: Working, given: args.ExecutePlan) -> tuple[Definition, Mapping[str, str]]:
    """What is to be run, and what its tools were when it was saved."""
    named = [name for name in ("plan", "workflow", "definition") if getattr(given, name)]
    if len(named) != 1:
        raise Invalid("name what to run", hint="give exactly one of plan, workflow and definition")
    if given.definition is not None:
        await at_work.toolbox.meet(tools_named(given.definition))
        loaded = at_work.books.load_plan(given.definition, survey=at_work.survey)
        return valid(loaded, "the definition"), {}
    if given.workflow:
        definition = valid(at_work.books.load(given.workflow), given.workflow)
        await at_work.toolbox.meet(tools_in(definition))
        return definition, {}
    definition, pins = await at_work.handrail.plans.newest(given.plan)
    await at_work.toolbox.meet(tools_in(definition))
    return definition, pins


async def _settled(at_work: Working, caller: Caller, run: str, within_s: float) -> None:
    """Wait a while for a run to end, or to wait for somebody, and tell how far it is."""
    loop = asyncio.get_running_loop()
    until_s, told_done = loop.time() + within_s, -1
    with at_work.guide.bell.listening(run) as ear:
        while (left_s := until_s - loop.time()) > 0 and not await at_work.lookout.is_settled(run):
            seen = await at_work.lookout.status(run)
            if seen.progress.done > told_done:
                told_done = seen.progress.done
                await caller.progress(told_done, seen.progress.total, seen.status.value)
            await ear.next_change(within_s=left_s)


async def status(desk: Desk, _: Caller, given: args.GetStatus) -> Reply:
    """Where a run stands, or which are open."""
    at_work = await desk.open()
    if not given.run:
        return await open_runs(at_work, "status")
    within = at_work.worker.within(given.run)
    return told(await at_work.lookout.status(given.run, detail=Detail(given.detail), within=within))


def told(seen: Status, **more: Any) -> Reply:
    """A run's status as an answer."""
    data = {**status_data(seen), **more}
    return reply(data, status_words(data))


async def control(desk: Desk, caller: Caller, given: args.ControlRun) -> Reply:
    """Steer a run."""
    at_work = await desk.open()
    reason = f"{given.reason} (for {given.by})" if given.by else given.reason
    actor = caller.actor
    action = given.action
    if action in ANSWERS and caller.can_ask and not desk.settings.choices.agents_may_approve:
        action, reason, actor = await _answered(at_work, caller, given)
    output = None if given.output is UNSET else given.output
    before = await at_work.handrail.dispatch.current(given.run)
    if action is Action.FORK:
        key = fork_key(before, given.step, actor=actor, reason=reason.strip())
        before = await at_work.handrail.dispatch.begun(StartRun(key=key)) or before
    try:
        run = await at_work.control.act(given.run, action, actor=actor, reason=reason, step=given.step, output=output)
    except (Conflict, Forbidden):
        if await _was_said(at_work, caller, given, (action, reason, actor)):
            return told(await at_work.lookout.status(given.run), repeated=True)
        raise
    more = {"repeated": True} if (run.id, run.n) == (before.id, before.n) else {}
    return told(await at_work.lookout.status(run.id), **more)


async def _was_said(at_work: Working, caller: Caller, given: args.ControlRun, said: tuple[Action, str, str]) -> bool:
    """Whether the same was granted just before, by the caller's word or by that of the person who was asked."""
    action, reason, actor = said
    run, step = given.run, given.step
    if await was_granted(at_work, run, action, actor=actor, reason=reason, step=step):
        return True
    is_asked = action in ANSWERS and caller.can_ask
    return is_asked and await was_granted(at_work, run, action, actor=person_here(), reason=None, step=step)


async def _answered(at_work: Working, caller: Caller, given: args.ControlRun) -> tuple[Action, str, str]:
    """What the person behind the client says to an approval, with their reason and name."""
    run = await at_work.handrail.dispatch.current(given.run)
    step = given.step or _asked_step(run)
    state = run.step(step)
    if state.status is not StepStatus.WAITING or not state.digest:
        return given.action, given.reason, caller.actor  # control says what is wrong with that
    asked = state.values if isinstance(state.values, dict) else {}
    content = None if given.output is UNSET else given.output
    text = str(asked.get("text", ""))
    if content is not None:
        text = f"{text}\n\nThe answer would be: {compact(content)}"
    question = approval_question(run.id, step, text)
    answer = await caller.ask("approval", question, about=digest([state.digest, state.started, content]))
    if answer.response is Response.CANCEL:
        raise Forbidden("the user did not answer", hint="ask them again later, or let them run `handrail approve`")
    action, reason = approval_answer(answer, otherwise=f"asked through the client: {given.reason}")
    return action, reason, person_here()


def _asked_step(run: Run) -> str:
    waiting = [path for path, state in run.steps.items() if state.status is StepStatus.WAITING and state.digest]
    return waiting[0] if len(waiting) == 1 else ""


async def record_compensation(desk: Desk, caller: Caller, given: args.RecordCompensation) -> Reply:
    """Note that a step was undone by hand, needs no undo, or could not be undone."""
    at_work = await desk.open()
    run = await at_work.handrail.dispatch.current(given.run)
    event = _undone(given)
    known = await was_recorded(at_work, run, event, actor=caller.actor, then=OF_UNDO)
    if known is None:
        run = await _noted(at_work, caller, run, event)
    seen = await at_work.lookout.status(run.id)
    data: dict[str, Any] = {"run": run.id, "step": given.step, "status": seen.status.value, "receipt": seen.receipt}
    if known is not None:
        data["repeated"] = True
    as_before = ", as before" if known is not None else ""
    words = f"noted{as_before}: {given.step} {given.outcome} by hand; {run.id} {seen.status.value}\n{seen.receipt}"
    return reply(data, words)


def _undone(given: args.RecordCompensation) -> StepCompensated | ActionRecorded:
    """What is noted."""
    if given.outcome == "failed":
        return ActionRecorded(
            description=given.description,
            step=given.step,
            outcome=Outcome.FAILED,
            action=ActionKind.ROLLED_BACK,
            details=given.details,
        )
    how = How.RECORDED if given.outcome == "compensated" else How.NOT_NEEDED
    return StepCompensated(step=given.step, how=how, description=given.description, details=given.details)


async def _noted(at_work: Working, caller: Caller, run: Run, event: StepCompensated | ActionRecorded) -> Run:
    if isinstance(event, StepCompensated):
        return await at_work.control.record_compensation(
            run.id,
            event.step,
            how=event.how,
            description=event.description,
            details=event.details,
            actor=caller.actor,
        )
    dispatch, step = at_work.handrail.dispatch, event.step or ""
    locate(await dispatch.definition(run.definition), step)
    note = RecordAction(**msgspec.structs.asdict(event))
    failed = FailUndo(step=step, category=Category.TOOL_ERROR, message=event.description)
    is_under_way = run.step(step).status is StepStatus.COMPENSATING
    return await dispatch.grant(run.id, note, *([failed] if is_under_way else []), actor=caller.actor)
