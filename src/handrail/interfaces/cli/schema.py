"""`handrail schema`: the JSON Schema of definitions, for editors and other programs."""

from __future__ import annotations

import click

from handrail.interfaces.cli.words.terminal_edge import put
from handrail.library.schemas.structure import schema_text


@click.command()
@click.option("--json", "as_json", is_flag=True, help="No effect: the schema is JSON.")
def command(as_json: bool) -> None:
    """Print the JSON Schema (Draft 7) of workflows and plans."""
    put(schema_text(), nl=False)
