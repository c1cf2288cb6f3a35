"""What is to be run: the definition that a file or an id names, and the inputs that were typed for it.

Nothing is started here. Whether a definition is sound is the library's word; here it is only asked for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from handrail.assembly import Reading
from handrail.domain.analysis.whole import analyse
from handrail.domain.check import Finding, Severity, blocks, place
from handrail.domain.definition import Definition, Effect, Tool, walk
from handrail.domain.errors import Invalid, NotFound
from handrail.domain.semver import best
from handrail.domain.suggestion import did_you_mean
from handrail.interfaces.cli.definitions import STDIN, load_valid
from handrail.library.catalog import SUFFIXES
from handrail.library.document import read_document
from handrail.library.loading import FolderCatalog, check_inputs

FILE_MARK: Final = "@"
ANY_VERSION: Final = "*"


async def definition_of(name: str, look: Reading, tools: Mapping[str, Effect]) -> Definition:
    """The definition in a file, of the project's workflow, or of the saved plan of that name, fit to be run."""
    settings = look.settings
    if name == STDIN or name.endswith(SUFFIXES) or _is_file(name):
        definition, _ = load_valid(name, settings, tools=tools)
    elif file := _workflow_file(name, settings.workflows):
        definition, _ = load_valid(file, settings, tools=tools)
    else:
        definition = await _plan(name, look, tools)
    if refused := list(_checks(definition)):
        raise Invalid("checks on tool steps can't be run yet", findings=refused)
    return definition


def _is_file(name: str) -> bool:
    return Path(name).is_file()


def _workflow_file(name: str, folder: Path) -> str | None:
    """The file of the project's workflow of that id (`id` or `id@range`), the best of its versions."""
    wanted, _, versions = name.partition("@")
    found = {one.version: one.document.name for one in reversed(FolderCatalog([folder]).find(wanted))}
    if not found:
        return None
    chosen = best(found, versions or ANY_VERSION) if versions or len(found) > 1 else next(iter(found))
    return found.get(chosen) if chosen is not None else None


async def _plan(name: str, look: Reading, tools: Mapping[str, Effect]) -> Definition:
    plan = await look.plans.get(name)
    if not plan.versions or plan.retired is not None:
        rows = await look.store.plans(limit=1_000)
        known = [*FolderCatalog([look.settings.workflows]).ids(), *(row.id for row in rows if row.retired is None)]
        hint = did_you_mean(name, known) or "give a file, or save a plan first: `handrail plan save FILE`"
        raise NotFound(f"there is no file, workflow or plan {name!r}", hint=hint)
    definition = await look.plans.definition(plan.newest)
    flaws = analyse(definition, tools=tools)
    findings = [
        Finding(rule=one.rule, severity=one.severity, where=place(one.path), message=one.message, fix=one.fix)
        for one in flaws
    ]
    if blocks(findings):
        raise Invalid(f"plan {name} can't be run", findings=findings)
    return definition


def _checks(definition: Definition) -> Iterator[Finding]:
    # Refused rather than passed over: a check that nobody runs would be a promise broken in silence.
    for one in (definition, *definition.pinned.values()):
        for path, step in walk(one.steps):
            if isinstance(step.work, Tool) and step.work.checks:
                yield Finding(
                    rule="checks",
                    severity=Severity.CRITICAL,
                    where=place((*path, "checks")),
                    message=f"step `{step.id}` has checks, and checks of tool steps are not built yet",
                    fix="leave `checks` out, or describe the output with `output`",
                )


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
    """A typed value: JSON where it is JSON and nobody asks for a text."""
    kinds = schema.get("type", ()) if isinstance(schema, Mapping) else ()
    if "string" in ((kinds,) if isinstance(kinds, str) else kinds):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _from_file(name: str) -> dict[str, Any]:
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        raise NotFound(
            f"inputs can't be read from {name!r}: {error.strerror}", hint="give a JSON or YAML file"
        ) from error
    value = read_document(content, name=name).value
    if not isinstance(value, dict):
        raise Invalid(f"{name} does not hold inputs by name", hint="write `name: value` in each line")
    return value
