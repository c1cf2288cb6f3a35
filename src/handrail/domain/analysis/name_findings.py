"""Findings about names: every expression and template is compiled with the names that are visible at its place.

Pure. Reports syntax errors, unknown names, wrong types, and steps that may not have ended yet."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from handrail.domain.analysis.names import RESERVED_NAMES, StepListLevel, VisibleNames, ancestry_of, top_view
from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.definition.model import Approve, Call, Check, Definition, Each, Prompt, Repeat, Step, Tool, Work
from handrail.domain.language.expression import (
    Expression,
    ExpressionError,
    Scope,
    compile_condition,
    compile_expression,
)
from handrail.domain.language.shape import ANY, Shape
from handrail.domain.language.template import VALUE_DEPTH_MAX, Template, TemplateError, compile_template


class Spot(NamedTuple):
    """A place with an expression or template, and how it is compiled."""

    path: Path
    source: str
    view: VisibleNames
    compile: Callable[[str, Scope], Expression | Template]


def name_flaws(definition: Definition, tools: Mapping[str, Shape]) -> Iterator[Flaw]:
    """Names in expressions and templates that do not exist, have another type, or are not known yet."""
    view = top_view(definition, tools)
    yield from _list_flaws(definition.steps, ("steps",), view)
    for name, source in definition.outputs.items():
        yield from _flaws_at(Spot(("outputs", name), source, view.at(StepListLevel()), compile_expression))


def _list_flaws(steps: tuple[Step, ...], path: Path, view: VisibleNames) -> Iterator[Flaw]:
    ancestry = ancestry_of(steps)
    for index, step in enumerate(steps):
        here = (*path, index)
        own = view.at(StepListLevel(ancestry=ancestry, step=step.id))
        for spot in _step_spots(step, here, own):
            yield from _flaws_at(spot)
        if isinstance(step.work, Each):
            item = yield from _item(Spot((*here, "each"), step.work.items, own, compile_expression))
            yield from _item_name_flaws(step.work, here)
            yield from _list_flaws(step.body, (*here, "steps"), own.inside(step, item))
        elif isinstance(step.work, Repeat):
            inside = own.inside(step)
            yield from _list_flaws(step.body, (*here, "steps"), inside)
            for spot in _round_spots(step.work, here, inside.at(StepListLevel())):
                yield from _flaws_at(spot)


def _step_spots(step: Step, path: Path, view: VisibleNames) -> Iterator[Spot]:
    if step.when is not None:
        yield Spot((*path, "when"), step.when, view, compile_condition)
    yield from _work_spots(step.work, path, view)
    if step.undo is not None:
        yield from _work_spots(step.undo, (*path, "undo"), view.undoing())


def _work_spots(work: Work, path: Path, view: VisibleNames) -> Iterator[Spot]:
    match work:
        case Prompt():
            submitted = view.knowing(output=view.output(work))
            yield from _text_spots(work.prompt, (*path, "prompt"), view)
            if isinstance(work.confirm, str):
                yield Spot((*path, "confirm"), work.confirm, submitted, compile_condition)
            yield from _check_spots(work.checks, path, submitted)
        case Tool():
            yield from _text_spots(work.args, (*path, "args"), view)
            if work.checks:
                yield from _check_spots(work.checks, path, view.knowing(output=view.output(work)))
        case Approve():
            yield from _text_spots(work.approve, (*path, "approve"), view)
        case Call():
            yield from _text_spots(work.with_, (*path, "with"), view)
        case Each() | Repeat():
            pass  # their names and bodies are walked list by list


def _check_spots(checks: tuple[Check, ...], path: Path, view: VisibleNames) -> Iterator[Spot]:
    for index, check in enumerate(checks):
        here = (*path, "checks", index)
        if check.when is not None:
            yield Spot((*here, "when"), check.when, view, compile_condition)
        that = check.parameters.get("that")
        if check.rule == "expression" and isinstance(that, str) and "{" not in that:
            yield Spot((*here, "that"), that, view, compile_condition)
        yield from _text_spots(check.parameters, here, view)


def _round_spots(loop: Repeat, path: Path, view: VisibleNames) -> Iterator[Spot]:
    for key, source in (("until", loop.repeat.until), ("while", loop.repeat.while_)):
        if source is not None:
            yield Spot((*path, "repeat", key), source, view, compile_condition)


def _text_spots(value: Any, path: Path, view: VisibleNames, depth: int = 0) -> Iterator[Spot]:
    """Every text inside a value that may be a template."""
    if depth > VALUE_DEPTH_MAX:
        yield Spot(path, "", view, _too_deep)
        return
    match value:
        case str() if "{" in value:
            yield Spot(path, value, view, compile_template)
        case Mapping():
            for key, item in value.items():
                yield from _text_spots(item, (*path, key), view, depth + 1)
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _text_spots(item, (*path, index), view, depth + 1)
        case _:
            pass


def _too_deep(_source: str, _scope: Scope) -> Template:
    raise TemplateError(f"the value is nested deeper than {VALUE_DEPTH_MAX} levels", line=1, column=1)


def _flaws_at(spot: Spot) -> Iterator[Flaw]:
    try:
        paths = spot.compile(spot.source, spot.view.scope).paths
    except (ExpressionError, TemplateError) as error:
        yield _unreadable(error, spot.path)
    else:
        yield from _hidden(paths, spot)


def _item(spot: Spot) -> Generator[Flaw, None, Shape]:
    """Flaws of the list that a loop iterates over; the generator's value is the shape of its items."""
    try:
        items = spot.compile(spot.source, spot.view.scope)
    except ExpressionError as error:
        yield _unreadable(error, spot.path)
        return ANY
    yield from _hidden(items.paths, spot)
    if not items.shape.admits("array"):
        yield Flaw(
            rule="each_not_list",
            severity=Severity.CRITICAL,
            path=spot.path,
            message=f"`each` needs a list; `{spot.source}` is of type {' or '.join(sorted(items.shape.types))}",
            fix="name a list, or write the items: [a, b]",
        )
    return items.shape.items or ANY


