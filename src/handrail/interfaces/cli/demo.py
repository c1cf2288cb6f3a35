"""`handrail demo`: a tour in a throw-away folder. Real files, a real journal, and a real attack on it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from msgspec.structs import replace

from handrail.assembly import opened, reading
from handrail.domain.chain import Record
from handrail.engine.clock import instant_text
from handrail.engine.ledger import summary
from handrail.interfaces.cli.answer import tell_findings
from handrail.interfaces.cli.definitions import load_file, load_valid
from handrail.interfaces.cli.program import settings_of, told
from handrail.interfaces.pictures.terminal import terminal_picture
from handrail.logs import start_logging
from handrail.settings import Settings

ACTOR = "person:you"
RELEASE = """\
id: ship-release
name: Ship a release
inputs:
  version: {type: string}
steps:
  - id: notes
    prompt: Write the release notes for {{ inputs.version }}.
  - id: tag
    tool: git.create_tag
    args: {name: 'v{{ inputs.version }}'}
    effect: compensatable
    undo: {tool: git.delete_tag, args: {name: 'v{{ inputs.version }}'}}
    timeout: 30s
  - id: docs
    prompt: Update the documentation.
    after: [notes]
  - id: publish
    approve: Publish {{ inputs.version }}?
    after: [tag, docs]
"""
MISTAKES = (("timeout: 30s", "timeot: 30s"), ("after: [tag, docs]", "after: [tag, dox]"))


@click.command()
@click.pass_context
@told
async def command(ctx: click.Context) -> None:
    """A one-minute tour: a plan is checked, drawn, saved, remembered, and an attack on its journal is found."""
    with tempfile.TemporaryDirectory(prefix="handrail-demo-") as folder:
        place = Path(folder)
        settings = replace(settings_of(ctx), home=place / "home", project=place)
        start_logging(None, level=settings.choices.log_level, days=1)  # no trace in the user's own logs either
        file = place / "release.yaml"
        _check(file, settings)
        await _remember(file, settings)
        await _attack(settings)
    click.secho("\nThe demo's folder is gone; nothing is left behind. Next:", bold=True)
    click.echo("  handrail workflow validate FILE    all findings in a definition of yours, with fixes")
    click.echo(
        "  handrail plan save FILE            keep it; then `handrail journal show` and `handrail journal verify`"
    )


def _title(number: int, text: str) -> None:
    click.secho(f"\n{number}. {text}", fg="cyan", bold=True)


def _check(file: Path, settings: Settings) -> None:
    _title(1, "A plan with two mistakes: both are found at once, with their place and a fix")
    broken = RELEASE
    for right, wrong in MISTAKES:
        broken = broken.replace(right, wrong)
    file.write_text(broken, encoding="utf-8")
    loaded = load_file(str(file), settings)
    tell_findings(
        replace(finding, at=finding.at and replace(finding.at, file=file.name)) for finding in loaded.findings
    )
    _title(2, "Mended, and drawn")
    file.write_text(RELEASE, encoding="utf-8")
    definition, _ = load_valid(str(file), settings)
    click.echo(terminal_picture(definition, width=90))


async def _remember(file: Path, settings: Settings) -> None:
    _title(3, "Saved twice, and remembered: each event is synced before it is acknowledged, and chained to the last")
    async with opened(settings) as handrail:
        definition, _ = load_valid(str(file), settings)
        await handrail.plans.save(definition, actor=ACTOR, note="first try")
        second = replace(definition, guidance=("Never force-push.",))
        plan = await handrail.plans.save(second, actor=ACTOR, note="with a rule for the whole run")
        records = [placed.record for placed in await handrail.look.ledger.latest()]
        _tell_story(records)
        verdict = await handrail.look.verify()
    click.echo(f"receipt of the second version: {plan.receipt}")
    click.secho(f"verified: {verdict.events} events are what was written", fg="green")


def _tell_story(records: list[Record]) -> None:
    for record in records:
        click.echo(f"  {instant_text(record.at)}  {record.stream} #{record.n}  {record.actor}  {record.kind}")
        click.secho(f"      {summary(record)[:100]}", dim=True)


async def _attack(settings: Settings) -> None:
    _title(4, "Somebody edits the journal's file with a hex editor: `first try` becomes `third try`")
    content = settings.journal.read_bytes()
    settings.journal.write_bytes(content.replace(b"first try", b"third try"))
    async with reading(settings) as look:
        verdict = await look.verify(replay=True)
    for broken in verdict.breaks[:3]:
        click.secho(f"  found: {broken.stream} #{broken.n}: {broken.reason}", fg="red")
    if verdict.ok:
        raise click.ClickException("the attack was not seen: please report this")
