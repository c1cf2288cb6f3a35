"""The tools of the run toolset: save a plan, run it, see its status, control it, record what was undone by hand.

Handlers only translate arguments into engine calls, and results into answers. Decisions are made in the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from shlex import quote
from typing import Any, Final

import msgspec
from msgspec import UNSET

from handrail.assembly.opening import Assembly
from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.graph import waves
from handrail.domain.definition.model import Category, Definition
from handrail.domain.definition.tool_pin import NO_CARDS, Card
from handrail.domain.definition.work_items import tools_in, tools_named
from handrail.domain.errors import Conflict, Forbidden, Invalid, Limited
from handrail.domain.journal.event import ActionKind, ActionRecorded, How, Outcome, StepCompensated
from handrail.domain.json import digest
from handrail.domain.plan import Plan
from handrail.domain.policy.actor import name_of
from handrail.domain.preview.control_preview import ControlAsked
from handrail.domain.preview.values import EffectLeft, Lasting
from handrail.domain.rehearsal.dry_run import rehearse
from handrail.domain.run.command import FailUndo, RecordAction, StartRun
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.domain.run.step_path import locate
from handrail.domain.secrets.redaction import redact_inputs
from handrail.engine.reading.run_view import Detail, Status
from handrail.engine.running.answers import ANSWERS, AnswerGiven
from handrail.engine.running.control import fork_key
from handrail.interfaces.mcp.surface.answering import compact, only_offered, reply, status_data, status_words
from handrail.interfaces.mcp.surface.approval import approval_answer, approval_question, too_long_to_ask
from handrail.interfaces.mcp.surface.caller import Caller, Response, TaskView, ToolReply
from handrail.interfaces.mcp.surface.handlers import arguments as args
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.interfaces.mcp.surface.refusal import finding_data, finding_words
from handrail.interfaces.mcp.surface.runs.repetition import OF_UNDO, was_granted, was_recorded
from handrail.interfaces.mcp.surface.runs.run_list import open_runs
from handrail.interfaces.mcp.surface.runs.run_tasks import task_of
from handrail.interfaces.mcp.surface.views.cards import answered_on_page, app_channel
from handrail.library.loading import Loaded, valid
from handrail.settings import local_person

WAIT_MS_MAX: Final = 25_000
REPORT_EVERY_S: Final = 0.05
"""How long to wait between two looks at the progress of a run."""


async def save_plan(lazy: LazyProgram, caller: Caller, given: args.SavePlanArguments) -> ToolReply:
    """Save a plan that can be run here."""
    program = await lazy.open()
    cards = await program.toolbox.connect(tools_named(given.plan))
    loaded = program.library.load_plan(given.plan, survey=program.survey)
    return await save(program, caller, loaded, given.note, cards)


async def save(
    program: Assembly, caller: Caller, loaded: Loaded, note: str, cards: Mapping[str, Card] = NO_CARDS
) -> ToolReply:
    """Save a valid plan, pinned to the current descriptions of its tools."""
    definition = valid(loaded, "the plan")
    before = await program.writer.plans.get(definition.id)
    plan = await program.writer.plans.save(definition, actor=caller.actor, note=note, cards=cards)
    return _plan_reply(plan, definition, loaded, is_repeated=plan.n == before.n)


def _plan_reply(plan: Plan, definition: Definition, loaded: Loaded, *, is_repeated: bool) -> ToolReply:
    newest = plan.newest
    data: dict[str, Any] = {"plan": plan.id, "version": newest.number, "hash": newest.definition}
    data["waves"] = waves(definition.steps)
    data["findings"] = [finding_data(finding) for finding in loaded.findings]
    data["receipt"] = plan.receipt
    if is_repeated:
        data["repeated"] = True
    order = " -> ".join("+".join(wave) for wave in data["waves"])
    lines = [f"plan {plan.id} version {newest.number}: {compact(order)}", *map(finding_words, data["findings"])]
    return reply(data, "\n".join([*lines, f"receipt {plan.receipt}"]))


async def execute_plan(lazy: LazyProgram, caller: Caller, given: args.ExecutePlanArguments) -> ToolReply | TaskView:
    """Run a plan, a workflow or a definition; with dry_run, show what would run."""
    program = await lazy.open()
    wait_ms = duration_ms(given.wait)
    if wait_ms > WAIT_MS_MAX:
        raise Limited("a call waits at most 25s", hint="leave `wait` out and use status: the run continues")
    definitions = program.definitions
    definition, pins = await definitions.chosen(plan=given.plan, workflow=given.workflow, definition=given.definition)
    inputs = definitions.inputs(definition, given.inputs)
    if given.dry_run:
        shown, _ = redact_inputs(inputs, definition.inputs)
        steps = msgspec.to_builtins(rehearse(definition, shown, program.toolbox.effects()))
        lines = [f"{one['id']}: {one['kind']} {compact(one)}" for wave in steps for one in wave]
        return reply({"status": "dry_run", "workflow": definition.id, "waves": steps}, "\n".join(lines))
    asked = digest([given.plan, given.workflow, given.definition, given.inputs])
    ask = StartRun(key=given.idempotency_key, asked=asked if given.idempotency_key else "", pins=pins)
    known = await program.writer.dispatch.started_under_key(ask)
    run = known or await program.worker.start(definition, inputs, actor=caller.actor, ask=ask)
    if wait_ms and caller.wants_tasks:
        return await task_of(lazy, run.id, caller)
    await _wait_until_settled(program, caller, run.id, wait_ms / 1_000)
    more: dict[str, Any] = {"repeated": True} if known else {}
    if off := program.toolbox.known(tools_in(definition)).off:
        more["warnings"] = list(off.values())
    return status_reply(await program.run_reader.status(run.id), **more)


async def _wait_until_settled(program: Assembly, caller: Caller, run: str, within_s: float) -> None:
    """Wait until a run ends or waits for a person or an agent, and report progress meanwhile."""
    loop = asyncio.get_running_loop()
    until_s, reported, next_s = loop.time() + within_s, -1, 0.0
    with program.guide.bell.listening(run) as ear:
        while (left_s := until_s - loop.time()) > 0 and not await program.run_reader.is_settled(run):
            if loop.time() >= next_s:  # a long run changes thousands of times
                next_s = loop.time() + REPORT_EVERY_S
                seen = await program.run_reader.status(run)
                over = seen.progress.done + seen.progress.in_rounds
                if over > reported:  # MCP requires that progress increases
                    reported = over
                    total = None if seen.progress.in_rounds else seen.progress.total
                    await caller.progress(reported, total, seen.status.value)
            await ear.next_change(within_s=left_s)


async def status(lazy: LazyProgram, _: Caller, given: args.StatusArguments) -> ToolReply:
    """The status of a run, or the open runs."""
    program = await lazy.open()
    if not given.run:
        return await open_runs(program, "status")
    within = program.worker.within(given.run)
    seen = await program.run_reader.status(given.run, detail=Detail(given.detail), within=within)
    data = status_data(seen)
    only_offered(data, lazy.offered)
    return reply(data, status_words(data))


def status_reply(seen: Status, **more: Any) -> ToolReply:
    """The status of a run as an answer."""
    data = {**status_data(seen), **more}
    return reply(data, status_words(data))


async def control(lazy: LazyProgram, caller: Caller, given: args.ControlArguments) -> ToolReply:
    """Control a run: the action that the caller chose, or the user's answer to an approval."""
    program = await lazy.open()
    await program.writer.dispatch.own(given.run)  # first: the user must not be asked about another project's run
    if given.dry_run:
        return await _previewed(program, caller, given)
    if given.card and await _was_answered(program, given):
        return status_reply(await program.run_reader.status(given.run), repeated=True)
    action, reason, actor, via = await _chosen(lazy, program, caller, given)
    output = None if given.output is UNSET else given.output
    before = await program.writer.dispatch.current(given.run)
    if action is Action.FORK:
        key = fork_key(before, given.step, actor=actor, reason=reason.strip())
        before = await program.writer.dispatch.started_under_key(StartRun(key=key)) or before
    try:
        run = await program.control.act(
            given.run, action, actor=actor, reason=reason, step=given.step, output=output, given=via
        )
    except (Conflict, Forbidden):
        # Refused, because the first call has already done it: that is not an error for the caller.
        if await _was_done_before(program, caller, given, (action, reason, actor)):
            return status_reply(await program.run_reader.status(given.run), repeated=True)
        raise
    more = {"repeated": True} if (run.id, run.n) == (before.id, before.n) else {}
    return status_reply(await program.run_reader.status(run.id), **more)


