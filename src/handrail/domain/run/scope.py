"""The values of the names in an expression or a template, at one place of a run.

Pure. Only values that are referred to are collected, so that a step costs the same in a long run as in a short one.
analysis/names.py says which names are known where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from handrail.domain.checks.finding import Path
from handrail.domain.definition.model import Prompt, Step, Tool
from handrail.domain.definition.step_order import Course
from handrail.domain.errors import Invalid
from handrail.domain.json import Json
from handrail.domain.language.expression import Expression, compile_condition, compile_expression
from handrail.domain.language.shape import ANY, NUMBER, Shape
from handrail.domain.language.template import ValueTemplate, compile_value, has_templates
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.domain.run.step_path import UNDO, Lane
from handrail.domain.run.step_state import StepState
from handrail.domain.secrets.scrubbing import holds_mark

COMPILED_MAX: Final = 10_000
OWN_RESULTS: Final = frozenset({"output", "status"})
"""Names under a loop that refer to the loop itself, not to a step of this round."""


def evaluate(source: str, run: Run, lane: Lane) -> Json:
    """The value of an expression at this place; ExpressionError if it has none."""
    expression = _expression(source, _names(lane))
    return expression.evaluate(values_of(expression.paths, run, lane))


def condition_is_true(source: str, run: Run, lane: Lane) -> bool:
    """Whether a condition is true at this place; ExpressionError if it can't be evaluated."""
    condition = _condition(source, _names(lane))
    return condition.evaluate(values_of(condition.paths, run, lane)) is True


def rendered(value: Any, run: Run, lane: Lane) -> Any:
    """A value with its templates filled in at this place; TemplateError if that can't be done."""
    template = _template(value, lane)
    return value if template is None else rendered_by(value, lane, values_of(template.paths, run, lane))


def rendered_by(value: Any, lane: Lane, values: Mapping[str, Any]) -> Any:
    """A value with its templates filled in by these values."""
    template = _template(value, lane)
    if template is None:
        return value
    filled = template.render(values)
    if holds_mark(filled):
        # Fail rather than pass the redaction mark on as if it were the value.
        raise Invalid("it needs a secret value, which handrail never stores and no longer has")
    return filled


def spoken_of(value: Any, lane: Lane) -> Sequence[Path]:
    """The paths that the templates in a value refer to."""
    template = _template(value, lane)
    return template.paths if template is not None else ()


def read_by(source: str, lane: Lane) -> Sequence[Path]:
    """The paths that an expression refers to."""
    return _expression(source, _names(lane)).paths


def step_read_by(path: Path, lane: Lane) -> str | None:
    """The path of the step whose result a path under `steps` refers to; None if that is only known at run time."""
    prefix, _, rest = _descended(path[1:], lane)
    return prefix + rest[0] if rest and isinstance(rest[0], str) else None


def evaluated_of(output: Any, source: str, *, run: Run, lane: Lane) -> Json:
    """The value of an expression that may also use `output`, at this place."""
    expression = compile_expression(source, _shapes(_names(lane)) | {"output": ANY})
    return expression.evaluate({**values_of(expression.paths, run, lane), "output": output})


def condition_is_true_of(output: Any, source: str, run: Run, lane: Lane) -> bool:
    """Whether a condition that may also use `output` is true at this place."""
    condition = compile_condition(source, _shapes(_names(lane)) | {"output": ANY})
    return condition.evaluate({**values_of(condition.paths, run, lane), "output": output}) is True


def rendered_of(output: Any, value: Any, run: Run, lane: Lane) -> Any:
    """A value with its templates filled in, which may also use `output`, at this place."""
    if not has_templates(value):
        return value
    template = compile_value(value, _shapes(_names(lane)) | {"output": ANY})
    return template.render({**values_of(template.paths, run, lane), "output": output})


def values_of(paths: Sequence[Path], run: Run, lane: Lane) -> dict[str, Any]:
    """The values at these paths, by their first name."""
    values: dict[str, Any] = {
        "inputs": _inputs(run, lane),
        "vars": run.vars,
        "run": {"id": run.id},
    }
    for loop in lane.loops:
        values["index"] = loop.round
        if loop.item:
            values[loop.item] = run.step(loop.path).values[loop.round]
    steps: dict[str, Any] = {}
    for path in paths:
        if path[0] == "steps":
            _gather(steps, path[1:], run, lane)
    values["steps"] = steps
    return values


