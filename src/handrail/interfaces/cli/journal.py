"""`handrail journal`: show, export, verify, checkpoint and erase."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.assembly import opened, reading
from handrail.engine.audit import Verdict
from handrail.engine.clock import instant_text
from handrail.engine.ledger import event_view, summary
from handrail.interfaces.cli.answer import Exit, answer, tell_table
from handrail.interfaces.cli.program import json_option, person, settings_of, told


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
@click.option("--json", "as_json", is_flag=True, help="The export is JSON lines either way.")
@click.pass_context
@told
async def export(ctx: click.Context, stream: str, output: Path | None, as_json: bool) -> None:
    """Every event of RUN, or of the whole store, as JSON lines with all that is needed to check the chain."""
    count = 0
    async with reading(settings_of(ctx)) as look:
        with click.open_file(str(output or "-"), "wb", atomic=output is not None) as file:
            async for view in look.ledger.export(stream or None):
                file.write(msgspec.json.encode(view) + b"\n")
                count += 1
    click.echo(f"exported {count} event(s)", err=True)


@command.command()
@click.argument("stream", metavar="[RUN]", default="")
@click.option("--replay", is_flag=True, help="Also fold every event and compare the projections bit for bit.")
@click.option("--rebuild", is_flag=True, help="Mend damaged projections from the events, then verify.")
@click.option("--receipt", "receipts", multiple=True, metavar="N:HASH", help="Also find this receipt in RUN.")
@json_option
@click.pass_context
@told
async def verify(
    ctx: click.Context, stream: str, replay: bool, rebuild: bool, receipts: tuple[str, ...], as_json: bool
) -> None:
    """Prove that the journal is what was written; name the first event that is not."""
    if receipts and not stream:
        raise click.UsageError("--receipt needs the RUN it was given for")
    settings, mended = settings_of(ctx), 0
    if rebuild:
        async with opened(settings, compare=False) as handrail:
            mended = await handrail.rebuild()
    async with reading(settings) as look:
        pairs = [(stream, one) for one in receipts]
        verdict = await look.verify(stream=stream or None, replay=replay or rebuild, receipts=pairs)
    data = msgspec.to_builtins(verdict) | ({"mended": mended} if rebuild else {})
    answer(data, as_json=as_json, words=lambda: tell_verdict(verdict, mended))
    sys.exit(Exit.OK if verdict.ok else Exit.INTEGRITY)


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
