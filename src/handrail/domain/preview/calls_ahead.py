"""Calls ahead: what a step, or its undo, would do, with all values filled in that are known now.

Pure. The same rendering as a real start (domain/scheduling/step_start.py); nothing is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from handrail.domain.definition.effect import BUILT_IN_EFFECTS, brings_own_undo, effect_of
from handrail.domain.definition.model import Approve, Call, Definition, Effect, Prompt, Step, Tool, title_of
from handrail.domain.errors import Invalid
from handrail.domain.preview.values import CallAhead, Hand, shown_value
from handrail.domain.rehearsal.dry_run import known_part
from handrail.domain.run.approval import Question, question_of
from handrail.domain.run.approval_reach import StepAhead, steps_ahead
from handrail.domain.run.command import FailAttempt, FailUndo
from handrail.domain.run.scope import spoken_of
from handrail.domain.run.skipped_values import text_for_reader
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import UNDO, Lane, locate, undo_lane
from handrail.domain.scheduling.step_start import CallTool, Grant, InputCheck, StepStart, start_of, undo_start_of

OWN: str = "own"
"""What a tool says that undoes its own calls; else it names the tool that does."""


class KnownTools(Struct, frozen=True, kw_only=True):
    """What is known of tools without asking their servers."""

    effects: Mapping[str, Effect] = BUILT_IN_EFFECTS
    undos: Mapping[str, str] = field(default_factory=dict)
    """By tool: how its effect is undone if the plan does not say."""


class Now(Struct, frozen=True, kw_only=True):
    """What previews need besides the run: the time, the check of inputs, and the tools."""

    at: int
    check: InputCheck
    tools: KnownTools = KnownTools()


def call_of(run: Run, definition: Definition, path: str, now: Now) -> CallAhead:
    """What would be done to start this ready step."""
    found = locate(definition, path)
    step = found.step
    facts: dict[str, Any] = {"effect": effect_of(step, now.tools.effects), "can_be_undone": can_be_undone(step, now)}
    if isinstance(step.work, Prompt):
        return _ahead(path, step, by=Hand.AGENT, **facts, **_said(step.work.prompt, run, found.lane))
    if isinstance(step.work, Approve):
        return _ahead(path, step, by=Hand.PERSON, **_said(step.work.approve, run, found.lane))
    start = start_of(run, definition, path, now=now.at, check=now.check)
    if isinstance(start, CallTool):
        return _ahead(path, step, tool=start.work.tool, args=shown_value(start.args), **facts)
    return _ahead(path, step, problem=_problem(start), **facts)


def _problem(start: StepStart) -> str:
    """Why a step, or its undo, can't start; empty if it can."""
    commands = start.commands if isinstance(start, Grant) else ()
    return "; ".join(one.message for one in commands if isinstance(one, FailAttempt | FailUndo))


def undo_call_of(run: Run, definition: Definition, path: str, now: Now) -> CallAhead:
    """What would be done to undo this step."""
    found = locate(definition, path)
    step = found.step
    if isinstance(step.undo, Prompt):
        return _ahead(path, step, is_undo=True, by=Hand.AGENT, **_said(step.undo.prompt, run, found.lane))
    start = undo_start_of(run, definition, path, check=now.check)
    if isinstance(start, CallTool):
        tool = _undoing_tool(start, now)
        return _ahead(path, step, is_undo=True, tool=tool, args=shown_value(start.args), own_undo=start.own_undo)
    called = step.undo.workflow if isinstance(step.undo, Call) else ""
    return _ahead(path, step, is_undo=True, workflow=called, problem=_problem(start))


def _undoing_tool(start: CallTool, now: Now) -> str:
    """The tool that is called: a server can name another one that undoes what a tool did."""
    other = now.tools.undos.get(start.work.tool, "") if start.own_undo else ""
    return start.work.tool if other in {"", OWN} else other


def steps_of_undo(run: Run, definition: Definition, path: str, now: Now) -> list[CallAhead]:
    """The steps of the workflow that undoes a step, with what is known of them before it starts."""
    lane = undo_lane(definition, locate(definition, path))
    steps = lane.course.steps if lane is not None else ()
    return [_inner(run, lane, step, now) for step in steps if lane is not None]


def _inner(run: Run, lane: Lane, step: Step, now: Now) -> CallAhead:
    path, effect, when = lane.prefix + step.id, effect_of(step, now.tools.effects), step.when or ""
    match step.work:
        case Tool() as work:
            args = shown_value(known_part(work.args, run, lane))
            return _ahead(path, step, is_undo=True, tool=work.tool, args=args, effect=effect, when=when)
        case Prompt() as work:
            return _ahead(path, step, is_undo=True, by=Hand.AGENT, text=str(known_part(work.prompt, run, lane)))
        case Approve() as work:
            return _ahead(path, step, is_undo=True, by=Hand.PERSON, text=str(known_part(work.approve, run, lane)))
        case _:
            return _ahead(path, step, is_undo=True, when=when)


def is_self_contained(definition: Definition, path: str) -> bool:
    """Whether the workflow that undoes a step uses no results of its own steps: then all its calls are known before."""
    lane = undo_lane(definition, locate(definition, path))
    steps = lane.course.steps if lane is not None else ()
    return all(_reads_no_result(step, lane) for step in steps if lane is not None)


def _reads_no_result(step: Step, lane: Lane) -> bool:
    work = step.work
    is_plain = isinstance(work, Tool | Prompt | Approve) and step.when is None
    written = work.args if isinstance(work, Tool) else work.prompt if isinstance(work, Prompt) else ""
    written = work.approve if isinstance(work, Approve) else written
    return is_plain and all(read[0] != "steps" for read in spoken_of(written, lane))


def calls_after_approval(run: Run, definition: Definition, path: str, now: Now) -> list[CallAhead]:
    """The steps that an approval lets start, as the person who is asked sees them, but none left out."""
    question: Question = question_of(run, definition, path, asked=run.step(path).asked)
    shown = zip(steps_ahead(definition, path), question.parts, strict=True)
    return [_approved(one, part, now) for one, (_, part) in shown]


def _approved(one: StepAhead, part: Mapping[str, Any], now: Now) -> CallAhead:
    work = one.step.work
    by = {Prompt: Hand.AGENT, Approve: Hand.PERSON}.get(type(work), Hand.HANDRAIL)
    # Each argument is shortened by itself: a long body must not push the address out of sight.
    args = part.get("args", part.get("with"))
    return _ahead(
        one.path,
        one.step,
        by=by,
        tool=work.tool if isinstance(work, Tool) else "",
        workflow=work.workflow if isinstance(work, Call) else "",
        args={name: shown_value(value) for name, value in args.items()} if args else None,
        effect=effect_of(one.step, now.tools.effects),
        can_be_undone=can_be_undone(one.step, now),
        when=one.step.when or "",
    )


def can_be_undone(step: Step, now: Now) -> bool:
    """Whether a step would have a way back: its own undo, or its tool's."""
    tool = step.work.tool if isinstance(step.work, Tool) else ""
    return step.undo is not None or brings_own_undo(step, now.tools.effects) or bool(now.tools.undos.get(tool))


def _said(template: str, run: Run, lane: Lane) -> dict[str, str]:
    try:
        return {"text": text_for_reader(template, run, lane)}
    except Invalid as error:
        return {"text": template, "problem": str(error)}


def _ahead(path: str, step: Step, *, by: Hand = Hand.HANDRAIL, **facts: Any) -> CallAhead:
    return CallAhead(order=0, step=path.removesuffix(UNDO), title=title_of(step), by=by, **facts)
