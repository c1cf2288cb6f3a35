"""Approvals: what a person is asked, the digest that binds the answer to it, and when an approval no longer counts.

Pure. The question is the rendered text and the steps that the approval lets start (approval_reach.py), with their
arguments as far as they are known. Everything that it used is pinned: if a value changes before all of those steps have
started, the approval is withdrawn and asked again. Who may answer is decided in policy/answering.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import Path
from handrail.domain.definition.effect import brings_own_undo, effect_of
from handrail.domain.definition.model import Approve, Call, Definition, Each, Effect, Tool, title_of
from handrail.domain.errors import Conflict, Invalid
from handrail.domain.journal.event import ApprovalWithdrawn, EffectAhead, Entry, Event, VarsSet, step_of
from handrail.domain.json import digest
from handrail.domain.language.expression_path import path_text
from handrail.domain.language.template import has_templates
from handrail.domain.policy.answering import AskedOf
from handrail.domain.run.approval_reach import StepAhead, comes_after, steps_ahead
from handrail.domain.run.approval_uses import paths_read, uses_of
from handrail.domain.run.scope import rendered_by, spoken_of, step_read_by, values_of
from handrail.domain.run.skipped_values import text_for_reader
from handrail.domain.run.state import Run, replay
from handrail.domain.run.status import RUN_OPEN, STEP_MAY_START, STEP_SATISFIED, STEP_STANDING, StepStatus
from handrail.domain.run.step_path import Lane, is_in_undo, locate
from handrail.domain.run.step_state import StepState

EFFECTS_MAX: Final = 20
"""How many of the steps that follow are listed; the digest covers all of them."""
ARGS_LENGTH_MAX: Final = 500
CHANGED_MAX: Final = 20
"""How many changed values are named."""
ASKED_MAX: Final = 10
"""After how many requests in a row without an answer the step fails."""


class Question(Struct, frozen=True):
    """What a person is asked."""

    text: str
    digest: str
    effects: tuple[EffectAhead, ...]
    unshown: int
    values: Mapping[str, Any]
    """Every value that the text and the arguments used, by its name."""
    parts: tuple[tuple[str, Any], ...]
    """All that is known of each step ahead, by its anchor."""


def question_of(run: Run, definition: Definition, path: str, *, asked: int) -> Question:
    """What a person is asked at an approval, for the `asked`th time; Invalid if its text can't be rendered."""
    found = locate(definition, path)
    work = found.step.work
    if not isinstance(work, Approve):
        raise Conflict(f"step {path!r} is not an approval", hint="name an `approve` step")
    ahead = steps_ahead(definition, path)
    known = _KnownNow(run, definition, path, found.lane)
    text = text_for_reader(work.approve, run, found.lane)
    values = known.values(spoken_of(work.approve, found.lane), found.lane)
    shown = [(one, known.part(one)) for one in ahead]
    parts = tuple((one.anchor, part) for one, part in shown)
    for _, part in parts:
        values |= part["uses"]
    effects = [_effect(one, part) for one, part in shown if _has_effect(one)]
    bound: dict[str, Any] = {
        "run": run.id,
        "step": path,
        "definition": run.definition,
        "asked": asked,
        "text": text,
        "ahead": [part for _, part in parts],
        "values": values,
    }
    return Question(text, digest(bound), tuple(effects[:EFFECTS_MAX]), len(effects[EFFECTS_MAX:]), values, parts)


def _has_effect(one: StepAhead) -> bool:
    return isinstance(one.step.work, Tool) or effect_of(one.step) not in {None, Effect.NONE}


def _effect(one: StepAhead, part: Mapping[str, Any]) -> EffectAhead:
    step, args = one.step, part.get("args")
    text = msgspec.json.encode(args).decode() if args else ""
    return EffectAhead(
        step=one.path,
        title=title_of(step),
        tool=step.work.tool if isinstance(step.work, Tool) else "",
        effect=effect_of(step),
        has_undo=step.undo is not None or brings_own_undo(step),
        when=step.when or "",
        args=text if len(text) <= ARGS_LENGTH_MAX else text[: ARGS_LENGTH_MAX - 1] + "…",
    )


