"""Recognises workflows in WorkRail's format. whole.py converts them.

They have keys in camelCase, which our format never had, and other forms of loops and ids."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from handrail.domain.json import Json

KEYS: Final = frozenset(
    {
        "clarificationPrompts",
        "extensionPoints",
        "functionDefinitions",
        "metaGuidance",
        "metricsProfile",
        "modelTier",
        "recommendedPreferences",
        "validatedAgainstSpecVersion",
    }
)
SHARED_KEYS: Final = frozenset({"about", "assessments", "examples", "features", "references"})
"""Keys of theirs that anyone could write: they count only in a file that has no key of ours."""
OUR_KEYS: Final = frozenset(
    {
        *("category", "clarify", "deadline", "extends", "guidance", "inputs", "license", "max_parallel", "on_failure"),
        *("outputs", "revisit", "tags"),
    }
)
OUR_STEP_KEYS: Final = frozenset(
    {
        *("after", "approve", "args", "bar", "checks", "confirm", "each", "effect", "max_tries", "model", "on_failure"),
        *(
            "output",
            "priority",
            "repeat",
            "role",
            "runs_on",
            "skippable",
            "steps",
            "tool",
            "undo",
            "when",
            "with",
            "workflow",
        ),
    }
)
STEP_KEYS: Final = frozenset(
    {
        "agentRole",
        "askForFiles",
        "assessmentConsequences",
        "assessmentRefs",
        "functionCalls",
        "functionDefinitions",
        "functionReferences",
        "hasValidation",
        "modelTier",
        "notesOptional",
        "outputContract",
        "parallelDelegations",
        "promptBlocks",
        "promptFragments",
        "requireConfirmation",
        "runCondition",
        "templateCall",
        "validationCriteria",
    }
)
LOOP_TYPES: Final = ("while", "until", "for", "forEach")

_dotted_id = re.compile(r"[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*")


def looks_like_workrail(data: Json) -> bool:
    """Whether data is a workflow in WorkRail's own format."""
    if not isinstance(data, Mapping):
        return False
    if not KEYS.isdisjoint(data) or _has_dotted_id(data):
        return True
    steps = data.get("steps")
    if not isinstance(steps, list | tuple):
        return False
    return any(map(_is_theirs, steps)) or (not SHARED_KEYS.isdisjoint(data) and not _is_ours(data, steps))


def _is_ours(data: Mapping[str, Any], steps: Sequence[Any]) -> bool:
    """Whether a file has a key, or a step that is a plain text, which they do not have."""
    if not OUR_KEYS.isdisjoint(data):
        return True
    return any(not isinstance(step, Mapping) or not OUR_STEP_KEYS.isdisjoint(step) for step in steps)


def _has_dotted_id(data: Mapping[str, Any]) -> bool:
    identity = data.get("id")
    return isinstance(identity, str) and "steps" in data and _dotted_id.fullmatch(identity) is not None


def _is_theirs(step: Json) -> bool:
    if not isinstance(step, Mapping):
        return False
    return not STEP_KEYS.isdisjoint(step) or (step.get("type") == "loop" and "loop" in step)
