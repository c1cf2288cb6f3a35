"""One step of a run in detail: tries, input, output, checks with evidence, undo, and its latest events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from handrail.assembly.checks import inputs_checked, rules_of
from handrail.assembly.opening import Assembly
from handrail.domain.definition.authoring import definition_data
from handrail.domain.definition.model import Approve, Check, Definition, Prompt, Step, Tool
from handrail.domain.definition.model import Call as CallWorkflow
from handrail.domain.errors import HandrailError, NotFound
from handrail.domain.journal.chain import Record
from handrail.domain.preview.calls_ahead import KnownTools, Now, undo_call_of
from handrail.domain.run.scope import rendered
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import Located, locate
from handrail.engine.reading.ledger import Query, event_view
from handrail.engine.reading.run_view import Detail
from handrail.engine.reading.step_view import StepView
from handrail.engine.running.attempt import key_of
from handrail.interfaces.http.api.call import Call
from handrail.interfaces.http.api.running import actions_of
from handrail.interfaces.http.contract import given

EVENTS_SHOWN: Final = 200
JUDGED: Final = frozenset({"step_completed", "output_refused", "step_carried"})
REFUSED: Final = "output_refused"


async def show_step(call: Call) -> given.StepDetail:
    """Everything that is known of a step."""
    program, path = call.program, str(call.path["step"])
    run = await program.run_reader.run(call.run)
    definition = await program.run_reader.definition(run)
    found = locate(definition, path)
    tries = await program.run_reader.tries(run.id, path)
    records = await _records(program, run.id, path)
    judged = [msgspec.json.decode(record.body) for record in records if record.kind in JUDGED]
    return given.StepDetail(
        step=await _view(call, path),
        tries=tuple(one for one in tries if not one.is_undo),
        input=_input(run, found),
        output=run.step(path).output,
        outputs={
            str(record.n): body["output"]
            for record in records
            if record.kind == REFUSED and (body := msgspec.json.decode(record.body)).get("output") is not None
        },
        checks=await _checks(program, found.step, judged[-1] if judged else {}),
        undo=_undo(program, run, definition, path, tuple(one for one in tries if one.is_undo)),
        actions=actions_of(run, path),
        key=key_of(run.id, path) if isinstance(found.step.work, Tool) else "",
        definition=_written(definition, found.step),
        events=tuple(given.EventView(**event_view(record)) for record in records[-EVENTS_SHOWN:]),
    )


async def _view(call: Call, path: str) -> StepView:
    program = call.program
    within = program.worker.within(call.run)
    seen = await program.run_reader.status(call.run, detail=Detail.FULL, within=within)
    view = next((step for step in seen.steps if step.id == path), None)
    if view is None:
        raise NotFound(f"step {path!r} of {call.run} has not started", hint="its loop or workflow has not come to it")
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


async def _checks(program: Assembly, step: Step, judged: Mapping[str, Any]) -> tuple[given.CheckView, ...]:
    """The checks of a step, with what the last judgement of its output left behind."""
    declared: tuple[Check, ...] = step.work.checks if isinstance(step.work, Prompt | Tool) else ()
    shelf = rules_of(program.writer.reader.settings)
    left = list(judged.get("evidence", ()))
    views = []
    for check in declared:
        evidence = next((one for one in left if one.get("rule") == check.rule), None)
        if evidence is not None:
            left.remove(evidence)
        findings = tuple(one for one in judged.get("findings", ()) if one.get("rule") == check.rule)
        card = await shelf.card(check.rule)
        passed = evidence.get("passed") if evidence is not None else False if findings else None
        views.append(
            given.CheckView(
                rule=check.rule,
                looks_at=card.looks_at.value if card is not None else "",
                passed=passed,
                severity=check.severity.value,
                evidence=evidence or {},
                findings=findings,
            )
        )
    return tuple(views)


def _undo(
    program: Assembly, run: Run, definition: Definition, path: str, tries: tuple[Any, ...]
) -> given.UndoView | None:
    specs = program.toolbox.specs()
    tools = KnownTools(
        effects={spec.name: spec.effect for spec in specs}, undos={spec.name: spec.undo for spec in specs}
    )
    state = run.step(path)
    now = Now(at=program.worker.settings.clock(), check=inputs_checked, tools=tools)
    try:
        call = undo_call_of(run, definition, path, now)
    except HandrailError:  # what it needs is not known
        call = None
    has_way = locate(definition, path).step.undo is not None or (call is not None and call.own_undo)
    if not has_way and not state.compensation and not tries:
        return None
    return given.UndoView(
        call=call if has_way else None,
        how=state.compensation,
        tries=tries,
        message=state.message if state.compensation or tries else "",
    )


def _written(definition: Definition, step: Step) -> Mapping[str, Any]:
    """A step as its author wrote it."""
    alone = msgspec.structs.replace(definition, steps=(msgspec.structs.replace(step, after=()),))
    data: Mapping[str, Any] = definition_data(alone)["steps"][0]
    return {key: value for key, value in data.items() if key != "after"}