async def _previewed(program: Assembly, caller: Caller, given: args.ControlArguments) -> ToolReply:
    """What the action would do; nothing is changed, and the user is not asked."""
    channel = f"agent:{name_of(caller.actor)}"
    asked = ControlAsked(action=given.action, actor=caller.actor, step=given.step, channel=channel)
    seen = await program.previews.of(given.run, asked)
    calls = [f"{'undo' if one.is_undo else 'then'} {one.step}: {one.tool or one.by.value}" for one in seen.calls]
    lines = [seen.means or seen.message, seen.why, *calls, *map(_left_words, seen.stays), *seen.notes]
    data = {**msgspec.to_builtins(seen), "status": "dry_run"}
    return reply(data, "\n".join(compact(line) for line in lines if line))


def _left_words(one: EffectLeft) -> str:
    return f"{'unknown whether it had an effect' if one.why is Lasting.UNKNOWN else 'stays'}: {one.step}"


async def _was_done_before(
    program: Assembly, caller: Caller, given: args.ControlArguments, choice: tuple[Action, str, str]
) -> bool:
    """Whether the same action was just granted, to the caller or to the user who was asked."""
    action, reason, actor = choice
    run, step = given.run, given.step
    if await was_granted(program, run, action, actor=actor, reason=reason, step=step):
        return True
    is_asked = action in ANSWERS and caller.can_ask
    return is_asked and await was_granted(program, run, action, actor=local_person(), reason=None, step=step)


