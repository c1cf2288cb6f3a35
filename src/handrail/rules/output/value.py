"""Rules about values: `equals`, `expression`, `schema`, `json`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import Given, subject_name
from handrail.domain.errors import Invalid
from handrail.domain.plural import plural
from handrail.rules.output.subject import MISSING, excerpt, finding, missing, subject_of, text_of, unfit

VALUES_SHOWN: Final = 3
_output_path = re.compile(r"\boutput(?:\.[A-Za-z]\w*)+")


def equals(parameters: Mapping[str, Any], given: Given) -> Iterator[Finding]:
    """It equals `value`."""
    value = subject_of(parameters, given)
    if "value" not in parameters:
        yield unfit("equals", "value", "it has no `value`")
    elif value is MISSING:
        yield missing("equals", parameters)
    elif value != parameters["value"] or isinstance(value, bool) != isinstance(parameters["value"], bool):
        wanted = text_of(parameters["value"])[:80]
        yield finding("equals", parameters, f"it is {text_of(value)[:80]}, not {wanted}", f"it must be {wanted}")


def expression(parameters: Mapping[str, Any], given: Given) -> Iterator[Finding]:
    """`that` is true: an expression over `output`, `inputs`, `vars` and `steps`."""
    source = parameters.get("that")
    if not isinstance(source, str):
        yield unfit("expression", "that", "it has no `that`")
        return
    try:
        value = given.evaluate(source)
    except Invalid as error:
        yield finding("expression", parameters, f"`{source}` can't be evaluated: {error}", "submit what it reads")
        return
    if value is not True:
        message = f"`{source}` is not true{_read_values(source, given)}"
        yield finding("expression", parameters, message, "change the output so that it is")


def _read_values(source: str, given: Given) -> str:
    """What an expression found in the output: the values at the paths that it names."""
    paths = list(dict.fromkeys(_output_path.findall(source)))[:VALUES_SHOWN]
    found = {path: subject_of({"of": path.removeprefix("output").removeprefix(".")}, given) for path in paths}
    named = [f"{path} is {_value_words(value)}" for path, value in found.items() if value is not MISSING]
    return f": {', '.join(named)}" if named else ""


def _value_words(value: Any) -> str:
    shown = excerpt(value)
    if not isinstance(value, str | list) or shown.endswith((")", "items")):
        return shown  # its size is there already
    return f"{shown}, {plural(len(value), 'item' if isinstance(value, list) else 'character')}"


def schema(parameters: Mapping[str, Any], given: Given) -> Iterator[Finding]:
    """It fits the JSON Schema `schema`."""
    value = subject_of(parameters, given)
    if not isinstance(parameters.get("schema"), Mapping):
        yield unfit("schema", "schema", "it has no `schema`")
    elif value is MISSING:
        yield missing("schema", parameters)
    else:
        for found in given.fits(parameters["schema"], value):
            place = found.where.removeprefix("output")
            yield replace(found, rule="schema", where=subject_name(parameters) + place)


def json(parameters: Mapping[str, Any], given: Given) -> Iterator[Finding]:
    """It is a string with valid JSON, or structured data."""
    value = subject_of(parameters, given)
    if value is MISSING:
        yield missing("json", parameters)
    elif isinstance(value, str):
        try:
            msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError) as error:
            yield finding("json", parameters, f"it is not JSON: {error}", "submit valid JSON")
