"""`handrail workflow list` and `show`. The library itself is library/shelf/workflow_library.py."""

from __future__ import annotations

from typing import Any

import click

from handrail.assembly.tools import library_of
from handrail.domain.definition.authoring import definition_data
from handrail.domain.definition.model import Definition, title_of
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.completion import complete_workflow
from handrail.interfaces.cli.words.excerpt import lines_of, printable
from handrail.interfaces.cli.words.finding_view import print_findings
from handrail.interfaces.cli.words.own_command import advise
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import put, say
from handrail.interfaces.cli.workflow.lookup import found
from handrail.library.documents.printing import yaml_text
from handrail.library.loading import valid
from handrail.library.shelf.workflow_entry import WorkflowEntry

DESCRIPTION_MAX = 100


@click.command("list")
@click.argument("words", nargs=-1)
@click.option("--query", default="", help="What you want to do, in a few words.")
@click.option("--category", default="", help="Only workflows of this category.")
@click.option("--tag", "tags", multiple=True, help="Only workflows with this tag; may be repeated.")
@json_option
@click.pass_context
@reports_errors
async def list_(
    ctx: click.Context, words: tuple[str, ...], query: str, category: str, tags: tuple[str, ...], as_json: bool
) -> None:
    """List the workflows of the library; with WORDS or --query those that match, the best first."""
    library = library_of(settings_of(ctx))
    matching = library.search(" ".join([query, *words]).strip(), category=category, tags=tags)
    broken = library.broken()

    def print_text() -> None:
        head = ("id", Column("version", 1), Column("category", 3), Column("steps", 4), Column("from", 2), "description")
        print_table(head, map(_row, matching))
        for one in broken:
            say(printable(f"{one.file} can't be read: {one.message}"), fg="yellow", err=True)
        if not matching:
            advise("no workflow matches; `handrail workflow list` shows all")

    data = listing("workflows", [_entry_data(entry) for entry in matching], broken=broken)
    answer(data, as_json=as_json, as_text=print_text)


@click.command()
@click.argument("name", metavar="FILE|ID", shell_complete=complete_workflow)
@click.option("--yaml", "as_yaml", is_flag=True, help="The whole definition, as YAML.")
@json_option
@click.pass_context
@reports_errors
async def show(ctx: click.Context, name: str, as_yaml: bool, as_json: bool) -> None:
    """Show a workflow: its purpose, its inputs and its steps."""
    settings = settings_of(ctx)
    loaded = found(name, settings)
    definition = valid(loaded, name)
    entry = next((one for one in library_of(settings).entries() if one.id == definition.id), None)
    place = _place(entry) if entry is not None and entry.version == definition.version else {}

    def print_text() -> None:
        if as_yaml:
            put(yaml_text(_written(definition)), nl=False)
        else:
            _print(definition, place)
            print_findings(loaded.findings)

    data = {**place, "hash": loaded.hash, "findings": loaded.findings, "definition": definition_data(definition)}
    answer(data, as_json=as_json, as_text=print_text)


def _written(definition: Definition) -> dict[str, Any]:
    data = definition_data(definition)
    data.pop("pinned", None)
    return data


def _row(entry: WorkflowEntry) -> tuple[object, ...]:
    words = printable(" ".join(entry.description.split()))
    text = words if len(words) <= DESCRIPTION_MAX else f"{words[:DESCRIPTION_MAX]}..."
    shadows = f" (shadows {', '.join(entry.shadows)})" if entry.shadows else ""
    named = [printable(cell) or "-" for cell in (entry.id, entry.version, entry.category)]
    return (*named, entry.steps, f"{entry.source}{shadows}", text)


def _entry_data(entry: WorkflowEntry) -> dict[str, Any]:
    data = {
        "id": entry.id,
        "name": entry.name,
        "version": entry.version,
        "description": entry.description,
        "category": entry.category,
        "tags": entry.tags,
        "steps": entry.steps,
    }
    return data | _place(entry)


def _place(entry: WorkflowEntry) -> dict[str, Any]:
    return {"source": entry.source, "file": entry.file, "shadows": entry.shadows}


def _print(definition: Definition, place: dict[str, Any]) -> None:
    version = f"@{definition.version}" if definition.version else ""
    say(printable(f"{definition.id}{version}  {definition.name}"), bold=True)
    for line in lines_of(definition.description):
        say(printable(line))
    about = {
        "category": definition.category,
        "tags": ", ".join(definition.tags),
        "from": " ".join(filter(None, (place.get("source"), place.get("file")))),
        "shadows": ", ".join(place.get("shadows", ())),
    }
    for key, value in about.items():
        if value:
            say(f"  {key}: {printable(value)}")
    _print_inputs(definition)
    for title, lines in (
        ("before the first step", definition.preconditions),
        ("questions to ask first", definition.clarify),
        ("rules", definition.guidance),
    ):
        _print_lines(title, lines)
    _print_lines("steps", [_step_line(definition, number) for number in range(len(definition.steps))])
    _print_lines("outputs", [f"{name} = {source}" for name, source in definition.outputs.items()])


def _print_inputs(definition: Definition) -> None:
    lines = []
    for name, schema in definition.inputs.items():
        kind = schema.get("type", "anything")
        words = [str(kind if isinstance(kind, str) else " or ".join(kind)), str(schema.get("description", ""))]
        default = f" (default: {schema['default']!r})" if "default" in schema else ""
        lines.append(f"{name}: {', '.join(filter(None, words))}{default}")
    _print_lines("inputs", lines)


def _step_line(definition: Definition, number: int) -> str:
    step = definition.steps[number]
    when = f", when {step.when}" if step.when else ""
    inside = f" [{', '.join(one.id for one in step.body)}]" if step.body else ""
    return f"{step.id}: {title_of(step)} ({step.kind.value}{when}){inside}"


def _print_lines(title: str, lines: Any) -> None:
    if lines:
        say(title, bold=True)
    for text in lines:
        for line in lines_of(text):
            say(f"  {printable(line)}")
