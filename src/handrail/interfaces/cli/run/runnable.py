"""What to run: the definition in a file or with an id, and its typed inputs.

Nothing is started here. The library decides whether a definition is valid (library/loading.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from handrail.assembly import StoreReader, library_of, rules_of, survey_of
from handrail.domain.analysis.fitness import require_fit
from handrail.domain.analysis.local import Survey
from handrail.domain.checks.finding import blocks
from handrail.domain.definition.model import Definition
from handrail.domain.definition.work_items import tools_in
from handrail.domain.errors import Invalid, NotFound
from handrail.domain.suggestion import did_you_mean
from handrail.interfaces.cli.words.json_value import FILE_MARK, file_content
from handrail.interfaces.cli.workflow.definitions import STDIN, load_valid
from handrail.library.documents.document import read_document
from handrail.library.loading import check_inputs, valid
from handrail.library.shelf.catalog import SUFFIXES
from handrail.tools.registry import Registry


async def definition_of(name: str, look: StoreReader, toolbox: Registry) -> tuple[Definition, Mapping[str, str]]:
    """The definition in a file, of a workflow, or of the saved plan of that name, ready to run, and its pins."""
    definition, pins = await _found(name, look, None)
    await toolbox.connect(tools_in(definition))
    survey = survey_of(rules_of(look.settings, toolbox), toolbox)
    await _found(name, look, survey)  # reports where in the file an unknown tool is named
    require_fit(definition, survey)
    return definition, pins


async def _found(name: str, look: StoreReader, survey: Survey | None) -> tuple[Definition, Mapping[str, str]]:
    if name == STDIN or name.endswith(SUFFIXES) or _is_file(name):
        definition, _ = load_valid(name, look.settings, survey=survey)
        return definition, {}
    library = library_of(look.settings)
    if library.catalog.find(name.partition("@")[0]):
        return valid(library.load(name, survey=survey), name), {}
    try:
        return await look.plans.newest(name)
    except NotFound as error:
        rows = await look.store.plans(limit=1_000)
        known = [*(entry.id for entry in library.entries()), *(row.id for row in rows if row.retired is None)]
        hint = did_you_mean(name, known) or "give a file, or save a plan first: `handrail plan save FILE`"
        raise NotFound(f"there is no file, workflow or plan {name!r}", hint=hint) from error


def _is_file(name: str) -> bool:
    return Path(name).is_file()


def inputs_of(definition: Definition, typed: Iterable[str]) -> Mapping[str, Any]:
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
    inputs, findings = check_inputs(definition, given)
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
