"""What to run: the definition in a file or with an id, and its typed inputs.

Nothing is started here. The library decides whether a definition is valid (library/loading.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from handrail.assembly.checks import rules_of
from handrail.assembly.opening import StoreReader
from handrail.assembly.people import people_of
from handrail.assembly.tools import library_of, survey_of
from handrail.definitions import Definitions
from handrail.domain.checks.finding import blocks
from handrail.domain.definition.model import Definition
from handrail.domain.definition.work_items import tools_in
from handrail.domain.errors import Invalid
from handrail.interfaces.cli.words.json_value import FILE_MARK, file_content
from handrail.interfaces.cli.workflow.definitions import STDIN, load_valid
from handrail.library.documents.document import read_document
from handrail.library.loading import check_inputs
from handrail.tools.registry import Registry


async def definition_of(name: str, look: StoreReader, toolbox: Registry) -> tuple[Definition, Mapping[str, str]]:
    """The definition in a file (`-`: stdin), of a workflow, or of the saved plan of that name, and its pins."""
    survey = survey_of(rules_of(look.settings, toolbox), toolbox, people_of(look.settings))
    definitions = Definitions(library_of(look.settings), look.plans, look.store, toolbox, survey)
    if name != STDIN:
        return await definitions.find(name)
    definition, _ = load_valid(STDIN, look.settings)
    await toolbox.connect(tools_in(definition))
    load_valid(STDIN, look.settings, survey=survey)  # reports where an unknown tool is named
    await definitions.require_runnable(definition)
    return definition, {}


def inputs_of(definition: Definition, typed: Iterable[str], goal: str = "") -> Mapping[str, Any]:
    """The inputs that were typed (`name=value`, `@file`), checked and completed; Invalid with all findings."""
    given: dict[str, Any] = {}
    for word in typed:
        if word.startswith(FILE_MARK):
            given |= _from_file(word.removeprefix(FILE_MARK))
        else:
            name, equals, text = word.partition("=")
            if not equals or not name:
                raise Invalid(f"input {word!r} is not `name=value`", hint="write -i name=value, or -i @file.json")
            given[name] = value_of(text, definition.inputs.get(name))
    inputs, findings = check_inputs(definition, given, goal)
    if blocks(findings):
        raise Invalid(f"{definition.id} can't start with these inputs", findings=findings)
    return inputs


def value_of(text: str, schema: Any) -> Any:
    """A typed value: parsed if it is JSON, unless the schema wants a string."""
    kinds = schema.get("type", ()) if isinstance(schema, Mapping) else ()
    if "string" in ((kinds,) if isinstance(kinds, str) else kinds):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _from_file(name: str) -> dict[str, Any]:
    value = read_document(file_content(name, "inputs"), name=name).value
    if not isinstance(value, dict):
        raise Invalid(f"{name} does not contain inputs by name", hint="write `name: value` in each line")
    return value
