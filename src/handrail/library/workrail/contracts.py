"""The artifacts that WorkRail's contracts ask for, as JSON Schemas: what a step must submit before it is done.

Contracts are named in a file, and defined by WorkRail itself; the schemas here say the same as its own. An artifact is
submitted in the list `artifacts`, or as the output itself if it is the only one. assessments.py adds assessments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from handrail.library.workrail.noting import Reader

PREFIX: Final = "wr.contracts."

Schema = dict[str, Any]


class Artifact(Struct, frozen=True, kw_only=True):
    """An artifact that must be submitted: how it is recognised, and its form."""

    name: str
    mark: Schema
    form: Schema


def _text(most: int | None = None, least: int = 1) -> Schema:
    return {"type": "string", "minLength": least, **({"maxLength": most} if most else {})}


def _texts(most: int, length: int = 200) -> Schema:
    return {"type": "array", "items": _text(length), "maxItems": most}


def _closed(optional: Sequence[str] = (), **properties: Schema) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def _open(**properties: Schema) -> Schema:
    return {"type": "object", "required": list(properties), "properties": properties}


def _handoff(kind: str, optional: Sequence[str] = (), **properties: Schema) -> Schema:
    return _closed(optional, kind={"const": f"wr.{kind}"}, version={"const": 1}, **properties)


_CONFIDENCE: Final = {"enum": ["high", "medium", "low"]}
_INSTANT: Final = {
    "type": "string",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z$",
}
_UUID: Final = {"type": "string", "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"}
_POWERS: Final = (
    *("Counter-Positioning", "Switching Costs", "Network Economies", "Scale Economies", "Cornered Resource"),
    *("Process Power", "Branding", "None_Imitable"),
)

FORMS: Final[Mapping[str, Schema]] = {
    "coding_handoff": _handoff(
        "coding_handoff",
        ("branchName", "correctedAssumptions"),
        branchName=_text(),
        keyDecisions=_texts(8),
        knownLimitations=_texts(6),
        testsAdded=_texts(10),
        filesChanged=_texts(20, 300),
        correctedAssumptions={
            "type": "array",
            "items": _open(assumed=_text(200), actual=_text(200)),
            "maxItems": 6,
        },
    ),
    "discovery_handoff": _handoff(
        "discovery_handoff",
        ("rejectedDirections", "implementationConstraints", "keyCodebaseLocations"),
        selectedDirection=_text(),
        designDocPath={"type": "string"},
        confidenceBand=_CONFIDENCE,
        keyInvariants=_texts(12),
        rejectedDirections={
            "type": "array",
            "items": _open(direction=_text(200), reason=_text(300)),
            "maxItems": 5,
        },
        implementationConstraints=_texts(8),
        keyCodebaseLocations={"type": "array", "items": _open(path=_text(300), relevance=_text(150)), "maxItems": 10},
    ),
    "shaping_handoff": _handoff(
        "shaping_handoff",
        pitchPath=_text(),
        selectedShape=_text(200),
        appetite=_text(100),
        keyConstraints=_texts(8),
        rabbitHoles=_texts(6),
        outOfScope=_texts(6),
        validationChecklist=_texts(10),
    ),
    "differentiation_handoff": _handoff(
        "differentiation_handoff",
        schemaVersion={"const": "1.0.0"},
        generatedAt=_INSTANT,
        evidenceFreshness=_open(oldestCapturedAt=_INSTANT, newestCapturedAt=_INSTANT),
        validationChecklist=_texts(10),
        shapingHandoff=_open(
            rawIdea=_text(),
            problem=_text(),
            baseline=_text(),
            appetiteHint={"enum": ["small_batch", "big_batch"]},
            noGosHints={"type": "array", "items": {"type": "string"}},
            constraints=_open(
                teamSize={"type": "integer", "minimum": 1},
                technicalCapabilities={"type": "array", "items": {"type": "string"}, "minItems": 1},
            ),
            evidenceTopK={"type": "array", "items": _UUID, "maxItems": 10},
            defensibilityClaim=_open(power={"enum": list(_POWERS)}, cannibalization={"type": "string"}),
        ),
    ),
    "gate_verdict": _closed(
        ("stepId",),
        kind={"const": "wr.gate_verdict"},
        version={"const": 1},
        verdict={"enum": ["approved", "rejected", "uncertain"]},
        confidence=_CONFIDENCE,
        rationale=_text(least=20),
        stepId=_text(),
    ),
    "review_verdict": _closed(
        kind={"const": "wr.review_verdict"},
        verdict={"enum": ["clean", "minor", "blocking"]},
        confidence=_CONFIDENCE,
        findings={
            "type": "array",
            "items": _open(severity={"enum": ["critical", "major", "minor", "nit"]}, summary=_text()),
        },
        summary=_text(),
    ),
}
"""The contracts by name, without their prefix."""


def artifact_of(step: Reader) -> Artifact | None:
    """The artifact that the contract of a step requires; None if it has none, or one that handrail does not know."""
    contract = step.inner("outputContract")
    if contract is None or contract.value.get("required") is False:
        return None
    name = contract.text("contractRef").removeprefix(PREFIX)
    if name not in FORMS:
        return None
    contract.note_unknown(("contractRef", "required"))
    return Artifact(name=f"wr.{name}", mark=marked(f"wr.{name}"), form=FORMS[name])


def marked(kind: str, **more: str) -> Schema:
    """How an artifact is recognised: by its kind, and by more of its keys."""
    keys = {"kind": kind, **more}
    return {"required": list(keys), "properties": {name: {"const": value} for name, value in keys.items()}}


def output_with(artifacts: Sequence[Artifact]) -> Schema:
    """An output that has these artifacts: in a list, or as a whole if there is only one."""
    listed = {
        "type": "array",
        "items": {"allOf": [{"if": one.mark, "then": one.form} for one in artifacts]},
        "allOf": [{"contains": one.mark} for one in artifacts],
    }
    several: Schema = {"type": "object", "required": ["artifacts"], "properties": {"artifacts": listed}}
    if len(artifacts) > 1:
        return several
    within = {"properties": {"artifacts": listed}}
    return {"type": "object", "if": {"required": ["artifacts"]}, "then": within, "else": artifacts[0].form}


def submit_text(artifacts: Sequence[Artifact]) -> str:
    """The part of the prompt about the artifacts of a step."""
    names = " and ".join(f"`{one.name}`" for one in artifacts)
    alone = " (or the artifact itself as the output)" if len(artifacts) == 1 else ""
    return (
        f"Submit an object with `artifacts`, a list with {names}{alone}. The step is done when handrail finds it right."
    )
