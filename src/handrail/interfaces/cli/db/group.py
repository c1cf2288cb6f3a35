"""`handrail db`: what operators do with the journal as a whole; its commands are in files named after their subject."""

from __future__ import annotations

import click

from handrail.interfaces.cli.db import archive, backup, follow, migrate, prune, salvage, sharing


@click.group()
def command() -> None:
    """Operate the journal: back it up, archive ended runs, and share it between machines."""


for _one in (
    *(backup.backup, backup.backups, backup.restore, backup.verify, backup.recipient),
    *(archive.archive, archive.unarchive, archive.list_, prune.prune, prune.size),
    migrate.migrate,
    follow.follow,
    salvage.salvage,
    *(sharing.copy, sharing.key, sharing.admit, sharing.era),
):
    command.add_command(_one)
