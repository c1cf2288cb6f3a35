"""`handrail journal`: show, export, verify, checkpoint and erase. Proof bundles in words are journal_bundle.py's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec

from handrail.assembly import opened, reading
from handrail.engine.audit import Verdict
from handrail.engine.clock import instant_text
from handrail.engine.ledger import event_view, summary
from handrail.interfaces.cli.answer import Exit, answer, tell_table
from handrail.interfaces.cli.journal_bundle import is_bundle, verify_bundle, write_bundle
from handrail.interfaces.cli.program import json_option, person, settings_of, told
from handrail.settings import Settings


@click.group()
def command() -> None:
    """Show, export, verify, checkpoint and erase."""


@command.command()
@click.argument("stream", metavar="[RUN]", default="")
@click.option("--after", default=0, type=click.IntRange(0), help="Only events with a greater number.")
@click.option("--limit", default=50, type=click.IntRange(1, 1000), help="At most so many.")
@json_option
@click.pass_context
@told
async def show(ctx: click.Context, stream: str, after: int, limit: int, as_json: bool) -> None:
    """The events of RUN (or `plan/<id>`, `store`); without it, the latest of all."""
    async with reading(settings_of(ctx)) as look:
        if stream:
            records = await look.ledger.of_stream(stream, after=after, limit=limit)
        else:
            records = [placed.record for placed in await look.ledger.latest(limit=limit)]
    views = [event_view(record) for record in records]

    def words() -> None:
        rows = [
            (
                record.stream,
                record.n,
                instant_text(record.at),
                record.actor,
                record.kind,
                record.step or "",
                summary(record),
            )
            for record in records
        ]
        tell_table(("stream", "n", "at", "actor", "kind", "step", "what"), rows)

    answer({"events": views}, as_json=as_json, words=words)


@command.command()
@click.argument("stream", metavar="[RUN]", default="")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="To a file instead of stdout.")
@click.option("--bundle", type=click.Path(dir_okay=False, path_type=Path), help="RUN as a proof bundle in this file.")
@click.option("--json", "as_json", is_flag=True, help="The export is JSON lines either way.")
@click.pass_context
@told
async def export(ctx: click.Context, stream: str, output: Path | None, bundle: Path | None, as_json: bool) -> None:
    """Every event of RUN, or of the whole store, as JSON lines with all that is needed to check the chain.

    With --bundle: RUN with its definition, evidence and approvals, signed, to be checked where there is no store."""
    if bundle is not None:
        _refuse("--bundle needs the RUN that it is of, and no --output", output, not stream)
        await write_bundle(settings_of(ctx), stream, bundle, as_json=as_json)
        return
    count = 0
    async with reading(settings_of(ctx)) as look:
        with click.open_file(str(output or "-"), "wb", atomic=output is not None) as file:
            async for view in look.ledger.export(stream or None):
                file.write(msgspec.json.encode(view) + b"\n")
                count += 1
    click.echo(f"exported {count} event(s)", err=True)


@command.command()
@click.argument("stream", metavar="[RUN|BUNDLE]", default="")
@click.option("--replay", is_flag=True, help="Also fold every event and compare the projections bit for bit.")
@click.option("--rebuild", is_flag=True, help="Mend damaged projections from the events, then verify.")
@click.option("--receipt", "receipts", multiple=True, metavar="N:HASH", help="Also find this receipt in RUN.")
@click.option("--key", default="", metavar="FILE|FINGERPRINT", help="The only key whose BUNDLE you trust.")
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Compare with what the checks in BUNDLE looked at.",
)
@json_option
@click.pass_context
@told
async def verify(
    ctx: click.Context,
    stream: str,
    replay: bool,
    rebuild: bool,
    receipts: tuple[str, ...],
    key: str,
    project: Path | None,
    as_json: bool,
) -> None:
    """Prove that the journal is what was written; name the first event that is not.

    BUNDLE is the file of a proof bundle: it is checked by itself, offline, and no store is needed."""
    if is_bundle(stream):
        _refuse("a BUNDLE is always checked as a whole: this is for RUN", replay, rebuild, receipts)
        await verify_bundle(stream, key=key, project=project, as_json=as_json)
    _refuse("--key and --project are for a BUNDLE; the journal is proved with its store's own key", key, project)
    _refuse("--receipt needs the RUN it was given for", receipts if not stream else ())
    asked = Asked(stream=stream, replay=replay or rebuild, rebuild=rebuild, receipts=receipts)
    await _verify_store(settings_of(ctx), asked, as_json=as_json)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What of the journal is to be proved, and how thoroughly."""

    stream: str
    replay: bool
    rebuild: bool
    receipts: tuple[str, ...]


