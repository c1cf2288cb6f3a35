"""`handrail workflow`: find, write, check, draw and test workflows."""

from __future__ import annotations

import shutil
import sys

import click

from handrail.domain.errors import Invalid
from handrail.interfaces.cli.answer import Exit, answer
from handrail.interfaces.cli.definitions import load_file, tell_verdict, verdict
from handrail.interfaces.cli.program import json_option, settings_of, told
from handrail.interfaces.cli.workflow_diff import diff
from handrail.interfaces.cli.workflow_import import import_
from handrail.interfaces.cli.workflow_new import new
from handrail.interfaces.cli.workflow_shelf import list_, show
from handrail.interfaces.cli.workflow_test import test
from handrail.interfaces.pictures.mermaid import mermaid_text
from handrail.interfaces.pictures.svg import svg_text
from handrail.interfaces.pictures.terminal import terminal_picture


@click.group()
def command() -> None:
    """Find, write, check, draw and test workflows."""


for one in (diff, import_, list_, new, show, test):
    command.add_command(one)


@command.command()
@click.argument("files", nargs=-1, required=True)
@json_option
@click.pass_context
@told
async def validate(ctx: click.Context, files: tuple[str, ...], as_json: bool) -> None:
    """Say whether each of FILES (`-`: stdin) is sound, with all findings at once."""
    settings = settings_of(ctx)
    checked = [(file, load_file(file, settings)) for file in files]
    verdicts = [verdict(file, loaded) for file, loaded in checked]

    def words() -> None:
        for file, loaded in checked:
            tell_verdict(file, loaded)

    answer(verdicts[0] if len(files) == 1 else verdicts, as_json=as_json, words=words)
    sys.exit(Exit.OK if all(loaded.is_valid for _, loaded in checked) else Exit.INVALID)


@command.command()
@click.argument("file")
@click.option("--mermaid", "form", flag_value="mermaid", help="As Mermaid text.")
@click.option("--svg", "form", flag_value="svg", help="As an SVG image.")
@click.option("--ascii", "is_ascii", is_flag=True, help="Without box characters.")
@json_option
@click.pass_context
@told
async def graph(ctx: click.Context, file: str, form: str | None, is_ascii: bool, as_json: bool) -> None:
    """Draw the workflow in FILE: in the terminal, as Mermaid, or as SVG."""
    loaded = load_file(file, settings_of(ctx))
    if loaded.definition is None:
        raise Invalid(f"{file} can't be drawn", findings=loaded.findings)
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
    data = {"file": file, "form": form or "terminal", "picture": picture}
    answer(data, as_json=as_json, words=lambda: click.echo(picture.rstrip("\n")))
