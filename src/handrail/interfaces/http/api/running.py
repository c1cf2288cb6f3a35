"""Runs: start, show, control, submit, record. Every change goes through the same engine parts as elsewhere."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict

from handrail.assembly.opening import Assembly
from handrail.domain.control.offered import offered_actions
from handrail.domain.definition.model import Definition, Tool
from handrail.domain.errors import NotFound
from handrail.domain.journal.archived import archived_refusal
from handrail.domain.journal.event import ActionKind, How, Outcome
from handrail.domain.json import digest
from handrail.domain.preview.control_preview import ControlAsked
from handrail.domain.project import opening, program_in
from handrail.domain.rehearsal.dry_run import rehearse
from handrail.domain.run.command import RecordAction, RecordDecision, StartRun
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import locate
from handrail.domain.run.submission import Submission
from handrail.domain.secrets.redaction import redact_inputs
from handrail.domain.suggestion import did_you_mean
from handrail.engine.guiding.guide import RunForAgent
from handrail.engine.guiding.guide_view import Guided, ReplyContext, guided, recap_of, refused_step
from handrail.engine.reading.run_view import Detail, ProjectView, project_view
from handrail.engine.reading.step_view import NOTHING, StepView
from handrail.engine.running.answers import AnswerGiven
from handrail.foundation.bounded_cache import BoundedCache
from handrail.interfaces.control_twins import call_twin, command_twin
from handrail.interfaces.http.api.call import ApiCall, Handler
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import runs as given
from handrail.interfaces.http.contract.run_routes import CONTROLS
from handrail.interfaces.http.edge.cursors import page_of

WAIT_S = 5.0
"""How long an answer to a submission waits for handrail's own steps; after that it answers, and they continue."""
DECISIONS_MAX = 10
PAGES_MS = 2_000
"""How long the pages of a list of steps are of one moment."""
_pages: BoundedCache[tuple[int, str, int], tuple[int, tuple[StepView, ...]]] = BoundedCache(4)


# --- start ----------------------------------------------------------------------------------------


async def start_run(call: ApiCall) -> given.Done | given.DryRun:
    """Start what the body names."""
    body: asked.StartBody = call.body
    return await _start(call, body, plan=body.plan, workflow=body.workflow, definition=body.definition)


async def start_workflow(call: ApiCall) -> given.Done | given.DryRun:
    """Start the workflow that the path names."""
    return await _start(call, call.body, workflow=str(call.path["workflow"]))


async def _start(call: ApiCall, body: asked.StartBody | asked.StartOneBody, **what: Any) -> given.Done | given.DryRun:
    program = call.program
    definition, pins = await program.definitions.chosen(**what)
    inputs = program.definitions.inputs(definition, body.inputs, body.goal)
    if call.query.dry_run:
        shown, _ = redact_inputs(inputs, definition.inputs)
        waves = rehearse(definition, shown, program.toolbox.effects())
        return given.DryRun(workflow=definition.id, waves=tuple(tuple(wave) for wave in waves))
    ask = StartRun(
        goal=body.goal,
        priority=body.priority,
        pins=pins,
        key=call.key,
        asked=digest([what, dict(body.inputs)]) if call.key else "",
    )
    known = await program.writer.dispatch.started_under_key(ask)
    run = known or await program.worker.start(definition, inputs, actor=call.caller.actor, ask=ask)
    return await _done(program, run, repeated=known is not None)


# --- show -----------------------------------------------------------------------------------------


async def show_run(call: ApiCall) -> given.RunView:
    """A run, and what is legal now."""
    program = call.program
    detail, at = Detail.FULL if call.query.steps else Detail.SUMMARY, call.query.at
    seen = await program.run_reader.status(call.run, detail=detail, within=program.worker.within(call.run), at=at)
    run = await program.run_reader.run(call.run, at=at)
    definition = await program.run_reader.definition(run)
    start, project = await program.run_reader.beginning(run.id), project_of_run(call, run)
    archive = await archive_of(program, run.id)
    if project.hint or archive:  # nothing of it can be chosen here
        failure = seen.failure and msgspec.structs.replace(seen.failure, options=())
        seen = msgspec.structs.replace(seen, options=(), failure=failure)
    return given.RunView(
        **{**asdict(seen), "project": project},
        name=start.name,
        label=start.label,
        definition=run.definition,
        version=definition.version,
        mode=run.mode.value,
        starter=run.starter,
        actions=() if at else actions_of(call, run, definition, is_archived=bool(archive)),
        inputs=run.inputs,
        vars=run.vars,
        n=run.n,
        why=await program.run_reader.why(call.run, at=at),
        waited_ms=await program.run_reader.person_waited(call.run, at=at),
        as_of=(await program.run_reader.past(call.run, at)).as_of if at else None,
        archived=archive,
    )