async def _verify_store(settings: Settings, asked: Asked, *, as_json: bool) -> NoReturn:
    """Prove the journal or a stream of it; ends the program, with 7 if it is not what was written."""
    mended = await _rebuilt(settings) if asked.rebuild else 0
    async with reading(settings) as look:
        pairs = [(asked.stream, one) for one in asked.receipts]
        verdict = await look.verify(stream=asked.stream or None, replay=asked.replay, receipts=pairs)
    data = msgspec.to_builtins(verdict) | ({"mended": mended} if asked.rebuild else {})
    answer(data, as_json=as_json, words=lambda: tell_verdict(verdict, mended))
    sys.exit(Exit.OK if verdict.ok else Exit.INTEGRITY)


async def _rebuilt(settings: Settings) -> int:
    """Mend the projections: of how many streams."""
    async with opened(settings, compare=False) as handrail:
        return await handrail.rebuild()


def _refuse(why: str, *given: object) -> None:
    """Refuse options that do not fit what is asked for, if any of them is given."""
    if any(given):
        raise click.UsageError(why)


@command.command()
@click.option("--accept", is_flag=True, help="Go on with a journal that differs from its last checkpoint.")
@click.option("--reason", default="", help="Why it is accepted; kept in the journal.")
@json_option
@click.pass_context
@told
async def checkpoint(ctx: click.Context, accept: bool, reason: str, as_json: bool) -> None:
    """Sign the present end of every stream into a checkpoint outside the database."""
    if accept and not reason:
        raise click.UsageError("--accept needs a --reason; it becomes an event")
    async with opened(settings_of(ctx), compare=not accept) as handrail:
        if accept:
            await handrail.accept(reason=reason, actor=person())
        sealed = await handrail.notary.seal()
        last = await handrail.look.checkpoints.last()
    newest = last.checkpoint if last else None
    data: dict[str, Any] = {"new": sealed is not None, "checkpoint": newest}
    what = f"checkpoint {newest.number} covers {newest.events} event(s)" if newest else "nothing to sign yet"
    answer(data, as_json=as_json, words=lambda: click.echo(what if sealed else f"nothing new; {what}"))


@command.command()
@click.argument("stream", metavar="RUN")
@click.argument("number", metavar="N", type=click.IntRange(1))
@click.option("--reason", required=True, help="Why; kept in the journal.")
@click.option("--dry-run", is_flag=True, help="Show what would be erased, and change nothing.")
@json_option
@click.pass_context
@told
async def erase(ctx: click.Context, stream: str, number: int, reason: str, dry_run: bool, as_json: bool) -> None:
    """Erase the words of event N of RUN for good; the chain stays provable, and the erasure is an event itself."""
    settings = settings_of(ctx)
    if dry_run:
        async with reading(settings) as look:
            records = await look.ledger.of_stream(stream, after=number - 1, limit=1)
        data = {"would_erase": [event_view(record) for record in records]}
    else:
        async with opened(settings) as handrail:
            record = await handrail.erase(stream, number, reason=reason, actor=person())
        data = {"erased": [event_view(record)]}
    done = "would erase" if dry_run else "erased"
    answer(data, as_json=as_json, words=lambda: click.echo(f"{done} the words of {stream} #{number}"))


def tell_verdict(verdict: Verdict, mended: int) -> None:
    """A verdict in words."""
    if mended:
        click.echo(f"mended the projections of {mended} stream(s)")
    for broken in verdict.breaks:
        click.secho(f"{broken.stream} #{broken.n}: {broken.reason}", fg="red")
    for note in verdict.notes:
        click.echo(f"note: {note}")
    signed = f"{verdict.signed_events} of them under {verdict.checkpoints} signed checkpoint(s)"
    counted = f"{verdict.events} event(s) in {verdict.streams} stream(s), {signed}"
    if verdict.ok:
        click.secho(f"the journal is what was written: {counted}", fg="green")
    else:
        click.secho(f"INTEGRITY BROKEN: {counted}", fg="red", bold=True)
