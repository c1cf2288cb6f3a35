"""Assessments: bounded judgements that a step must submit, and levels on which it is not done yet.

An assessment is an artifact of kind wr.assessment; a consequence is a check with its guidance as message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from handrail.library.schemas.schema_words import described
from handrail.library.workrail.contracts import Artifact, Schema, marked
from handrail.library.workrail.noting import Reader

KIND: Final = "wr.assessment"
SUMMARY_MAX: Final = 1_024
RATIONALE_MAX: Final = 512
MESSAGE_MAX: Final = 1_000
FOLLOW_UP: Final = "require_followup"
NOT_YET: Final = "The assessment says that more is to be done first: do it, then assess again."


def assessed_by(step: Reader, known: Mapping[str, Any]) -> list[Artifact]:
    """The assessments that a step must submit; one that the file does not define has no form."""
    names = step.texts("assessmentRefs")
    found = [_artifact(name, known[name], is_only=len(names) == 1) for name in names if _is_formed(known.get(name))]
    return [one for one in found if one is not None]


def consequences_of(step: Reader) -> list[dict[str, Any]]:
    """The checks of a step that refuse a level of its assessments, each with what is to be done first."""
    checks: list[dict[str, Any]] = []
    for one in step.inners("assessmentConsequences"):
        one.note_unknown(("when", "effect"))
        when, effect = one.inner("when"), one.inner("effect") or Reader({}, one.path, step.notes)
        if when is None:
            step.notes.fault(one.path, "the consequence does not say when it follows", "add `when`")
            continue
        kind = effect.value.get("kind", FOLLOW_UP)
        if kind != FOLLOW_UP:
            message = f"{described(kind)} is not what can follow from an assessment"
            step.notes.fault(effect.path, message, f"write {FOLLOW_UP}")
            continue
        schema = _refusing(when)
        if schema is not None:
            says = effect.text("guidance") or NOT_YET
            checks.append({"rule": "schema", "schema": schema, "message": says[:MESSAGE_MAX]})
    return checks


def _is_formed(definition: Any) -> bool:
    return isinstance(definition, Mapping) and isinstance(definition.get("dimensions"), list | tuple)


def _artifact(name: str, definition: Mapping[str, Any], *, is_only: bool) -> Artifact | None:
    dimensions = [one for one in definition["dimensions"] if isinstance(one, Mapping)]
    levels = {str(one.get("id")): _levels(one.get("levels")) for one in dimensions}
    if not levels or not all(levels.values()):
        return None
    mark = marked(KIND) if is_only else marked(KIND, assessmentId=name)
    form: Schema = {
        "type": "object",
        "required": ["kind", "dimensions", *mark["required"][1:]],
        "properties": {
            "kind": {"const": KIND},
            "assessmentId": {"const": name},
            "dimensions": {
                "type": "object",
                "required": list(levels),
                "properties": {key: _judged(words) for key, words in levels.items()},
                "additionalProperties": False,
            },
            "summary": {"type": "string", "maxLength": SUMMARY_MAX},
        },
        "additionalProperties": False,
    }
    return Artifact(name=f"{KIND} ({name})", mark=mark, form=form)


def _levels(value: Any) -> list[str]:
    words = value if isinstance(value, list | tuple) else ()
    return list(dict.fromkeys(one for word in words if isinstance(word, str) for one in _spellings(word)))


def _judged(levels: list[str]) -> Schema:
    """A level, or a level with its reason."""
    explained = {
        "type": "object",
        "required": ["level"],
        "properties": {
            "level": {"enum": levels},
            "rationale": {"type": "string", "minLength": 1, "maxLength": RATIONALE_MAX},
        },
        "additionalProperties": False,
    }
    return {"if": {"type": "object"}, "then": explained, "else": {"enum": levels}}


def _refusing(when: Reader) -> Schema | None:
    """A schema that no output fits in which a judgement has the level that triggers a consequence."""
    when.note_unknown(("anyEqualsLevel", "forAssessment", "dimensionId", "equalsLevel"))
    level = when.text("anyEqualsLevel") or when.text("equalsLevel")
    if not level:
        when.notes.fault(when.path, "the consequence names no level", "add `anyEqualsLevel`")
        return None
    words = _spellings(level)
    # With a type: what is no object has all required properties in the eyes of JSON Schema.
    explained = {"type": "object", "required": ["level"], "properties": {"level": {"enum": words}}}
    good: Schema = {"not": {"anyOf": [{"enum": words}, explained]}}
    dimension, name = when.text("dimensionId"), when.text("forAssessment")
    judged: Schema = {"properties": {dimension: good}} if dimension else {"additionalProperties": good}
    refused = {"if": _of(name), "then": {"properties": {"dimensions": judged}}}
    return {**refused, "properties": {"artifacts": {"items": refused}}}


def _of(name: str) -> Schema:
    mark = marked(KIND)
    if name:  # the id may be left out if there is only one assessment
        mark["properties"]["assessmentId"] = {"const": name}
    return mark


def _spellings(word: str) -> list[str]:
    plain = word.strip()
    return list(dict.fromkeys((plain, plain.lower(), plain.capitalize(), plain.upper())))
