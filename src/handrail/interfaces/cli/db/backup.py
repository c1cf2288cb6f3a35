"""`handrail db backup|backups|restore|verify|recipient`: backups of a home, restored and verified."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from handrail.assembly.backups.opening import Access
from handrail.assembly.backups.recipient import create_recipient, passphrase_in
from handrail.assembly.backups.register import BackupProof, BackupRegister
from handrail.assembly.backups.restoring import restore_backup
from handrail.assembly.backups.taking import BackupRequest, make_backup
from handrail.assembly.backups.verifying import BackupVerdict, verify_backup
from handrail.domain.instant import instant_text
from handrail.domain.plural import plural
from handrail.engine.proving.signature import fingerprint
from handrail.engine.proving.trusted_key import trusted
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import Exit, answer, listing
from handrail.interfaces.cli.words.own_command import localized
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.words.times import time_format, utc_option

EXIT_OF: Final = {
    BackupProof.VERIFIED: Exit.OK,
    BackupProof.BROKEN: Exit.INTEGRITY,
    BackupProof.FAILED: Exit.UNAVAILABLE,
}

_FOLDER: Final = click.Path(path_type=Path)
_FILE: Final = click.Path(dir_okay=False, path_type=Path)


def _access_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options with which a backup is opened."""
    for option in (
        click.option("--signed-by", default="", metavar="FILE|FINGERPRINT", help="Accept only what this key signed."),
        click.option("--keys", type=_FILE, help="The file with the keys, if it is not with the backup."),
        click.option("--key-file", type=_FILE, help="The private key of a recipient of the backup."),
        click.option("--passphrase-file", type=_FILE, help="A file with the passphrase in its first line."),
    ):
        command = option(command)
    return command


def _access(typed: dict[str, Any]) -> Access:
    return Access(
        passphrase_file=typed["passphrase_file"],
        key_file=typed["key_file"],
        keys=typed["keys"],
        trusted=trusted(typed["signed_by"]) if typed["signed_by"] else "",
    )


@click.command()
@click.argument("target", type=_FOLDER)
@click.option("--passphrase-file", type=_FILE, help="Encrypt it with the passphrase in the first line of this file.")
@click.option("--recipient", "recipients", multiple=True, metavar="KEY", help="Encrypt it for this public key.")
@json_option
@click.pass_context
@reports_errors
async def backup(
    ctx: click.Context, target: Path, passphrase_file: Path | None, recipients: tuple[str, ...], as_json: bool
) -> None:
    """Back up this home into a new folder below TARGET, while others use it.

    The keys are in a file of their own, which can be moved elsewhere. Verify it with `handrail db verify`."""
    passphrase = passphrase_in(passphrase_file) if passphrase_file else ""
    made = await make_backup(
        settings_of(ctx), BackupRequest(target=target, passphrase=passphrase, recipients=recipients)
    )
    size = sum(part.bytes for part in made.manifest.parts)
    data = {
        "backup": str(made.folder),
        "id": made.manifest.id,
        "events": made.manifest.journal.events,
        "streams": made.manifest.journal.streams,
        "bytes": size,
        "encrypted": made.manifest.encryption is not None,
        "key": fingerprint(made.key),
    }

    def print_text() -> None:
        say(f"backed up {plural(made.manifest.journal.events, 'event')} ({size / 1e6:.1f} MB) to {made.folder}")
        if made.manifest.encryption is None:
            say("  it is not encrypted: the file keys.tar.gz in it can sign checkpoints and open secrets")
        say(localized(f"  what to do: `handrail db verify {made.folder}`"))

    answer(data, as_json=as_json, as_text=print_text)


