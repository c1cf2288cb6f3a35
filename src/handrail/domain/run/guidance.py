"""Guidance: what an agent is shown of a step, and which of the steps that wait for agents it can take.

Pure. Steps are assigned and submitted in engine/guiding/guide.py; each interface adds its own text around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET, Struct

from handrail.domain.checks.visible_limits import with_limits
from handrail.domain.definition.model import Definition, Prompt, Tool, title_of
from handrail.domain.definition.model_hint import Model, hint_words
from handrail.domain.errors import Conflict, Invalid
from handrail.domain.run.guard import assignee
from handrail.domain.run.scope import condition_is_true, condition_is_true_of, rendered, spoken_of
from handrail.domain.run.skipped_values import text_for_reader
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.domain.run.step_path import UNDO, Located, locate

TRUSTED_TOOLS: Final = frozenset({"value.set", "wait.for"})
"""Tools that bring no outside content into a run."""
UNDO_KIND: Final = "undo"
"""The kind shown for the undo of a step that an agent has to do."""


class ShownStep(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step as an agent is shown it; empty fields are left out."""

    id: str
    title: str
    kind: str
    prompt: str = ""
    role: str = ""
    guidance: tuple[str, ...] = ()
    confirm: bool = False
    output: Mapping[str, Any] | None = None
    checks: tuple[str, ...] = ()
    model_hint: str = ""
    outside: tuple[str, ...] = ()
    """Steps whose results are in the prompt: content from outside, which is data and not instructions."""


def is_undo(run: Run, path: str) -> bool:
    """Whether the step is to be undone now, rather than done."""
    return run.status is RunStatus.COMPENSATING and run.step(path).status is StepStatus.COMPENSATING


def name_for_agent(run: Run, path: str) -> str:
    """The step's name as agents use it: the undo of a step has its own name, so that the two are not confused."""
    return path + UNDO if is_undo(run, path) else path


def work_of(run: Run, found: Located, path: str) -> Prompt:
    """What an agent has to do for a step; Conflict if it is not for an agent."""
    work = found.step.undo if is_undo(run, path) else found.step.work
    if not isinstance(work, Prompt):
        kind = found.step.kind.value
        raise Conflict(
            f"step {path!r} is not for an agent: it is of the kind `{kind}`", hint="ask for the current step"
        )
    return work


def shown_step(run: Run, definition: Definition, path: str, models: Sequence[Model] = ()) -> ShownStep:
    """Everything an agent needs to do this step; Invalid if its prompt can't be filled in."""
    found = locate(definition, path)
    work, step = work_of(run, found, path), found.step
    undoes = is_undo(run, path)
    try:
        prompt = text_for_reader(work.prompt, run, found.lane)
    except Invalid as error:
        message = f"the prompt of step {path!r} can't be filled in: {error}"
        raise Invalid(message, hint=f"skip {path}, or fix the definition and start a new run") from error
    return ShownStep(
        id=name_for_agent(run, path),
        title=f"Undo: {title_of(step)}" if undoes else title_of(step),
        kind=UNDO_KIND if undoes else step.kind.value,
        prompt=prompt,
        role=work.role,
        guidance=() if undoes else step.guidance,
        confirm=needs_confirmation(run, found, work),
        output=with_limits(work, lambda parameters: rendered(parameters, run, found.lane)),
        checks=tuple(check.rule for check in work.checks),
        model_hint=hint_words(work.model, models),
        outside=tuple(_outside(work.prompt, found)),
    )


def _outside(prompt: str, found: Located) -> Iterator[str]:
    """The earlier tool steps whose results from outside are in the prompt."""
    paths = (path[1:] for path in spoken_of(prompt, found.lane) if path[:1] == ("steps",))
    for name in sorted({part for path in paths for part in path if isinstance(part, str)}):
        for _, course in found.lane.outer:
            work = course.named[name].work if name in course.named else None
            if isinstance(work, Tool) and work.tool not in TRUSTED_TOOLS:
                yield f"{name} ({work.tool})"


def brief(run: Run, definition: Definition, path: str) -> ShownStep:
    """The same step, shortened for an agent that has seen all of it."""
    step = locate(definition, path).step
    undoes = is_undo(run, path)
    return ShownStep(id=name_for_agent(run, path), title=title_of(step), kind=UNDO_KIND if undoes else step.kind.value)


def needs_confirmation(run: Run, found: Located, work: Prompt, output: Any = UNSET) -> bool:
    """Whether a person has to agree before the step is done. Without the output that a condition needs, assume yes."""
    if not isinstance(work.confirm, str):
        return work.confirm
    if output is not UNSET:
        return condition_is_true_of(output, work.confirm, run, found.lane)
    try:
        return condition_is_true(work.confirm, run, found.lane)
    except Invalid:
        return True


def offered(run: Run, waiting: Iterable[str], *, agent: str, now: int) -> list[str]:
    """The waiting steps that this agent can take: those assigned to it first, none that another has."""
    own: list[str] = []
    free: list[str] = []
    for path in waiting:
        taken_by = assignee(run.step(path), at=now)
        if not taken_by:
            free.append(path)
        elif taken_by == agent:
            own.append(path)
    return [*own, *free]
