"""Texts for readers that name the results of steps that somebody skipped: they have blanks there, and say so.

Pure. Only for what an agent or a person reads. Conditions, arguments of tools and loops stay strict: a missing value
there must not decide anything. The defaults of an output schema count everywhere: scope.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from handrail.domain.checks.finding import Path
from handrail.domain.definition.model import Prompt, Step, Tool
from handrail.domain.errors import Invalid
from handrail.domain.run.scope import rendered, rendered_by, rounds_of, spoken_of, step_read_by, values_of
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.domain.run.step_path import Lane
from handrail.domain.run.step_state import StepState

BLANK: Final = "(skipped)"
BLANKS: Final[Mapping[str, Any]] = {
    "string": BLANK,
    "number": 0,
    "integer": 0,
    "boolean": False,
    "array": [],
    "object": {},
    "null": None,
}
"""What stands for a value of each type, so that a template can be filled in."""
OF_UNKNOWN: Final[Sequence[Any]] = (BLANK, [])
"""What stands for a value of which nothing is known: the first of these that the template takes."""


class _Gap(NamedTuple):
    """A path in a template that reads what a skipped step did not leave."""

    path: Path
    name: str
    step: Step
    round: int | None = None
    """The round of the loop that the path reads, if the step was skipped in one."""


def text_for_reader(template: str, run: Run, lane: Lane) -> str:
    """The text of a template; blanks stand for what skipped steps did not leave, and a note names these steps."""
    try:
        return str(rendered(template, run, lane))
    except Invalid:
        skipped = [*_skipped(paths := spoken_of(template, lane), run, lane), *_skipped_inside(paths, run, lane)]
        for unknown in OF_UNKNOWN if skipped else ():
            if (text := _with_blanks(template, run, lane, skipped, unknown)) is not None:
                return f"{text.rstrip()}\n\n(Skipped, so that their results are missing here: {_named(skipped)}.)"
        raise


def reads_skipped(paths: Sequence[Path], run: Run, lane: Lane) -> bool:
    """Whether one of these paths reads the result of a skipped step."""
    return any(True for _ in _skipped(paths, run, lane))


def _named(skipped: Sequence[_Gap]) -> str:
    return ", ".join(dict.fromkeys(gap.name for gap in skipped))


def _skipped(paths: Sequence[Path], run: Run, lane: Lane) -> Iterator[_Gap]:
    """The paths that read a skipped step, each with that step."""
    for path, name, step in _steps_read(paths, lane):
        if _was_left_out(run.step(name)):
            yield _Gap(path, name, step)


def _skipped_inside(paths: Sequence[Path], run: Run, lane: Lane) -> Iterator[_Gap]:
    """The paths that read a loop, once for each step that was skipped in one of its rounds."""
    for path, name, loop in _steps_read(paths, lane):
        state = run.step(name)
        for number in range(rounds_of(state)) if loop.body and state.status is StepStatus.COMPLETED else ():
            inner = ((f"{name}[{number}].{step.id}", step) for step in loop.body)
            yield from (_Gap(path, at, step, number) for at, step in inner if _was_left_out(run.step(at)))


def _steps_read(paths: Sequence[Path], lane: Lane) -> Iterator[tuple[Path, str, Step]]:
    for path in paths:
        name = step_read_by(path, lane) if path[0] == "steps" else None
        if name is not None and (step := _step_named(name, lane)) is not None:
            yield path, name, step


def _was_left_out(state: StepState) -> bool:
    """Whether somebody skipped a step."""
    # One that its own condition left out is the author's to foresee: a rehearsal reports texts that do not.
    return state.status is StepStatus.SKIPPED and state.exception is not None


def _step_named(name: str, lane: Lane) -> Step | None:
    found = (course.named.get(name.removeprefix(prefix)) for prefix, course in lane.outer if name.startswith(prefix))
    return next(filter(None, found), None)


def _with_blanks(template: str, run: Run, lane: Lane, skipped: Sequence[_Gap], unknown: Any) -> str | None:
    """The text with blanks; None if the template does not take them."""
    values = values_of(spoken_of(template, lane), run, lane)
    for gap in skipped:
        _fill(values["steps"], gap, unknown)
    try:
        return str(rendered_by(template, lane, values))
    except Invalid:
        return None


def _schema_of(step: Step) -> Any:
    if step.body:
        return {"type": "array"}
    return step.work.output if isinstance(step.work, Prompt | Tool) else None


def _fill(steps: dict[str, Any], gap: _Gap, unknown: Any) -> None:
    """Put blanks below the result of the step that a path reads, or below the skipped step of one of its rounds."""
    result: Any = steps
    schema = _schema_of(gap.step)
    for depth, key in enumerate(gap.path[1:], 1):
        result = result[key]
        if "status" not in result or gap.path[depth + 1 : depth + 2] != ("output",):
            continue
        if gap.round is not None:
            in_round = result["output"][gap.round]
            in_round[gap.step.id] = _whole(in_round[gap.step.id], schema, unknown)
        else:
            result["output"] = _filled(result["output"], gap.path[depth + 2 :], schema, unknown)
        return


def _whole(value: Any, schema: Any, unknown: Any) -> Any:
    """A skipped step's result with a blank for every field of its schema that has no default."""
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(fields, Mapping):
        return _filled(value, (), schema, unknown)
    return {**{name: _filled(None, (), part, unknown) for name, part in fields.items()}, **(value or {})}


def _filled(value: Any, keys: Path, schema: Any, unknown: Any) -> Any:
    known = schema if isinstance(schema, Mapping) else {}
    if not keys:
        return _blank(known, unknown) if value is None else value
    if isinstance(keys[0], int) or not (value is None or isinstance(value, Mapping)):
        return value
    part = _part(known, keys[0])
    inner = dict(value or {})
    return {**inner, keys[0]: _filled(inner.get(keys[0]), keys[1:], part, unknown)}


def _part(schema: Mapping[str, Any], name: str) -> Any:
    fields = schema.get("properties")
    return fields.get(name) if isinstance(fields, Mapping) else None


def _blank(schema: Mapping[str, Any], unknown: Any) -> Any:
    types = schema.get("type")
    return BLANKS.get(types, unknown) if isinstance(types, str) else unknown
