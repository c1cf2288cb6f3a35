"""One step of a run in detail: tries, input, output, checks with evidence, undo, and its latest events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from handrail.assembly.checks import inputs_checked, rules_of
from handrail.assembly.opening import Assembly
from handrail.domain.checks.rule import RuleCard
from handrail.domain.definition.authoring import definition_data
from handrail.domain.definition.model import Approve, Check, Definition, Prompt, Step, Tool
from handrail.domain.definition.model import Call as CallWorkflow
from handrail.domain.errors import HandrailError, NotFound
from handrail.domain.journal.chain import Record
from handrail.domain.preview.calls_ahead import KnownTools, Now, undo_call_of
from handrail.domain.preview.values import CallAhead
from handrail.domain.run.scope import rendered
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.domain.run.step_path import Located, locate
from handrail.domain.scheduling.compensation import needs_undo
from handrail.engine.reading.check_view import JudgedCheck, JudgedOutput
from handrail.engine.reading.ledger import Query, event_view
from handrail.engine.reading.run_view import Detail
from handrail.engine.reading.step_view import StepView
from handrail.engine.reading.time_view import TryView
from handrail.engine.running.calls.attempt import key_of
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.api.running import step_actions
from handrail.interfaces.http.contract.given.journal import EventView
from handrail.interfaces.http.contract.given.runs import CheckView, StepDetail, UndoView

EVENTS_SHOWN: Final = 200
REFUSED: Final = "output_refused"


async def show_step(call: ApiCall) -> StepDetail:
    """Everything that is known of a step."""
    program, path, at = call.program, str(call.path["step"]), call.query.at
    run = await program.run_reader.run(call.run, at=at)
    definition = await program.run_reader.definition(run)
    found = locate(definition, path)
    tries = await program.run_reader.tries(run.id, path, at=at)
    judged = tuple(one for one in await program.run_reader.judged(run.id, path) if one.n <= run.n)
    records = [record for record in await _records(program, run.id, path) if record.n <= run.n]
    return StepDetail(
        step=await _view(call, path),
        tries=tuple(one for one in tries if not one.is_undo),
        judged=judged,
        input=_input(run, found),
        output=run.step(path).output,
        outputs=_refused_outputs(records),
        checks=await _checks(program, found.step, judged[-1] if judged else None),
        undo=_undo(program, run, definition, path, tuple(one for one in tries if one.is_undo)),
        actions=() if at else await step_actions(call, run, definition, path),
        key=key_of(run.id, path) if isinstance(found.step.work, Tool) else "",
        definition=_written(definition, found.step),
        events=tuple(EventView(**event_view(record)) for record in records[-EVENTS_SHOWN:]),
    )


def _refused_outputs(records: list[Record]) -> dict[str, Any]:
    """The results of tools that were refused: they had their effect."""
    bodies = {record.n: msgspec.json.decode(record.body) for record in records if record.kind == REFUSED}
    return {str(n): body["output"] for n, body in bodies.items() if body.get("output") is not None}


async def _view(call: ApiCall, path: str) -> StepView:
    program = call.program
    within = program.worker.within(call.run)
    seen = await program.run_reader.status(call.run, detail=Detail.FULL, within=within, at=call.query.at)
    view = next((step for step in seen.steps if step.id == path), None)
    if view is None:
        raise NotFound(f"step {path!r} of {call.run} has not started", hint="its loop or workflow has not reached it")
    return view


async def _records(program: Assembly, run: str, path: str) -> list[Record]:
    found = await program.writer.reader.ledger.query(Query(stream=run, step=path, limit=10_000))
    return [hit.record for hit in found.hits]


def _input(run: Run, found: Located) -> Any:
    """What the step gets, with all values filled in that are known; what can't be filled in stays as written."""
    match found.step.work:
        case Tool(args=args):
            written: Any = args
        case Prompt(prompt=text) | Approve(approve=text):
            written = text
        case CallWorkflow(with_=inputs):
            written = inputs
        case _:
            return None
    try:
        return rendered(written, run, found.lane)
    except HandrailError:
        return written


async def _checks(program: Assembly, step: Step, judged: JudgedOutput | None) -> tuple[CheckView, ...]:
    """The checks that a step declares, with what the last judgement of its output left behind."""
    declared: tuple[Check, ...] = step.work.checks if isinstance(step.work, Prompt | Tool) else ()
    shelf = rules_of(program.writer.reader.settings)
    left = list(judged.checks) if judged is not None else []
    views = []
    for check in declared:
        known = next((one for one in left if one.rule == check.rule), None)
        if known is not None:
            left.remove(known)
        card = await shelf.card(check.rule)
        views.append(_check(check, known, card))
    return tuple(views)


def _check(check: Check, known: JudgedCheck | None, card: RuleCard | None) -> CheckView:
    view = CheckView(rule=check.rule, severity=check.severity.value, parameters=check.parameters)
    if known is None:
        return replace(view, looks_at=card.looks_at.value) if card is not None else view
    looks_at = known.looks_at.value
    return replace(view, looks_at=looks_at, passed=known.passed, evidence=known.evidence, findings=known.findings)


def _undo(
    program: Assembly, run: Run, definition: Definition, path: str, tries: tuple[TryView, ...]
) -> UndoView | None:
    """How a step is undone; None if it has no way back and none was tried."""
    call = _undo_call(program, run, definition, path)
    state = run.step(path)
    was_tried = bool(state.compensation or tries)
    if call is None and not was_tried:
        return None
    return UndoView(call=call, how=state.compensation, tries=tries, message=state.message if was_tried else "")


def _undo_call(program: Assembly, run: Run, definition: Definition, path: str) -> CallAhead | None:
    specs = program.toolbox.specs()
    effects, undos = {spec.name: spec.effect for spec in specs}, {spec.name: spec.undo for spec in specs}
    tools = KnownTools(effects=effects, undos=undos)
    now = Now(at=program.worker.settings.clock(), check=inputs_checked, tools=tools)
    try:
        call = undo_call_of(run, definition, path, now)
    except HandrailError:  # what it needs is not known
        return None
    if run.step(path).status is StepStatus.FAILED and not needs_undo(run, definition, path):
        return None  # nothing of it is undone: saying how would be untrue
    step = locate(definition, path).step
    can_itself = isinstance(step.work, Tool) and bool(undos.get(step.work.tool))
    return call if step.undo is not None or (call.own_undo and can_itself) else None


def _written(definition: Definition, step: Step) -> Mapping[str, Any]:
    """A step as its author wrote it."""
    alone = msgspec.structs.replace(definition, steps=(msgspec.structs.replace(step, after=()),))
    data: Mapping[str, Any] = definition_data(alone)["steps"][0]
    return {key: value for key, value in data.items() if key != "after"}