async def archive_of(program: Assembly, run_id: str) -> str:
    """The archive that has the events of a run; empty if the journal itself has them."""
    stone = await program.writer.reader.store.archives().tombstone(run_id)
    return stone.archive if stone is not None else ""


def project_of_run(call: ApiCall, run: Run) -> ProjectView:
    """The project of a run; with what to do, if that project can't work on it here."""
    seen = project_view(run.id, run.project, call.program.writer.dispatch.find_project)
    if run.project == call.project.id or not seen.folder:
        return seen
    return msgspec.structs.replace(seen, hint=f"not open in this server; open it: `{opening(seen.folder)}`")


def actions_of(
    call: ApiCall, run: Run, definition: Definition, step: str | None = None, *, is_archived: bool = False
) -> tuple[given.LegalAction, ...]:
    """The actions that are offered now and can be done here, on the run or on one step; an archived run is only read
    or forked."""
    offered = offered_actions(run, definition) if run.project == call.project.id else ()
    return tuple(
        given.LegalAction(action=one.action, step=one.step)
        for one in offered
        if step in (None, one.step) and not (is_archived and one.action is not Action.FORK)
    )


async def step_actions(call: ApiCall, run: Run, definition: Definition, step: str) -> tuple[given.LegalAction, ...]:
    """The actions that are offered now on a step."""
    return actions_of(call, run, definition, step, is_archived=bool(await archive_of(call.program, run.id)))


async def list_steps(call: ApiCall) -> given.StepPage:
    """The steps of a run, in written order."""
    query: asked.StepsQuery = call.query
    program = call.program
    steps = await _steps(call, query.at)
    words = query.q.lower().split()
    fitting = [
        one
        for one in steps
        if (not query.state or one.status.value in query.state)
        and all(word in f"{one.id} {one.title} {one.message}".lower() for word in words)
    ]
    page, cursor = page_of(fitting, query.limit, query.cursor)
    run = await program.run_reader.run(call.run, at=query.at)
    definition = await program.run_reader.definition(run)
    return given.StepPage(
        steps=tuple(_run_step(one, run, definition) for one in page),
        total=len(fitting),
        counts=Counter(one.status.value for one in steps),
        cursor=cursor,
    )


async def _steps(call: ApiCall, at: int) -> tuple[StepView, ...]:
    """All steps of a run; a long one is asked for page by page, and is not put together again for each."""
    program = call.program
    reader, within, now = program.run_reader, program.worker.within(call.run), program.worker.settings.clock()
    place = (id(reader.store), call.run, at or (await reader.run(call.run)).n)
    known = _pages.get(place)
    if known is not None and now - known[0] < PAGES_MS and within == NOTHING:
        return known[1]
    steps = await reader.steps(call.run, within=within, at=at)
    return _pages.put(place, (now, steps))[1]


def _run_step(one: StepView, run: Run, definition: Definition) -> given.RunStep:
    step = locate(definition, one.id).step
    return given.RunStep(
        **asdict(one),
        tool=step.work.tool if isinstance(step.work, Tool) else "",
        effect=run.step(one.id).effect or step.effect,
        has_undo=step.undo is not None,
    )


async def next_step(call: ApiCall) -> Guided:
    """What is to be done next, with a recap."""
    program = call.program
    seen = await program.guide.look(call.run)
    ledger = program.writer.reader.ledger
    again = refused_step(seen)
    refused = await ledger.refused(call.run, again) if again else ()
    recap = recap_of(seen, await ledger.decisions(call.run, limit=DECISIONS_MAX), refused)
    return _guided(program, seen, ReplyContext(recap=recap))


def _guided(program: Assembly, seen: RunForAgent, about: ReplyContext) -> Guided:
    about = msgspec.structs.replace(about, models=program.models)
    return guided(seen, now=program.worker.settings.clock(), about=about)