class _KnownNow:
    """What is known when the question is asked. The result of a step that comes after the approval never is, even if it
    is looked up later: otherwise each of them would change the question by being done."""

    def __init__(self, run: Run, definition: Definition, approval: str, lane: Lane) -> None:
        self.run = run
        self.is_later = cache(partial(comes_after, definition, approval))
        self.loops = lane.loops
        self.inputs: dict[str, Mapping[str, Any]] = {}
        """By the path of a call ahead: those of its inputs that are known."""

    def part(self, one: StepAhead) -> dict[str, Any]:
        """What is shown or pinned of a step ahead."""
        step, lane = one.step, one.lane
        part: dict[str, Any] = {"step": one.path, "when": step.when, "effect": effect_of(step)}
        match step.work:
            case Tool() as work:
                part |= {"tool": work.tool, "args": self._shown(work.args, lane)}
            case Call() as work:
                part |= {"workflow": work.workflow, "with": self._shown(work.with_, lane)}
                called = {name: value for name, value in work.with_.items() if self._is_known(value, lane)}
                self.inputs[lane.prefix + step.id] = self._shown(called, lane)
            case Each() as work:
                part["each"] = work.items
            case _:
                pass
        return {**part, "uses": self.values(paths_read(one), lane)}

    def values(self, paths: Iterable[Path], lane: Lane) -> dict[str, Any]:
        """The values at these paths, by name; a path whose value is not known yet is left out."""
        known = [path for path in paths if self._knows(path, lane)]
        return {path_text(path).lstrip("."): self._value(path, lane) for path in known}

    def _value(self, path: Path, lane: Lane) -> Any:
        value: Any = self._scope([path], lane)
        for key in path:
            if isinstance(value, Mapping) or (isinstance(value, list | tuple) and isinstance(key, int)):
                value = _item(value, key)
            else:
                return None
        return value

    def _scope(self, paths: Sequence[Path], lane: Lane) -> dict[str, Any]:
        # The items of a loop that has not started are not known, so its names must not be looked up.
        started = replace(lane, loops=tuple(loop for loop in lane.loops if loop in self.loops))
        values = values_of(paths, self.run, started)
        return {**values, "inputs": self.inputs[lane.caller]} if lane.caller in self.inputs else values

    def _shown(self, value: Any, lane: Lane) -> Any:
        """A value with its templates filled in where everything they need is known; the others stay as they are."""
        match value:
            case str() if has_templates(value) and self._is_known(value, lane):
                try:
                    return rendered_by(value, lane, self._scope(spoken_of(value, lane), lane))
                except Invalid:
                    return value
            case Mapping():
                return {key: self._shown(item, lane) for key, item in value.items()}
            case list() | tuple():
                return [self._shown(item, lane) for item in value]
            case _:
                return value

    def _is_known(self, value: Any, lane: Lane) -> bool:
        return all(self._knows(path, lane) for path in spoken_of(value, lane))

    def _knows(self, path: Path, lane: Lane) -> bool:
        match path[0]:
            case "inputs" if lane.caller in self.inputs:
                return len(path) > 1 and path[1] in self.inputs[lane.caller]
            case "vars":
                return len(path) == 1 or path[1] in self.run.vars
            case "steps":
                step = step_read_by(path, lane)
                is_done = step is not None and self.run.step(step).status in STEP_SATISFIED
                return is_done and not self.is_later(step or "")
            case "inputs" | "run":
                return True
            case "index":
                return bool(lane.loops) and lane.loops[-1] in self.loops
            case name:
                return next((loop in self.loops for loop in reversed(lane.loops) if loop.item == name), False)


def _item(value: Any, key: str | int) -> Any:
    try:
        return value[key]
    except (KeyError, IndexError):
        return None


