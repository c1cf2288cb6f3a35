"""Recognises workflows in WorkRail's format. whole.py converts them.

They have keys in camelCase, which our format never had, and other forms of loops and ids."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    return isinstance(steps, list | tuple) and any(map(_is_theirs, steps))


def _has_dotted_id(data: Mapping[str, Any]) -> bool:
    identity = data.get("id")
    return isinstance(identity, str) and "steps" in data and _dotted_id.fullmatch(identity) is not None


def _is_theirs(step: Json) -> bool:
    if not isinstance(step, Mapping):
        return False
    return not STEP_KEYS.isdisjoint(step) or (step.get("type") == "loop" and "loop" in step)
