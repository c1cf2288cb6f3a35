"""`handrail journal`: show, export, verify, checkpoint and erase. Proof bundles are in bundle.py."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec

from handrail.assembly.opening import open_reader, open_writer, projects_of
from handrail.assembly.retention.archives import ArchivedIn, archived_in
from handrail.domain.journal.chain import Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.erasure import erasable
from handrail.domain.plural import plural
from handrail.engine.proving.audit import AuditResult
from handrail.engine.proving.erasure import Within, erasable_record
from handrail.engine.proving.witness_check import WitnessAgreement
from handrail.engine.reading.ledger import event_view, summary
from handrail.interfaces.cli.journal.bundle import is_bundle, verify_bundle, write_bundle
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.words.all_projects import all_projects_option
from handrail.interfaces.cli.words.answer import Exit, answer, listing
from handrail.interfaces.cli.words.archived import archived_data, print_archived
from handrail.interfaces.cli.words.asking import require_yes, required_reason
from handrail.interfaces.cli.words.completion import complete_run, complete_run_or_file
from handrail.interfaces.cli.words.new_files import require_direct
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import json_line, say
from handrail.interfaces.cli.words.times import TimeFormat, time_format, utc_option
from handrail.interfaces.pictures.caption import plain
from handrail.settings import Settings


@click.group()
def command() -> None:
    """Show, export, verify, checkpoint and erase."""


@command.command()
@click.argument("stream", metavar="[RUN]", default="", shell_complete=complete_run)
@click.option("--after", default=0, type=click.IntRange(0), help="Only events after this number of RUN.")
@click.option("--limit", default=50, type=click.IntRange(1, 1000), help="Show at most this many.")
@all_projects_option
@utc_option
@json_option
@click.pass_context
@reports_errors
async def show(
    ctx: click.Context, stream: str, after: int, limit: int, all_projects: bool, is_utc: bool, as_json: bool
) -> None:
    """Show the events of RUN (or `plan/<id>`, `store`); without it, the latest of this project."""
    archived: ArchivedIn | None = None
    async with open_reader(settings_of(ctx)) as look:
        if stream:
            named = await look.ledger.stream_of(stream, look.project.id)
            archived = await archived_in(look, named)
            records = await look.ledger.of_stream(named, after=after, limit=limit)
        else:
            records = await look.ledger.latest(limit=limit, project=None if all_projects else look.project.id)
    cursor = records[-1].n if stream and len(records) == limit else ""
    data = listing("events", [event_view(record) for record in records], cursor=cursor)
    data |= archived_data(archived)

    def print_text() -> None:
        _print_events(records, time_format(is_utc=is_utc), has_run=not stream)
        print_archived(archived)

    answer(data, as_json=as_json, as_text=print_text)


def _print_events(records: Sequence[Record], shown: TimeFormat, *, has_run: bool) -> None:
    """Print events as a table, with a column for the run if there are several."""
    head = [Column("n"), Column("at", 1), Column("actor", 2), Column("kind"), Column("step"), Column("what")]
    rows: list[tuple[object, ...]] = [
        (record.n, shown.at(record.at), record.actor, record.kind, record.step or "", summary(record))
        for record in records
    ]
    if has_run:
        head.insert(0, Column("run"))
        rows = [(record.stream, *row) for record, row in zip(records, rows, strict=True)]
    print_table(head, rows)


@command.command()
@click.argument("stream", metavar="[RUN]", default="", shell_complete=complete_run)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file, not stdout.")
@click.option("--bundle", type=click.Path(dir_okay=False, path_type=Path), help="Write a proof bundle of RUN here.")
@click.option("--json", "as_json", is_flag=True, help="Has no effect: an export is always JSON lines.")
@click.pass_context
@reports_errors
async def export(ctx: click.Context, stream: str, output: Path | None, bundle: Path | None, as_json: bool) -> None:
    """Write every event of RUN, or of the whole store, as JSON lines, with all that is needed to check the chain.

    With --bundle: RUN with its definition, evidence and approvals, signed; it can be checked without a store."""
    if bundle is not None:
        _refuse("--bundle needs a RUN, and no --output", output, not stream)
        await write_bundle(settings_of(ctx), stream, bundle, as_json=as_json)
        return
    if output is not None:
        require_direct(output, settings_of(ctx).project)
    count = 0
    async with open_reader(settings_of(ctx)) as look:
        # Atomic: an export that is cut off must not look like a whole journal that is shorter.
        with click.open_file(str(output or "-"), "wb", atomic=output is not None) as file:
            async for view in look.ledger.export(await look.ledger.stream_of(stream, look.project.id) or None):
                file.write(json_line(view, is_shown=output is None and sys.stdout.isatty()))
                count += 1
    say(f"exported {plural(count, 'event')}", err=True)


@command.command()
@click.argument("stream", metavar="[RUN|BUNDLE]", default="", shell_complete=complete_run_or_file)
@click.option("--replay", is_flag=True, help="Also replay every event and compare the projections bit for bit.")
@click.option("--rebuild", is_flag=True, help="First rebuild damaged projections from the events.")
@click.option("--receipt", "receipts", multiple=True, metavar="N:HASH", help="Also check that RUN has this receipt.")
@click.option("--against", default="", metavar="WITNESS", help="Also compare with a witness: a file or git repository.")
@click.option("--key", default="", metavar="FILE|FINGERPRINT", help="Trust only a BUNDLE that this key signed.")
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Compare these files with those that the checks in BUNDLE saw.",
)
@json_option
@click.pass_context
@reports_errors
async def verify(
    ctx: click.Context,
    stream: str,
    replay: bool,
    rebuild: bool,
    receipts: tuple[str, ...],
    against: str,
    key: str,
    project: Path | None,
    as_json: bool,
) -> None:
    """Verify that no event was changed since it was written; exit 7 and name the first one that was.

    BUNDLE is the file of a proof bundle: it is verified offline, without a store."""
    if is_bundle(stream):
        why = "--replay, --rebuild, --receipt and --against are for the journal, not for a BUNDLE"
        _refuse(why, replay, rebuild, receipts, against)
        await verify_bundle(stream, key=key, project=project, as_json=as_json)
    _refuse("--key and --project are for a BUNDLE; the journal is verified with its own key", key, project)
    _refuse("--receipt needs the RUN that it belongs to", receipts if not stream else ())
    options = VerifyOptions(
        stream=stream, replay=replay or rebuild, rebuild=rebuild, receipts=receipts, against=against
    )
    await _verify_store(settings_of(ctx), options, as_json=as_json)


class VerifyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to verify, and how thoroughly."""

    stream: str
    replay: bool
    rebuild: bool
    receipts: tuple[str, ...]
    against: str = ""