def _inputs(run: Run, lane: Lane) -> Any:
    if not lane.caller:
        return run.inputs
    caller = run.step(lane.caller)
    return caller.undo_values if lane.root.endswith(f"{UNDO}.") else caller.values


def _gather(steps: dict[str, Any], path: Path, run: Run, lane: Lane) -> None:
    """Add the results that a path under `steps` refers to."""
    prefix, names, path = _descended(path, lane)
    level = steps
    for name in names:
        level = level.setdefault(name, {})
    here = _lane_at(lane, prefix)
    first = path[0] if path else None
    # All steps if the name is an index that is only known at run time.
    for one in [first] if isinstance(first, str) else list(here.named):
        if one in here.named:
            level.setdefault(one, {}).update(_result(run, here.named[one], prefix + one))


def _descended(path: Path, lane: Lane) -> tuple[str, tuple[str, ...], Path]:
    """The prefix of the list that a path under `steps` refers into, the loops on the way, and the rest of the path."""
    prefix, names = lane.root, list[str]()
    for loop in lane.loops:
        if path[:1] != (loop.name,) or len(path) == 1 or path[1] in OWN_RESULTS:
            break
        prefix = f"{prefix}{loop.name}[{loop.round}]."
        names.append(loop.name)
        path = path[1:]
    return prefix, tuple(names), path


def _lane_at(lane: Lane, prefix: str) -> Course:
    """The list of steps with this prefix, among those that the lane is in."""
    return next(course for known, course in lane.outer if known == prefix)


def _result(run: Run, step: Step, path: str) -> dict[str, Any]:
    state = run.step(path)
    output = state.output
    if step.body and state.status is StepStatus.COMPLETED and output is None:
        output = outputs_of_rounds(run, step, path)
    elif state.status is StepStatus.SKIPPED and output is None:
        output = declared_defaults(step)
    return {"output": output, "status": state.status.value}


def declared_defaults(step: Step) -> Any:
    """What a skipped step leaves: the defaults that its output schema declares; None if it declares none."""
    schema = step.work.output if isinstance(step.work, Prompt | Tool) else None
    if schema is None:
        return None
    return schema["default"] if "default" in schema else _field_defaults(schema.get("properties")) or None


def _field_defaults(fields: Any) -> dict[str, Any]:
    parts = fields.items() if isinstance(fields, Mapping) else ()
    return {name: part["default"] for name, part in parts if isinstance(part, Mapping) and "default" in part}


def outputs_of_rounds(run: Run, loop: Step, path: str) -> list[dict[str, Any]]:
    """A loop's output: the outputs of its steps, for each round. Collected on demand, not stored twice."""
    return [
        {step.id: _result(run, step, f"{path}[{number}].{step.id}")["output"] for step in loop.body}
        for number in range(rounds_of(run.step(path)))
    ]


def rounds_of(state: StepState) -> int:
    """How many rounds a completed loop had."""
    return state.round + 1 if state.rounds is None else state.rounds


def _names(lane: Lane) -> tuple[str, ...]:
    return tuple(loop.item for loop in lane.loops)


def _shapes(items: tuple[str, ...]) -> dict[str, Shape]:
    shapes = dict.fromkeys(("inputs", "vars", "steps", "run", *filter(None, items)), ANY)
    return shapes | {"index": NUMBER} if items else shapes


@lru_cache(COMPILED_MAX)
def _expression(source: str, items: tuple[str, ...]) -> Expression:
    return compile_expression(source, _shapes(items))


@lru_cache(COMPILED_MAX)
def _condition(source: str, items: tuple[str, ...]) -> Expression:
    return compile_condition(source, _shapes(items))


_templates: dict[int, tuple[Any, tuple[str, ...], ValueTemplate | None]] = {}


def _template(value: Any, lane: Lane) -> ValueTemplate | None:
    """The compiled template of a value; None if there is nothing to fill in."""
    # Cached by identity: a step's arguments live as long as its definition, and may contain unhashable lists.
    names = _names(lane)
    known = _templates.get(id(value))
    if known is not None and known[0] is value and known[1] == names:
        return known[2]
    if len(_templates) >= COMPILED_MAX:
        _templates.clear()
    template = compile_value(value, _shapes(names)) if has_templates(value) else None
    _templates[id(value)] = (value, names, template)
    return template
