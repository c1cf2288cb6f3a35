"""Checks inputs and their defaults against the declared schemas.

structure.py applies a schema; domain/analysis/ finds inputs that are missing in a call of another workflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.analysis.call_findings import required_inputs
from handrail.domain.checks.finding import Finding, Flaw, Severity
from handrail.domain.definition.model import Definition
from handrail.domain.definition.work_items import calls_in
from handrail.domain.errors import Invalid
from handrail.domain.json import Json, JsonObject
from handrail.domain.language.template import has_templates
from handrail.domain.suggestion import did_you_mean
from handrail.library.documents.document import document_of, finding_of
from handrail.library.schemas.structure import check_against

GOAL: Final = "goal"


def check_inputs(definition: Definition, inputs: JsonObject, goal: str = "") -> tuple[dict[str, Json], list[Finding]]:
    """The values to start with, defaults filled in, and what is wrong with those that were given.

    The goal of the run is also the input of that name, where that is required and was not given."""
    if goal and GOAL not in inputs and GOAL in required_inputs(definition):
        inputs = {**inputs, GOAL: goal}
    try:
        document = document_of({"inputs": dict(inputs)}, name="<inputs>")
    except Invalid as error:  # too large, too deep, or not JSON
        return dict(inputs), list(error.findings)
    defaults = {name: schema["default"] for name, schema in definition.inputs.items() if "default" in schema}
    return {**defaults, **inputs}, [finding_of(flaw, document) for flaw in _input_flaws(definition, inputs)]


def default_flaws(definition: Definition) -> Iterator[Flaw]:
    """Defaults that do not fit their own schema."""
    for name, schema in definition.inputs.items():
        if "default" in schema:
            for flaw in check_against(schema, schema["default"], path=("inputs", name, "default")):
                yield replace(flaw, rule="default", severity=Severity.CRITICAL)


def given_flaws(definition: Definition) -> Iterator[Flaw]:
    """Values that calls pass to other workflows and that do not fit; templates are checked when they are filled in."""
    for path, call in calls_in(definition):
        inputs = definition.pinned[call.workflow].inputs if call.workflow in definition.pinned else {}
        for name, value in call.with_.items():
            if name in inputs and not has_templates(value):
                yield from check_against(inputs[name], value, path=(*path, "with", name))


def _input_flaws(definition: Definition, inputs: Mapping[str, Any]) -> Iterator[Flaw]:
    for name, value in inputs.items():
        if name in definition.inputs:
            yield from check_against(definition.inputs[name], value, path=("inputs", name))
        else:
            yield Flaw(
                rule="unknown_input",
                severity=Severity.CRITICAL,
                path=("inputs", name),
                message=f"`{definition.id}` has no input `{name}`",
                fix=did_you_mean(name, definition.inputs) or "it has no inputs: leave it out",
                on_key=True,
            )
    for name in required_inputs(definition):
        if name not in inputs:
            yield Flaw(
                rule="missing_input",
                severity=Severity.CRITICAL,
                path=("inputs", name),
                message=f"`{definition.id}` needs the input `{name}`",
                fix=_what_it_is(definition.inputs[name]),
            )


def _what_it_is(schema: Mapping[str, Any]) -> str:
    """How an author describes an input, for the user who has to give it."""
    described = [str(schema[key]) for key in ("type", "description") if key in schema]
    return f"give it: {', '.join(described)}" if described else "give it"