async def _verify_store(settings: Settings, options: VerifyOptions, *, as_json: bool) -> NoReturn:
    """Verify the journal or one stream of it, and exit; with 7 if it was changed."""
    rebuilt = await _rebuilt(settings) if options.rebuild else 0
    async with open_reader(settings) as look:
        stream = await look.ledger.stream_of(options.stream, look.project.id)
        pairs = [(stream, one) for one in options.receipts]
        verdict = await look.verify(
            stream=stream or None, replay=options.replay, receipts=pairs, against=options.against
        )
    data = msgspec.to_builtins(verdict) | ({"rebuilt": rebuilt} if options.rebuild else {})
    answer(data, as_json=as_json, as_text=lambda: print_verdict(verdict, rebuilt, against=options.against))
    sys.exit(Exit.OK if verdict.ok else Exit.INTEGRITY)


async def _rebuilt(settings: Settings) -> int:
    """Rebuild the projections; returns how many streams were rebuilt."""
    # Without comparing: a damaged store is the reason to rebuild, and opening it would be refused otherwise.
    async with open_writer(settings, compare=False) as handrail:
        return await handrail.rebuild()


def _refuse(why: str, *given: object) -> None:
    """Refuse options that do not fit, if any of them is given."""
    if any(given):
        raise click.UsageError(why)


@command.command()
@click.option("--accept", is_flag=True, help="Accept a journal that differs from its last checkpoint.")
@click.option("--reason", default="", help="Why it is accepted; recorded in the journal.")
@json_option
@click.pass_context
@reports_errors
async def checkpoint(ctx: click.Context, accept: bool, reason: str, as_json: bool) -> None:
    """Sign the current state of the journal into a checkpoint file outside the database."""
    if accept and not reason:
        raise click.UsageError("--accept needs a --reason; it is recorded")
    async with open_writer(settings_of(ctx), compare=not accept) as handrail:
        if accept:
            await handrail.accept(reason=reason, actor=person())
        sealed = await handrail.checkpointer.seal()
        last = await handrail.reader.checkpoints.last()
    newest = last.checkpoint if last else None
    data: dict[str, Any] = {"new": sealed is not None, "checkpoint": newest}
    what = f"checkpoint {newest.number} covers {plural(newest.events, 'event')}" if newest else "no events to sign yet"
    answer(data, as_json=as_json, as_text=lambda: say(what if sealed else f"no new events; {what}"))