# --- control --------------------------------------------------------------------------------------


async def preview(call: ApiCall) -> given.Preview:
    """What a control would do."""
    name = str(call.path["action"])
    if name not in list(Action):
        raise NotFound(f"there is no control {name[:40]!r}", hint=did_you_mean(name, list(Action)))
    return await _preview(call, Action(name), call.query.step)


async def _preview(call: ApiCall, action: Action, step: str) -> given.Preview:
    if action is not Action.FORK and await archive_of(call.program, call.run):
        raise archived_refusal(call.run)
    wanted = ControlAsked(action=action, actor=call.caller.actor, step=step, channel=call.caller.channel)
    seen = await call.program.previews.of(call.run, wanted)
    return given.Preview(
        **msgspec.structs.asdict(seen),
        cli=command_twin(seen.run, seen.action, seen.step, digest=seen.digest, program=program_in(call.named_folder)),
        mcp=call_twin(seen.run, seen.action, seen.step),
    )


def control(action: Action) -> Handler:
    """The handler of one control."""

    async def act(call: ApiCall) -> given.Done | given.Preview:
        body: asked.ControlBody = call.body
        if call.query.dry_run:
            return await _preview(call, action, body.step)
        program = call.program
        way = AnswerGiven(channel=call.caller.channel, proof=body.passphrase)
        run = await program.control.act(
            call.run,
            action,
            actor=call.caller.actor,
            reason=body.reason,
            step=body.step,
            output=body.output,
            given=way,
        )
        return await _done(program, run)

    return act


async def submit_step(call: ApiCall) -> Guided:
    """Submit the output of a step, and answer with what is next."""
    body: asked.SubmitBody = call.body
    program = call.program
    submission = Submission(
        step=body.step,
        output=None if body.output is UNSET else body.output,
        outcome=Outcome(body.outcome),
        vars=body.vars,
        note=body.note,
        confirmed=f"{call.caller.actor} agreed, in the {call.caller.channel}" if body.confirmed else "",
    )
    verdict = await program.guide.submit(call.run, submission, actor=call.caller.actor)
    seen = await program.guide.look(call.run, within_s=WAIT_S if verdict.accepted else 0)
    return _guided(program, seen, ReplyContext(verdict=verdict, submitted=body.step))


async def _done(program: Assembly, run: Run, *, repeated: bool = False) -> given.Done:
    seen = await program.run_reader.status(run.id)
    return given.Done(run=run.id, status=seen.status, receipt=run.receipt, repeated=repeated, view=seen)


# --- record ---------------------------------------------------------------------------------------


async def record_decision(call: ApiCall) -> given.Receipt:
    """Record a decision."""
    body: asked.DecisionBody = call.body
    command = RecordDecision(
        decision=body.decision,
        reason=body.reason,
        step=body.step or None,
        alternatives=body.alternatives,
        details=body.details,
    )
    dispatch = call.program.writer.dispatch
    await dispatch.own(call.run)
    run = await dispatch.grant(call.run, command, actor=call.caller.actor)
    return given.Receipt(run=run.id, receipt=run.receipt)


async def record_action(call: ApiCall) -> given.Receipt:
    """Record an action."""
    body: asked.ActionBody = call.body
    command = RecordAction(
        description=body.description,
        step=body.step or None,
        outcome=Outcome(body.outcome) if body.outcome else None,
        action=ActionKind(body.kind),
        output=body.output,
        details=body.details,
    )
    run = await call.program.writer.dispatch.own(call.run)
    after = await call.program.recorder.record(run, command, actor=call.caller.actor)
    return given.Receipt(run=after.id, receipt=after.receipt)


async def record_compensation(call: ApiCall) -> given.Done:
    """Record that a step was undone by hand, or needs no undo."""
    body: asked.CompensationBody = call.body
    program = call.program
    run = await program.writer.dispatch.own(call.run)
    locate(await program.writer.dispatch.definition(run.definition), body.step)
    after = await program.control.record_compensation(
        call.run,
        body.step,
        how=How.RECORDED if body.outcome == "compensated" else How.NOT_NEEDED,
        description=body.description,
        details=body.details,
        actor=call.caller.actor,
    )
    return await _done(program, after)


CONTROL_HANDLERS: dict[str, Handler] = {f"{action.value}_run": control(action) for action in CONTROLS}
