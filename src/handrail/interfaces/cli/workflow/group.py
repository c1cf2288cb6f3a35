"""`handrail workflow`: find, write, check, draw and test workflows."""

from __future__ import annotations

import shutil
import sys

import click

from handrail.domain.errors import Invalid
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer
from handrail.interfaces.cli.words.completion import complete_workflow
from handrail.interfaces.cli.words.terminal_edge import put, put_picture
from handrail.interfaces.cli.workflow.definitions import check_files
from handrail.interfaces.cli.workflow.diff import diff
from handrail.interfaces.cli.workflow.import_ import import_
from handrail.interfaces.cli.workflow.lookup import files_of, found
from handrail.interfaces.cli.workflow.new import new
from handrail.interfaces.cli.workflow.show import list_, show
from handrail.interfaces.cli.workflow.test import test
from handrail.interfaces.pictures.mermaid import mermaid_text
from handrail.interfaces.pictures.svg import svg_text
from handrail.interfaces.pictures.terminal import terminal_picture


@click.group()
def command() -> None:
    """Find, write, check, draw and test workflows."""


for one in (diff, import_, list_, new, show, test):
    command.add_command(one)


@command.command()
@click.argument("targets", nargs=-1, required=True, metavar="FILE|ID|FOLDER...", shell_complete=complete_workflow)
@json_option
@click.pass_context
@reports_errors
async def validate(ctx: click.Context, targets: tuple[str, ...], as_json: bool) -> None:
    """Check whether workflows (`-`: stdin) are valid, and show all findings at once.

    Tools and rules are checked as far as they are known without starting anything. `handrail plan check` is the
    same check."""
    settings = settings_of(ctx)
    check_files(files_of(targets, settings), settings, as_json=as_json)


@command.command()
@click.argument("name", metavar="FILE|ID", shell_complete=complete_workflow)
@click.option("--mermaid", "form", flag_value="mermaid", help="As Mermaid text.")
@click.option("--svg", "form", flag_value="svg", help="As an SVG image.")
@click.option("--ascii", "is_ascii", is_flag=True, help="Without box characters.")
@json_option
@click.pass_context
@reports_errors
async def graph(ctx: click.Context, name: str, form: str | None, is_ascii: bool, as_json: bool) -> None:
    """Draw a workflow, from a file or from the library: in the terminal, as Mermaid, or as SVG."""
    loaded = found(name, settings_of(ctx))
    if loaded.definition is None:
        raise Invalid(f"{name} can't be drawn", findings=loaded.findings)
    match form:
        case "mermaid":
            picture = mermaid_text(loaded.definition)
        case "svg":
            picture = svg_text(loaded.definition)
        case _:
            unicode = not is_ascii and "utf" in (sys.stdout.encoding or "").lower()
            color = sys.stdout.isatty() and not as_json
            width = shutil.get_terminal_size().columns
            picture = terminal_picture(loaded.definition, width=width, unicode=unicode, color=color)
    data = {"file": name, "form": form or "terminal", "picture": picture}
    answer(
        data,
        as_json=as_json,
        as_text=lambda: put_picture(picture.rstrip("\n")) if form is None else put(picture.rstrip("\n")),
    )