async def _chosen(
    lazy: LazyProgram, program: Assembly, caller: Caller, given: args.ControlArguments
) -> tuple[Action, str, str, AnswerGiven]:
    """What was chosen, why, by whose decision, and how that came here."""
    reason = f"{given.reason} (for {given.by})" if given.by else given.reason
    if given.card:
        return given.action, reason, local_person(), await _on_page(lazy, program, caller, given)
    if given.action in ANSWERS and caller.can_ask and not lazy.settings.choices.agents_may_approve:
        return await _ask_user(program, caller, given)
    via = AnswerGiven(channel=f"agent:{name_of(caller.actor)}", behalf=local_person())
    return given.action, reason, caller.actor, via


async def _on_page(lazy: LazyProgram, program: Assembly, caller: Caller, given: args.ControlArguments) -> AnswerGiven:
    """How an answer came that somebody gave on the page in the client's window."""
    if given.action not in ANSWERS:
        raise Invalid("`card` is only for answers to approvals", hint="leave it out")
    run = await program.writer.dispatch.current(given.run)
    step = given.step or _asked_step(run)
    # First whether the channel counts at all: an agent learns nothing from trying seals.
    program.control.answers.require_answerable(run, step, actor=local_person(), given=app_channel(caller))
    return answered_on_page(lazy, run, step, given.card, caller)


async def _was_answered(program: Assembly, given: args.ControlArguments) -> bool:
    """Whether the same answer was just given on the page: its first click, seen again."""
    run = await program.writer.dispatch.current(given.run)
    is_open = run.step(given.step).status is StepStatus.WAITING
    reason = given.reason
    return not is_open and await was_granted(
        program, given.run, given.action, actor=local_person(), reason=reason, step=given.step
    )


async def _ask_user(
    program: Assembly, caller: Caller, given: args.ControlArguments
) -> tuple[Action, str, str, AnswerGiven]:
    """Ask the user for an approval: their decision, reason and name, and how the answer came."""
    person = local_person()
    via = AnswerGiven(channel=f"elicitation:{name_of(caller.actor)}")
    run = await program.writer.dispatch.current(given.run)
    step = given.step or _asked_step(run)
    state = run.step(step)
    if state.status is not StepStatus.WAITING or not state.digest:
        return given.action, given.reason, caller.actor, via  # no open approval: the engine reports that
    # The user is not asked for an answer that would not count.
    program.control.answers.require_answerable(run, step, actor=person, given=via)
    content = None if given.output is UNSET else given.output
    by_hand = f"`handrail approve {run.id} {quote(step)}`"
    asked = await program.approvals.one(run.id, step, actor=person, channel=via.channel)
    question = approval_question(asked, content=content)
    if question is None:
        raise too_long_to_ask(run.id, by_hand)
    # The answer is bound to what was shown: if the approval or the content has changed, it doesn't count.
    answer = await caller.ask("approval", question, about=digest([state.digest, state.started, content]))
    if answer.response is Response.CANCEL:
        raise Forbidden("the user did not answer", hint=f"ask them again later, or have them run {by_hand}")
    action, reason = approval_answer(answer, otherwise=f"asked through the client: {given.reason}")
    return action, reason, person, replace(via, digest=state.digest)


def _asked_step(run: Run) -> str:
    waiting = [path for path, state in run.steps.items() if state.status is StepStatus.WAITING and state.digest]
    return waiting[0] if len(waiting) == 1 else ""


async def record_compensation(lazy: LazyProgram, caller: Caller, given: args.RecordCompensationArguments) -> ToolReply:
    """Record that a step was undone by hand, needs no undo, or could not be undone."""
    program = await lazy.open()
    run = await program.writer.dispatch.own(given.run)
    event = _undo_event(given)
    known = await was_recorded(program, run, event, actor=caller.actor, then=OF_UNDO)
    if known is None:
        run = await _record(program, caller, run, event)
    seen = await program.run_reader.status(run.id)
    data: dict[str, Any] = {"run": run.id, "step": given.step, "status": seen.status.value, "receipt": seen.receipt}
    if known is not None:
        data["repeated"] = True
    as_before = ", as before" if known is not None else ""
    words = f"recorded{as_before}: {given.step} {given.outcome} by hand; {run.id} {seen.status.value}\n{seen.receipt}"
    return reply(data, words)


def _undo_event(given: args.RecordCompensationArguments) -> StepCompensated | ActionRecorded:
    """The event to record."""
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


async def _record(program: Assembly, caller: Caller, run: Run, event: StepCompensated | ActionRecorded) -> Run:
    if isinstance(event, StepCompensated):
        return await program.control.record_compensation(
            run.id,
            event.step,
            how=event.how,
            description=event.description,
            details=event.details,
            actor=caller.actor,
        )
    dispatch, step = program.writer.dispatch, event.step or ""
    locate(await dispatch.definition(run.definition), step)
    note = RecordAction(**msgspec.structs.asdict(event))
    failed = FailUndo(step=step, category=Category.TOOL_ERROR, message=event.description)
    is_under_way = run.step(step).status is StepStatus.COMPENSATING
    return await dispatch.grant(run.id, note, *([failed] if is_under_way else []), actor=caller.actor)
