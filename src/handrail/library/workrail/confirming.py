"""Converts `requireConfirmation`: the condition on which the user must agree to a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from handrail.library.schemas.schema_words import described
from handrail.library.workrail.conditions import Condition, condition_of
from handrail.library.workrail.naming import Names
from handrail.library.workrail.noting import Reader

KEY: Final = "requireConfirmation"
HUMAN: Final = "human_approval"
COORDINATOR: Final = "coordinator_eval"
ALWAYS: Final = Condition("true")
FIRST_ROUND: Final = Condition("index == 0")


def confirmation_of(step: Reader, names: Names) -> Condition | None:
    """When the user must agree; None if never, or if it is an error."""
    value, path = step.value.get(KEY), step.at(KEY)
    if value is None or isinstance(value, bool):
        return ALWAYS if value else None
    if isinstance(value, Mapping) and "kind" in value:
        return _of_kind(Reader(value, path, step.notes), names)
    return condition_of(value, names, path, step.notes)


def at_first(confirm: Condition | None, step: Reader) -> Condition | None:
    """When the user must agree to a whole loop: at its first step, in the first round."""
    if confirm is None:
        return None
    step.notes.note(step.at(KEY), "the user is asked at the first step of the first round")
    return FIRST_ROUND if confirm is ALWAYS else FIRST_ROUND.joined(confirm)


def either(one: Condition | None, other: Condition | None) -> Condition | None:
    """When at least one of the two conditions requires it."""
    if one is None or other is None:
        return one or other
    return ALWAYS if ALWAYS in (one, other) else one.joined(other, "or")


def _of_kind(rule: Reader, names: Names) -> Condition:
    rule.note_unknown(("kind", "condition"))
    kind = rule.value["kind"]
    if kind == COORDINATOR:
        rule.notes.note(rule.at("kind"), "there is no coordinator here: the user is asked")
    elif kind != HUMAN:
        rule.notes.fault(rule.at("kind"), f"{described(kind)} is not a kind of confirmation", f"write {HUMAN}")
    return condition_of(rule.value.get("condition"), names, rule.at("condition"), rule.notes) or ALWAYS