def _item_name_flaws(loop: Each, path: Path) -> Iterator[Flaw]:
    if loop.as_ in RESERVED_NAMES:
        yield Flaw(
            rule="reserved_name",
            severity=Severity.CRITICAL,
            path=(*path, "as"),
            message=f"the item can't be called `{loop.as_}`: that name is reserved",
            fix="choose another name in `as`",
        )


def _unreadable(error: ExpressionError | TemplateError, path: Path) -> Flaw:
    rule, line = ("template", error.line) if isinstance(error, TemplateError) else ("expression", 1)
    return Flaw(
        rule=rule,
        severity=Severity.CRITICAL,
        path=path,
        message=str(error),
        fix=error.hint,
        line=line,
        column=error.column,
    )


def _hidden(paths: Sequence[Path], spot: Spot) -> Iterator[Flaw]:
    found = dict(hidden for path in paths if (hidden := spot.view.hidden_step(path)))
    for name, level in found.items():
        message, fix = _why_hidden(name, level, is_last=level is spot.view.levels[-1])
        yield Flaw(rule="not_before", severity=Severity.CRITICAL, path=spot.path, message=message, fix=fix)


def _why_hidden(name: str, level: StepListLevel, *, is_last: bool) -> tuple[str, str]:
    if name == level.step:
        own = "a step can't read its own result" if is_last else "a loop's result is known when it has ended"
        return f"`{name}` has not ended here: {own}", "read an earlier step; in `checks` there is `output`"
    if level.ancestry is not None and level.ancestry.is_before(level.step, name):
        return f"step `{name}` comes after `{level.step}`, so its result is not known here", "read an earlier step"
    return (
        f"step `{name}` is not before `{level.step}`, so its result may not be known here",
        f"add `after: [{name}]` to `{level.step}`",
    )
