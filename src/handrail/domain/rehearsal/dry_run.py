"""A dry run: what a run would do, in waves, with all values filled in that are known before it starts.

Pure; nothing is called. What depends on the result of a step stays as it was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from handrail.domain.definition.graph import waves
from handrail.domain.definition.model import (
    Approve,
    Call,
    Definition,
    Each,
    Effect,
    Prompt,
    Repeat,
    Step,
    Tool,
    title_of,
)
from handrail.domain.errors import Invalid
from handrail.domain.language.template import has_templates
from handrail.domain.run.scope import rendered, spoken_of
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import Lane, top_lane


class Rehearsed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step as it would be started."""

    id: str
    kind: str
    title: str = ""
    tool: str = ""
    args: Mapping[str, Any] = {}
    prompt: str = ""
    approve: str = ""
    workflow: str = ""
    when: str = ""
    effect: Effect | None = None
    undo: str = ""
    steps: tuple[str, ...] = ()
    """What a loop repeats."""


def rehearse(definition: Definition, inputs: Mapping[str, Any], effects: Mapping[str, Effect]) -> list[list[Rehearsed]]:
    """The steps of a definition in waves; `effects` are the effects of the tools."""
    run, lane = Run(id="run_", inputs=inputs), top_lane(definition)
    named = {step.id: step for step in definition.steps}
    return [[_rehearsed(named[name], run, lane, effects) for name in wave] for wave in waves(definition.steps)]


def _rehearsed(step: Step, run: Run, lane: Lane, effects: Mapping[str, Effect]) -> Rehearsed:
    fields: dict[str, Any] = {}
    match step.work:
        case Tool() as work:
            fields = {"tool": work.tool, "args": known_part(work.args, run, lane)}
            fields["effect"] = step.effect or effects.get(work.tool)
        case Prompt() as work:
            fields = {"prompt": known_part(work.prompt, run, lane)}
        case Approve() as work:
            fields = {"approve": known_part(work.approve, run, lane)}
        case Call() as work:
            fields = {"workflow": work.workflow, "args": known_part(work.with_, run, lane)}
        case Each() | Repeat():
            fields = {"steps": tuple(one.id for one in step.body)}
    return Rehearsed(
        id=step.id, kind=step.kind.value, title=title_of(step), when=step.when or "", undo=_undo(step), **fields
    )


def known_part(value: Any, run: Run, lane: Lane) -> Any:
    """A value with its templates filled in, where no step has to run first."""
    if isinstance(value, Mapping):
        return {key: known_part(one, run, lane) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [known_part(one, run, lane) for one in value]
    if not has_templates(value) or {path[0] for path in spoken_of(value, lane)} - {"inputs"}:
        return value
    try:
        return rendered(value, run, lane)
    except Invalid:
        return value


def _undo(step: Step) -> str:
    match step.undo:
        case Tool() as undo:
            return undo.tool
        case Call() as undo:
            return undo.workflow
        case Prompt():
            return "by the agent"
        case None:
            return ""