@command.command()
@click.argument("stream", metavar="RUN", shell_complete=complete_run)
@click.argument("number", metavar="N", type=click.IntRange(1))
@click.option("--reason", default="", help="Why; recorded in the journal. Asked for at a terminal.")
@click.option("--dry-run", is_flag=True, help="Show what would be erased, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--all-projects", is_flag=True, help="Also an event of another project.")
@click.option("--force", is_flag=True, help="Also what a run that is not over may still need.")
@utc_option
@json_option
@click.pass_context
@reports_errors
async def erase(ctx: click.Context, /, stream: str, number: int, reason: str, as_json: bool, **typed: Any) -> None:
    """Permanently erase the text and values of event N of RUN.

    The hash chain stays verifiable, and the erasure is an event itself."""
    settings, dry_run, yes, force = settings_of(ctx), typed["dry_run"], typed["yes"], typed["force"]
    async with open_reader(settings) as look:
        stream = await look.ledger.stream_of(stream, look.project.id)
        within = None if typed["all_projects"] else Within(look.project.id, projects_of(settings).find)
        before = await erasable_record(look.store, stream, number, within=within, is_forced=force)
    fields = erasable(entry_of(before).event)
    if not as_json or not (dry_run or yes):  # a person who is asked must see it, even if stdout is for JSON
        _print_erasable(before, fields, time_format(is_utc=typed["is_utc"]), err=as_json)
    if dry_run:
        data = {"would_erase": [event_view(before)], "fields": fields}
        answer(data, as_json=as_json, as_text=lambda: say("dry run: nothing was changed", err=True))
        return
    if not yes:
        require_yes(f"event {number} of {stream} would be erased permanently", "Erase this permanently?")
    reason = required_reason(reason)
    async with open_writer(settings) as handrail:
        erased = await handrail.erase(stream, number, reason=reason, actor=person(), within=within, is_forced=force)
    data = {"erased": [event_view(erased)], "fields": fields}
    answer(data, as_json=as_json, as_text=lambda: say(f"erased event {number} of {stream}", err=True))


def _print_erasable(record: Record, fields: Sequence[str], shown: TimeFormat, *, err: bool) -> None:
    """Print the event, and the values that would be erased."""
    step = f"  step {record.step}" if record.step else ""
    say(f"{record.stream} #{record.n}  {record.kind}{step}  {shown.at(record.at)}", bold=True, err=err)
    values = event_view(record)["data"]
    if not fields:
        say("  nothing to erase: this event holds only ids, states and hashes", err=err)
    for name in fields:
        say(f"  erases {name}: {plain(msgspec.json.encode(values.get(name)).decode())}", err=err)


def _print_agreement(witness: WitnessAgreement | None, name: str) -> None:
    if witness is None or not witness.agreeing:
        return
    agree = f"{plural(witness.agreeing, 'checkpoint')} {'agrees' if witness.agreeing == 1 else 'agree'}"
    say(f"witness {plain(name)}: {agree}, the newest #{witness.newest}")


def print_verdict(verdict: AuditResult, rebuilt: int, *, against: str = "") -> None:
    """Print the result of a verification."""
    if rebuilt:
        say(f"rebuilt the projections of {plural(rebuilt, 'stream')}")
    for broken in verdict.breaks:
        say(f"{broken.stream} #{broken.n}: {broken.reason}", fg="red")
    for note in verdict.notes:
        say(f"note: {note}")
    _print_agreement(verdict.witness, against)
    signed = f"{verdict.signed_events:,} signed by {plural(verdict.checkpoints, 'checkpoint')}"
    counted = f"{plural(verdict.events, 'event')} in {plural(verdict.streams, 'stream')}, {signed}"
    if verdict.ok:
        say(f"journal verified: {counted}", fg="green")
    else:
        say(f"INTEGRITY BROKEN: {counted}", fg="red", bold=True)
