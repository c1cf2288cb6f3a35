"""Texts for readers that name the results of steps that somebody skipped: they have blanks there, and say so.

Pure. Only for what an agent or a person reads. Conditions, arguments of tools and loops stay strict: a missing value
there must not decide anything. The defaults of an output schema count everywhere: scope.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from handrail.domain.checks.finding import Path
from handrail.domain.definition.model import Prompt, Step, Tool
from handrail.domain.errors import Invalid
from handrail.domain.run.scope import rendered, rendered_by, spoken_of, step_read_by, values_of
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


def text_for_reader(template: str, run: Run, lane: Lane) -> str:
    """The text of a template; blanks stand for what skipped steps did not leave, and a note names these steps."""
    try:
        return str(rendered(template, run, lane))
    except Invalid:
        skipped = dict(_skipped(spoken_of(template, lane), run, lane))
        for unknown in OF_UNKNOWN if skipped else ():
            if (text := _with_blanks(template, run, lane, skipped, unknown)) is not None:
                return f"{text.rstrip()}\n\n(Skipped, so that their results are missing here: {_named(skipped)}.)"
        raise


def reads_skipped(paths: Sequence[Path], run: Run, lane: Lane) -> bool:
    """Whether one of these paths reads the result of a skipped step."""
    return any(True for _ in _skipped(paths, run, lane))


def _named(skipped: Mapping[Path, tuple[str, Step]]) -> str:
    return ", ".join(dict.fromkeys(path for path, _ in skipped.values()))


def _skipped(paths: Sequence[Path], run: Run, lane: Lane) -> Iterator[tuple[Path, tuple[str, Step]]]:
    """The paths that read a skipped step, each with that step."""
    for path in paths:
        name = step_read_by(path, lane) if path[0] == "steps" else None
        if name is not None and _was_left_out(run.step(name)) and (step := _step_named(name, lane)) is not None:
            yield path, (name, step)


def _was_left_out(state: StepState) -> bool:
    """Whether somebody skipped a step."""
    # One that its own condition left out is the author's to foresee: a rehearsal reports texts that do not.
    return state.status is StepStatus.SKIPPED and state.exception is not None


def _step_named(name: str, lane: Lane) -> Step | None:
    found = (course.named.get(name.removeprefix(prefix)) for prefix, course in lane.outer if name.startswith(prefix))
    return next(filter(None, found), None)


def _with_blanks(
    template: str, run: Run, lane: Lane, skipped: Mapping[Path, tuple[str, Step]], unknown: Any
) -> str | None:
    """The text with blanks; None if the template does not take them."""
    values = values_of(spoken_of(template, lane), run, lane)
    for path, (_, step) in skipped.items():
        _fill(values["steps"], path[1:], _schema_of(step), unknown)
    try:
        return str(rendered_by(template, lane, values))
    except Invalid:
        return None


def _schema_of(step: Step) -> Any:
    if step.body:
        return {"type": "array"}
    return step.work.output if isinstance(step.work, Prompt | Tool) else None


def _fill(steps: dict[str, Any], path: Path, schema: Any, unknown: Any) -> None:
    """Put blanks below the result of the step that a path reads."""
    result: Any = steps
    for depth, key in enumerate(path):
        result = result[key]
        if result.get("status") == StepStatus.SKIPPED.value:
            if path[depth + 1 : depth + 2] == ("output",):
                result["output"] = _filled(result["output"], path[depth + 2 :], schema, unknown)
            return


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
