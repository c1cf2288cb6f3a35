"""`handrail workflow new`: a small workflow to start from, its tests, and the schema that editors read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import click

from handrail.assembly.tools import library_of
from handrail.domain.definition.authoring import definition_data
from handrail.domain.errors import Invalid, Unavailable
from handrail.foundation.atomic_file import write_whole
from handrail.foundation.plain_file import NotPlain, read_plain, root_around
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer
from handrail.interfaces.cli.words.completion import complete_workflow
from handrail.interfaces.cli.words.new_files import write_new
from handrail.interfaces.cli.words.own_command import localized
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.workflow.lookup import file_of, is_file_name
from handrail.interfaces.cli.workflow.template import TESTS, WORKFLOW
from handrail.library.documents.document import DOCUMENT_BYTES_MAX, read_document
from handrail.library.documents.printing import yaml_text
from handrail.library.loading import load_definition
from handrail.library.schemas.structure import schema_text
from handrail.library.test_script import suite_file
from handrail.settings import Settings

SCHEMA_FILE: Final = "workflow.schema.json"
FIRST_VERSION: Final = "0.1.0"

_editor_line = re.compile(r"^# yaml-language-server:[^\n]*\n", re.MULTILINE)


@click.command()
@click.argument("name", metavar="ID")
@click.option(
    "--from",
    "template",
    metavar="TEMPLATE",
    help="Start from this workflow: a file, or an id of the library.",
    shell_complete=complete_workflow,
)
@click.option("-o", "--output", metavar="FILE", help="Where to write it (default: .handrail/workflows/ID.yaml).")
@json_option
@click.pass_context
@reports_errors
async def new(ctx: click.Context, name: str, template: str | None, output: str | None, as_json: bool) -> None:
    """Write a small workflow called ID to start from, with tests beside it; nothing is overwritten."""
    settings = settings_of(ctx)
    file = Path(output) if output else settings.workflows / f"{name.rpartition('/')[2]}.yaml"
    schema = settings.workflows.parent / SCHEMA_FILE
    texts = _texts(name, template, settings)
    _require_id(texts[0], name, file, settings)
    line = f"# yaml-language-server: $schema={_relative(schema, file.parent)}\n"
    written = {file: line + texts[0], **({suite_file(file): texts[1]} if texts[1] else {})}
    write_new(written, project=settings.project, hint="choose another id, or another file with -o")
    _write_schema(schema)
    data = {"id": name, "file": str(file), "tests": str(suite_file(file)) if texts[1] else None, "schema": str(schema)}

    def print_text() -> None:
        for path in written:
            say(f"wrote {path}")
        say(localized(f"next: edit it, then `handrail workflow test {file}`"))

    answer(data, as_json=as_json, as_text=print_text)


def _texts(name: str, template: str | None, settings: Settings) -> tuple[str, str]:
    """The texts of the workflow and of its tests; the latter is empty if the template has none."""
    if template is None:
        title = name.rpartition("/")[2].replace("-", " ").capitalize()
        workflow, tests = (text.replace("ID", name).replace("NAME", title) for text in (WORKFLOW, TESTS))
        return workflow, tests
    source = Path(template if is_file_name(template) else file_of(template, settings))
    try:
        text = _text_in(source, settings)
        beside = suite_file(source)
        tests = _text_in(beside, settings) if beside.is_file() else ""
    except (OSError, NotPlain, UnicodeDecodeError) as error:
        raise Unavailable(
            f"{str(source)!r} can't be read: {error}", hint="give a readable YAML or JSON file"
        ) from error
    return _renamed(text, str(source), name), re.sub(r"^workflow:.*$", f"workflow: {name}", tests, count=1, flags=re.M)


def _text_in(file: Path, settings: Settings) -> str:
    within = root_around(file, settings.project)
    text = read_plain(file, bytes_max=DOCUMENT_BYTES_MAX, within=within).decode("utf-8")
    return text.replace("\r\n", "\n")


def _renamed(text: str, source: str, name: str) -> str:
    """The text under another id, as a first version; comments stay where the template is YAML."""
    value = read_document(text, name=source).value
    if not isinstance(value, dict):
        raise Invalid(f"{source} is not a workflow", hint="give a file that contains one")
    is_yaml = re.search(r"^id:", text, re.MULTILINE) is not None
    if not is_yaml:
        loaded = load_definition(text, name=source)
        value = definition_data(loaded.definition) if loaded.definition is not None else value
        return yaml_text({**value, "id": name, "version": FIRST_VERSION})
    text = _editor_line.sub("", text)
    text = re.sub(r"^id:\s*[^\s#]+", f"id: {name}", text, count=1, flags=re.MULTILINE)
    return re.sub(r"^version:\s*[^\s#]+", f"version: {FIRST_VERSION}", text, count=1, flags=re.MULTILINE)


def _require_id(text: str, name: str, file: Path, settings: Settings) -> None:
    """Refuse an invalid id before anything is written."""
    loaded = load_definition(text, name=str(file), catalog=library_of(settings).catalog)
    wrong = [finding for finding in loaded.findings if finding.where == "id"]
    if wrong:
        raise Invalid(f"{name!r} can't be a workflow's id", hint=wrong[0].fix, findings=wrong)


def _write_schema(schema: Path) -> None:
    """Write the schema where editors look for it; it is generated, so one of another version is replaced."""
    content = schema_text().encode()
    try:
        if _content_of(schema) != content:
            schema.parent.mkdir(parents=True, exist_ok=True)
            write_whole(schema, content, mode=0o644)  # in place of what is there: nothing is written through a link
    except OSError as error:
        raise Unavailable(f"{schema} can't be written: {error.strerror}", hint="make the folder writable") from error


def _content_of(schema: Path) -> bytes | None:
    try:
        return read_plain(schema, bytes_max=DOCUMENT_BYTES_MAX)
    except (FileNotFoundError, NotPlain):
        return None


def _relative(schema: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(schema.absolute(), folder.absolute())).as_posix()
    except ValueError:  # on another drive
        return schema.absolute().as_uri()
