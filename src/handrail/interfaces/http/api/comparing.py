"""Comparisons: two steps, two tries, before and after a step, and two runs."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from handrail.assembly.opening import Assembly
from handrail.domain.errors import Invalid, NotFound
from handrail.domain.journal.codec import entry_of
from handrail.domain.run.state import Run, replay
from handrail.domain.run.step_path import locate
from handrail.engine.reading.run_lines import Beginning, RunLine
from handrail.engine.reading.run_view import Detail, Status
from handrail.engine.reading.step_view import StepView
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.api.differences import differences
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import runs as given

SUBMITTED: Final = frozenset({"step_completed", "output_refused"})
RECORDS_MAX: Final = 100_000


async def compare_values(call: ApiCall) -> given.ValueComparison:
    """What differs between two values of a run, or of two runs."""
    query: asked.ValuesQuery = call.query
    program = call.program
    run = await program.run_reader.run(call.run)
    match query.mode:
        case "around":
            a, b = await _around(program, run, query.a)
            names = (f"before {query.a}", f"after {query.a}")
        case "runs":
            other = await program.run_reader.run(query.run)
            a, b = await _value(program, run, query.a), await _value(program, other, query.b or query.a)
            names = (f"{run.id} {query.a}".strip(), f"{other.id} {query.b or query.a}".strip())
        case _:
            if not query.a or not query.b:
                raise Invalid("a comparison needs two sides", hint="give a and b: a step, or a step and its try: fix:2")
            a, b = await _value(program, run, query.a), await _value(program, run, query.b)
            names = (query.a, query.b)
    found, is_cut = differences(a, b)
    return given.ValueComparison(a=names[0], b=names[1], differences=found, is_cut=is_cut)


async def _value(program: Assembly, run: Run, name: str) -> Any:
    """The output of a step, of one of its tries, or the whole result of a run."""
    if not name:
        return {"inputs": run.inputs, "vars": run.vars, "outputs": run.outputs}
    step, _, number = name.rpartition(":")
    if not step or not number.isdigit():
        locate(await program.run_reader.definition(run), name)
        return run.step(name).output
    locate(await program.run_reader.definition(run), step)
    records = await program.writer.reader.store.read(run.id, limit=RECORDS_MAX)
    tries = [one for one in records if one.step == step and one.kind in SUBMITTED]
    if not 1 <= int(number) <= len(tries):
        raise NotFound(f"step {step!r} has no try {number}", hint=f"{len(tries)} of its outputs are recorded")
    return msgspec.json.decode(tries[int(number) - 1].body).get("output")


async def _around(program: Assembly, run: Run, step: str) -> tuple[Any, Any]:
    """All values of a run before a step started and after it ended."""
    if not step:
        raise Invalid("which step?", hint="give a: the step to look around")
    locate(await program.run_reader.definition(run), step)
    records = await program.writer.reader.store.read(run.id, limit=RECORDS_MAX)
    own = [record.n for record in records if record.step == step]
    if not own:
        raise NotFound(f"step {step!r} of {run.id} has not started", hint="choose one that has")
    entries = [entry_of(record) for record in records]
    before = replay(
        [entry for entry, record in zip(entries, records, strict=True) if record.n < own[0]], Run(id=run.id)
    )
    after = replay(
        [entry for entry, record in zip(entries, records, strict=True) if record.n <= own[-1]], Run(id=run.id)
    )
    return _values(before), _values(after)


def _values(run: Run) -> dict[str, Any]:
    outputs = {path: state.output for path, state in run.steps.items() if state.output is not None}
    return {"vars": run.vars, "steps": outputs, "outputs": run.outputs}


async def compare_runs(call: ApiCall) -> given.RunComparison:
    """Two runs side by side."""
    program, other = call.program, str(call.path["other"])
    a, b = await program.run_reader.run(call.run), await program.run_reader.run(other)
    seen_a = await program.run_reader.status(a.id, detail=Detail.FULL)
    seen_b = await program.run_reader.status(b.id, detail=Detail.FULL)
    left, right = ({one.id: one for one in seen.steps} for seen in (seen_a, seen_b))
    steps = [
        _compared(path, left.get(path), right.get(path), differs=a.step(path).output != b.step(path).output)
        for path in dict.fromkeys((*left, *right))
    ]
    inputs, _ = differences(a.inputs, b.inputs)
    first = next((one.step for one in steps if one.a is not one.b or one.output_differs), "")
    return given.RunComparison(
        a=_line(a, seen_a, await program.run_reader.beginning(a.id)),
        b=_line(b, seen_b, await program.run_reader.beginning(b.id)),
        same_definition=a.definition == b.definition,
        inputs=inputs,
        steps=tuple(steps),
        first_difference=first,
    )


def _compared(path: str, a: StepView | None, b: StepView | None, *, differs: bool) -> given.StepComparison:
    return given.StepComparison(
        step=path,
        a=a.status if a else None,
        b=b.status if b else None,
        attempts_a=a.attempts if a else 0,
        attempts_b=b.attempts if b else 0,
        worked_a_ms=a.worked_ms if a else None,
        worked_b_ms=b.worked_ms if b else None,
        output_differs=differs,
    )


def _line(run: Run, seen: Status, start: Beginning) -> RunLine:
    return RunLine(
        **asdict(start),
        run=run.id,
        workflow=run.workflow,
        status=seen.status,
        done=run.done,
        goal=run.goal,
        started=seen.started,
        ended=seen.ended,
        project=seen.project,
    )