@click.command()
@click.argument("backup", type=_FOLDER)
@_access_options
@json_option
@click.pass_context
@reports_errors
async def verify(ctx: click.Context, /, backup: Path, as_json: bool, **typed: Any) -> None:
    """Restore BACKUP into a throw-away folder, and verify all of it.

    Checks the signature, every file, the database, every chain, the signed checkpoints, and replays every run. Exit
    code 0 only if all of that was done and holds; 7 if it is broken, 8 if it could not be verified."""
    verdict = await verify_backup(settings_of(ctx), backup, _access(typed))
    data = msgspec.to_builtins(verdict) | {"ok": verdict.proof is BackupProof.VERIFIED}
    data |= {name: instant_text(data[name]) if data[name] else "" for name in ("made", "latest")}
    answer(data, as_json=as_json, as_text=lambda: _print_verdict(verdict))
    sys.exit(EXIT_OF[verdict.proof])


def _print_verdict(verdict: BackupVerdict) -> None:
    for broken in verdict.breaks:
        say(f"{broken.stream} #{broken.n}: {broken.reason}", fg="red")
    if verdict.proof is not BackupProof.VERIFIED:
        result = "BACKUP BROKEN" if verdict.proof is BackupProof.BROKEN else "NOT VERIFIED"
        say(f"{result}: {verdict.reason}", fg="red", bold=True)
        say(localized(f"  what to do: {verdict.hint or 'use another backup'}"))
        return
    for note in verdict.notes:
        say(f"note: {note}")
    whose = "the key of this home" if verdict.is_own else f"{verdict.key}: not the key of this home"
    say(f"signed by {whose}")
    counted = f"{plural(verdict.events, 'event')} in {plural(verdict.streams, 'stream')}"
    newest = f", the newest from {instant_text(verdict.latest)}" if verdict.latest else ""
    say(f"backup verified: {counted}{newest}, in {verdict.took_ms / 1_000:.1f} s", fg="green")


@click.command()
@click.argument("backup", type=_FOLDER)
@click.argument("home", type=_FOLDER)
@click.option("--until", default="", metavar="RUN:N|INSTANT", help="Only up to this event, or up to this instant.")
@_access_options
@json_option
@click.pass_context
@reports_errors
async def restore(ctx: click.Context, /, backup: Path, home: Path, until: str, as_json: bool, **typed: Any) -> None:
    """Verify BACKUP and restore it into the new folder HOME; an existing home is never changed.

    That it was restored becomes an event. INSTANT is written like 2026-11-15T18:04:11Z."""
    done = await restore_backup(backup, home, _access(typed), until=until, actor=person(), settings=settings_of(ctx))
    data = {
        "home": str(done.home),
        "backup": done.manifest.id,
        "events": done.events,
        "of": done.manifest.journal.events,
        "keys": done.has_keys,
    }

    def print_text() -> None:
        say(f"restored and verified {plural(done.events, 'event')} of {done.manifest.journal.events:,} to {done.home}")
        if not done.has_keys:
            say("  the keys are not in this backup: copy the folder keys/ into the home before you use it", fg="yellow")
        say(f"  what to do: set HANDRAIL_HOME to {done.home}")

    answer(data, as_json=as_json, as_text=print_text)


@click.command()
@utc_option
@json_option
@click.pass_context
@reports_errors
async def backups(ctx: click.Context, is_utc: bool, as_json: bool) -> None:
    """List the backups that were made of this home, newest first."""
    known = BackupRegister(settings_of(ctx).home).all()
    rows = [
        msgspec.to_builtins(one)
        | {"at": instant_text(one.at), "proved_at": instant_text(one.proved_at) if one.proved_at else ""}
        for one in known
    ]
    shown = time_format(is_utc=is_utc)

    def print_text() -> None:
        head = [Column("made"), Column("events"), Column("state"), Column("folder")]
        print_table(head, [(shown.at(one.at), one.events, one.proof.value, one.folder) for one in known])

    answer(listing("backups", rows), as_json=as_json, as_text=print_text)


@click.command()
@click.argument("file", type=_FILE)
@json_option
@click.pass_context
@reports_errors
async def recipient(ctx: click.Context, file: Path, as_json: bool) -> None:
    """Create a key pair for encrypted backups: the private key in FILE, the public one on stdout.

    Store FILE away from this machine: who has it can read the backups, and without it they can't be restored."""
    public = create_recipient(file)
    answer({"recipient": public, "file": str(file)}, as_json=as_json, as_text=lambda: say(public))