# --- when an approval no longer counts ------------------------------------------------------------------


def withdrawals(run: Run, events: Sequence[Event], definition: Definition) -> list[Event]:
    """The approvals that these events withdraw: a value that one used has changed."""
    if not run.approvals or not events:
        return []
    names = _changed_vars(run, events)
    steps = {step for step in map(step_of, events) if step is not None}
    standing = [path for path in run.approvals if path not in steps and _is_standing(run, path, run.step(path))]
    touched = [path for path in standing if uses_of(definition, path).are_touched(names, steps)]
    if not touched:
        return []
    entries = [
        Entry(stream=run.id, n=n, at=run.updated, actor="", event=event) for n, event in enumerate(events, run.n + 1)
    ]
    after = replay(entries, run)
    found = ((path, _changed(run, after, definition, path)) for path in touched)
    return [
        ApprovalWithdrawn(step=path, digest=run.step(path).digest, changed=tuple(changed[:CHANGED_MAX]))
        for path, changed in found
        if changed
    ]


def _changed_vars(run: Run, events: Sequence[Event]) -> frozenset[str]:
    given = ((name, value) for event in events if isinstance(event, VarsSet) for name, value in event.vars.items())
    return frozenset(name for name, value in given if name not in run.vars or run.vars[name] != value)


def _is_standing(run: Run, path: str, state: StepState) -> bool:
    """Whether the approval waits for an answer, or was given."""
    is_open = run.status in RUN_OPEN or is_in_undo(path)
    return is_open and bool(state.digest) and state.status in STEP_STANDING


def _changed(run: Run, after: Run, definition: Definition, path: str) -> list[str]:
    """The names of the values that have changed, as far as they matter; none if the approval still counts."""
    anchors = _unstarted(after, definition, path)
    if run.step(path).status is StepStatus.COMPLETED and not anchors:
        return []
    asked = run.step(path).asked
    before = question_of(run, definition, path, asked=asked)
    try:
        now = question_of(after, definition, path, asked=asked)
    except Invalid:
        return [path]  # its text can't be rendered any longer: asking again says why
    is_relevant = partial(_parts_of, anchors=anchors)
    if (before.text, is_relevant(before)) == (now.text, is_relevant(now)):
        return []
    names = sorted({*before.values, *now.values})
    differing = [name for name in names if _or_missing(before.values, name) != _or_missing(now.values, name)]
    return differing or [path]


def _parts_of(question: Question, *, anchors: frozenset[str]) -> list[Any]:
    return [part for anchor, part in question.parts if anchor in anchors]


def _unstarted(run: Run, definition: Definition, path: str) -> frozenset[str]:
    """The steps ahead that may still start, or be tried again, by this approval."""
    anchors = {one.anchor for one in steps_ahead(definition, path)}
    around = {anchor for anchor in anchors if _has_next_round(run, anchor, path)}
    return frozenset((*_may_start(run, anchors), *around))


def _has_next_round(run: Run, loop: str, path: str) -> bool:
    """Whether the approval is in the last round of this loop that has started, so that it lets the next one start."""
    return path.startswith(f"{loop}[{run.step(loop).round}].") and run.step(loop).status is StepStatus.RUNNING


def _may_start(run: Run, paths: Iterable[str]) -> Iterator[str]:
    return (path for path in paths if run.step(path).status in STEP_MAY_START)


def _or_missing(values: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    return name in values, values.get(name)


def asked_in(state: StepState) -> Mapping[str, Any]:
    """What a person is asked at a step; empty if it does not ask."""
    return state.values if state.digest and isinstance(state.values, Mapping) else {}


def asked_of(run: Run, step: str) -> AskedOf:
    """Who is asked at a step."""
    asked = asked_in(run.step(step))
    return AskedOf(
        by=tuple(asked.get("by", ())),
        approvals=int(asked.get("approvals") or 1),
        not_by=asked.get("not_by", ""),
        starter=run.starter,
        behalf=run.behalf,
    )
