"""`handrail db`: what operators do with the journal as a whole; its commands are in files named after their subject."""

from __future__ import annotations

import click

from handrail.interfaces.cli.db import sharing


@click.group()
def command() -> None:
    """Operate the journal: share it between machines, in PostgreSQL."""


for _one in (sharing.copy, sharing.key, sharing.admit, sharing.era):
    command.add_command(_one)
