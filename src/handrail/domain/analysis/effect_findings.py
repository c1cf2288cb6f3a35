"""Findings about the effects of steps: unknown effects, effects without undo, irreversible effects too early.

Pure. All of them are notes: they may be intended, but should not happen by accident."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.definition.effect import brings_own_undo, effect_of
from handrail.domain.definition.graph import followers, order
from handrail.domain.definition.model import Approve, Definition, Effect, Step, walk


def effect_notes(definition: Definition, tools: Mapping[str, Effect]) -> Iterator[Flaw]:
    """Effects that are not stated, that can't be undone, or that come before a step that can still fail."""
    for path, step in walk(definition.steps):
        yield from _undo_notes(step, path, tools)
    yield from _early_notes(definition.steps, ("steps",), tools, beyond="")


def _undo_notes(step: Step, path: Path, tools: Mapping[str, Effect]) -> Iterator[Flaw]:
    effect = effect_of(step, tools)
    if effect is None:
        yield Flaw(
            rule="unknown_effect",
            severity=Severity.MINOR,
            path=path,
            message=f"the effect of `{step.id}` is unknown",
            fix="state `effect:` none, reversible, compensatable or irreversible",
        )
    elif effect is not Effect.NONE and step.undo is None and not brings_own_undo(step, tools):
        yield Flaw(
            rule="no_undo",
            severity=Severity.MINOR,
            path=path,
            message=f"`{step.id}` has an effect ({effect.value}) and no `undo:`",
            fix="add `undo:`, or state `effect: none` if it changes nothing",
        )


def _early_notes(steps: tuple[Step, ...], path: Path, tools: Mapping[str, Effect], *, beyond: str) -> Iterator[Flaw]:
    """`beyond` is the step that can fail after the loop that contains these steps."""
    later = _can_fail_later(steps)
    known = {step.id: step for step in steps}
    for index, step in enumerate(steps):
        here = (*path, index)
        failing = later.get(step.id) or beyond
        yield from _early_notes(step.body, (*here, "steps"), tools, beyond=failing)
        is_approved = any(isinstance(known[name].work, Approve) for name in step.after if name in known)
        if failing and not is_approved and effect_of(step, tools) is Effect.IRREVERSIBLE:
            yield Flaw(
                rule="irreversible_early",
                severity=Severity.MINOR,
                path=here,
                message=f"`{step.id}` can't be undone, and `{failing}` after it can still fail",
                fix="put it last, or put an `approve` step right before it",
            )


def _can_fail_later(steps: tuple[Step, ...]) -> dict[str, str]:
    """For each step, the nearest later step that can fail; only an approval can't."""
    follows = followers(steps)
    can_fail = {step.id: not isinstance(step.work, Approve) for step in steps}
    found: dict[str, str] = {}
    for name in reversed(order(steps)):
        candidates = (after if can_fail[after] else found.get(after, "") for after in follows[name])
        found[name] = next(filter(None, candidates), "")
    return found
