"""Converts loops: when a loop repeats, and the meaning of its names inside.

WorkRail evaluates the condition before each round, also for `until`, and again before each step of it. steps.py
converts the steps inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import Path
from handrail.library.schemas.schema_words import described
from handrail.library.workrail.conditions import Condition, Read, condition_of, condition_text
from handrail.library.workrail.literals import text_literal
from handrail.library.workrail.naming import Counter, Names, item_name
from handrail.library.workrail.noting import Reader
from handrail.library.workrail.recognising import LOOP_TYPES

ROUNDS_DEFAULT: Final = 100
ROUNDS_MAX: Final = 9_999
KEYS: Final = (
    *("type", "condition", "conditionSource", "items", "count", "maxIterations"),
    *("iterationVar", "itemVar", "indexVar"),
)
LOOP_CONTROL: Final = "loop_control"
BY_ARTIFACT: Final = "artifact_contract"
LEFT: Final = {"at_max": "leave"}
"""After its most rounds, WorkRail leaves a loop."""
DECISION: Final = {
    "type": "object",
    "required": ["decision"],
    "properties": {"decision": {"enum": ["continue", "stop"]}},
    "additionalProperties": True,
}
"""The output of a step that decides whether its loop continues."""
DECIDE: Final = (
    'Submit an object with `decision`: "continue" for a round of the loop, "stop" for none. '
    "Here it replaces the artifact wr.loop_control."
)


class LoopPlan(Struct, frozen=True, kw_only=True):
    """How a loop repeats."""

    keys: dict[str, Any]
    names: Names
    guard: Condition | None = None
    """A condition that is added to every step inside."""
    goes_on: Condition | None = None
    """When a round goes on after its first step: WorkRail leaves a loop as soon as its condition is over."""
    says: str = ""
    """A condition that only the agent can judge."""
    before: tuple[Read, ...] = ()
    """What must be set before the loop starts."""
    within: tuple[Read, ...] = ()
    """What each round must set again."""
    is_decided: bool = False
    """Whether a step inside decides by its output; then `until` is still missing."""


def loop_plan_of(step: Reader, names: Names, *, has_control: bool) -> LoopPlan | None:
    """How a loop step repeats; None if it is an error. `has_control`: a step inside submits the decision."""
    loop = step.inner("loop")
    if loop is None:
        if "loop" not in step.value:
            step.notes.fault(step.path, "`loop` is missing", "add {type: while, condition: ..., maxIterations: ...}")
        return None
    loop.note_unknown(KEYS)
    kind, most = loop.text("type"), _most(loop)
    inside = _names_inside(loop, names, each=kind == "forEach")
    match kind:
        case "while" | "until":
            return _conditional(loop, inside, most, has_control=has_control)
        case "for":
            return _counting(loop, names, inside, most)
        case "forEach":
            return _over_items(loop, names, inside, most)
        case _:
            known = ", ".join(LOOP_TYPES)
            step.notes.fault(
                loop.at("type"), f"{described(loop.value.get('type'))} is not a kind of loop", f"choose one of {known}"
            )
            return None


def decided_by(trail: Sequence[str], step: str) -> str:
    """The condition that ends a loop: a step inside decided so, or was skipped."""
    path = _decision(trail, step)
    return f'not exists({path}) or {path} != "continue"'


def started_by(trail: Sequence[str], step: str) -> Condition:
    """The condition that starts a loop: no step before it decided against it."""
    return Condition(f'default({_decision(trail, step)}, "continue") == "continue"')


def submits_decision(step: Any) -> bool:
    """Whether a step of WorkRail submits the decision whether a loop continues."""
    contract = step.get("outputContract") if isinstance(step, Mapping) else None
    return isinstance(contract, Mapping) and LOOP_CONTROL in str(contract.get("contractRef"))


def waits_for_decision(step: Any) -> bool:
    """Whether a step of WorkRail is a loop that continues depending on the output of a step."""
    loop = step.get("loop") if isinstance(step, Mapping) else None
    if not isinstance(loop, Mapping) or loop.get("type") not in ("while", "until"):
        return False
    source, body = loop.get("conditionSource"), step.get("body")
    if isinstance(source, Mapping) and source.get("kind") == BY_ARTIFACT:
        return True
    return isinstance(body, list | tuple) and any(map(submits_decision, body))


def _decision(trail: Sequence[str], step: str) -> str:
    return "steps" + "".join(f"[{text_literal(name)}]" for name in (*trail, step)) + ".output.decision"


def _is_amount(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _most(loop: Reader) -> int:
    value = loop.value.get("maxIterations")
    if value is None:
        loop.notes.note(loop.path, f"the loop has no `maxIterations`: {ROUNDS_DEFAULT} are used")
        return ROUNDS_DEFAULT
    if not _is_amount(value) or not 1 <= value <= ROUNDS_MAX:
        fix = f"write a number from 1 to {ROUNDS_MAX:,}"
        loop.notes.fault(loop.at("maxIterations"), f"{described(value)} is not a number of rounds", fix)
        return ROUNDS_DEFAULT
    return int(value)


def _names_inside(loop: Reader, names: Names, *, each: bool) -> Names:
    """The names for the steps inside; `index` is that of the innermost loop, so outer counters are not available."""
    counters = {loop.text("iterationVar") or "currentIteration": Counter(1)}
    if not each:
        return replace(names, counters=counters)
    counters[loop.text("indexVar") or "currentIndex"] = Counter(0)
    item = loop.text("itemVar") or "currentItem"
    return replace(names, items={**names.items, item: item_name(item)}, counters=counters)


def _conditional(loop: Reader, inside: Names, most: int, *, has_control: bool) -> LoopPlan | None:
    source = loop.inner("conditionSource")
    if has_control or (source is not None and source.value.get("kind") == BY_ARTIFACT):
        if loop.value.get("condition"):
            loop.notes.note(
                loop.at("condition"), "a step inside decides whether the loop continues, not this condition"
            )
        return LoopPlan(keys={"repeat": {"until": "", "max": most, **LEFT}}, names=inside, is_decided=True)
    holder = source if source is not None and source.value.get("condition") else loop
    is_while = loop.text("type") == "while"
    if says := condition_text(holder, "condition", f"Repeat {'while' if is_while else 'until'}"):
        return LoopPlan(keys={"repeat": {"while": True, "max": most, **LEFT}}, names=inside, says=says)
    # It is evaluated between two rounds, when `index` is still that of the last one.
    ahead = {name: Counter(counter.ahead + 1) for name, counter in inside.counters.items()}
    between, within = _condition(holder, replace(inside, counters=ahead)), _condition(holder, inside)
    if between is None or within is None:
        return None
    whole, goes_on = (between, within) if is_while else (between.negated(), within.negated())
    return LoopPlan(
        keys={"repeat": {"while": whole.source, "max": most, **LEFT}},
        names=inside,
        goes_on=goes_on,
        before=between.reads,
        within=between.reads,
    )


def _condition(holder: Reader, names: Names) -> Condition | None:
    if not holder.value.get("condition"):
        holder.notes.fault(holder.path, "the loop has no `condition`", "add {var: ..., equals: ...}")
        return None
    return condition_of(holder.value["condition"], names, holder.at("condition"), holder.notes)


def _counting(loop: Reader, names: Names, inside: Names, most: int) -> LoopPlan | None:
    count = loop.value.get("count")
    if isinstance(count, str) and count.strip():
        return _counting_to(count.strip(), loop.at("count"), names, inside, most)
    if not _is_amount(count):
        loop.notes.fault(
            loop.at("count"), f"a number, or the name of a variable, is expected here, not {described(count)}"
        )
        return None
    if count > most:
        loop.notes.note(loop.at("count"), f"the loop has more rounds than `maxIterations` allows: {most} are used")
    times = min(ceil(count), most)
    return LoopPlan(keys={"repeat": {"times": times} if times else {"while": False}}, names=inside)


def _counting_to(name: str, path: Path, names: Names, inside: Names, most: int) -> LoopPlan:
    """Expressions have no arithmetic, so the loop does one round too many, in which every step is skipped."""
    count = names.path(name)
    reads = (Read(name, (f"a number, at most {most}",)),) if names.is_variable(name) else ()
    return LoopPlan(
        keys={"repeat": {"while": f"exists({count}) and index < {count}", "max": most + 1, **LEFT}},
        names=inside,
        guard=Condition(f"index < {count} and index < {most}"),
        before=reads,
    )


def _over_items(loop: Reader, names: Names, inside: Names, most: int) -> LoopPlan | None:
    name = loop.text("items")
    if not name:
        if "items" not in loop.value:
            loop.notes.fault(loop.path, "the loop has no `items`", "name the variable with the list")
        return None
    item = item_name(loop.text("itemVar") or "currentItem")
    reads = (Read(name, (f"a list, at most {most} items",)),) if names.is_variable(name) else ()
    keys = {"each": f"default({names.path(name)}, [])", "as": item, "max": most, **LEFT}
    return LoopPlan(keys=keys, names=inside, before=reads)
