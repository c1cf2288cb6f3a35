"""The effect of a step, as declared by the step, its tool, or the built-in tools.

Pure. The tools themselves are in tools/; here is only what is known before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from handrail.domain.definition.model import Effect, Step, Tool

BUILT_IN_EFFECTS: Final[Mapping[str, Effect]] = MappingProxyType(
    {
        "file.read": Effect.NONE,
        "file.write": Effect.REVERSIBLE,
        "file.append": Effect.REVERSIBLE,
        "file.move": Effect.REVERSIBLE,
        "file.delete": Effect.REVERSIBLE,
        "file.mkdir": Effect.REVERSIBLE,
        "http.request": Effect.COMPENSATABLE,  # unless its method only reads
        "shell.run": Effect.IRREVERSIBLE,
        "wait.for": Effect.NONE,
        "value.set": Effect.NONE,
    }
)
READING_METHODS: Final = frozenset({"GET", "HEAD"})


def tool_effect(work: Tool, tools: Mapping[str, Effect] = BUILT_IN_EFFECTS) -> Effect | None:
    """The effect of a call as its tool declares it; None if it is unknown."""
    if work.tool == "http.request" and str(work.args.get("method", "GET")).upper() in READING_METHODS:
        return Effect.NONE
    return tools.get(work.tool)


def effect_of(step: Step, tools: Mapping[str, Effect] = BUILT_IN_EFFECTS) -> Effect | None:
    """The effect of a step: its own declaration first, then its tool's; None if it is unknown."""
    if step.effect is not None:
        return step.effect
    known = tool_effect(step.work, tools) if isinstance(step.work, Tool) else Effect.NONE
    if step.undo and known in {None, Effect.NONE}:
        return Effect.COMPENSATABLE  # an author who writes an undo expects an effect
    return known


def brings_own_undo(step: Step, tools: Mapping[str, Effect] = BUILT_IN_EFFECTS) -> bool:
    """Whether the step's tool can undo its own effect."""
    return isinstance(step.work, Tool) and tools.get(step.work.tool) is Effect.REVERSIBLE
