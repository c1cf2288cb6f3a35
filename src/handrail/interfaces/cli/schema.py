"""`handrail schema`: the JSON Schema of definitions, for editors and other programs."""

from __future__ import annotations

import click

from handrail.library.structure import schema_text


@click.command()
@click.option("--json", "as_json", is_flag=True, help="The schema is JSON either way.")
def command(as_json: bool) -> None:
    """Print workflow.schema.json (Draft 7)."""
    click.echo(schema_text(), nl=False)
