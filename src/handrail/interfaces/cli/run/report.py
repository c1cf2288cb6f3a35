"""`handrail run report`: a run in one file to keep: HTML with everything, or Markdown for a comment."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from handrail.assembly.opening import open_reader
from handrail.assembly.secrets import known_secrets_of
from handrail.domain.errors import Unavailable
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import Exit, answer
from handrail.interfaces.cli.words.completion import complete_run
from handrail.interfaces.cli.words.new_files import require_direct
from handrail.interfaces.cli.words.terminal_edge import put, say
from handrail.interfaces.reports.content import clean_content, report_content
from handrail.interfaces.reports.html_report import html_report
from handrail.interfaces.reports.markdown_report import markdown_report
from handrail.interfaces.reports.safe_text import APART

STDOUT = "-"


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete_run)
@click.option("--html", "as_html", metavar="FILE", help="Write one HTML file with everything; - for stdout.")
@click.option("--md", "as_md", metavar="FILE", help="Write Markdown for a comment; - for stdout.")
@json_option
@click.pass_context
@reports_errors
async def report(ctx: click.Context, run_id: str, as_html: str | None, as_md: str | None, as_json: bool) -> None:
    """Write what happened in RUN into one file: story, decisions, approvals, times, evidence and verification.

    Without an option, Markdown is printed. Exit 7 if the journal of RUN was changed."""
    secrets = known_secrets_of(settings_of(ctx))
    async with open_reader(settings_of(ctx)) as look:
        seen = clean_content(await report_content(look, look.run_reader(), run_id), secrets.scrubber())
    wanted = [(as_html, html_report), (as_md or (None if as_html else STDOUT), markdown_report)]
    made = [(target, make(seen)) for target, make in wanted if target is not None]
    written, printed = _delivered(made, settings_of(ctx).project)
    data = {"run": run_id, "verified": seen.verified.ok, "files": written, "text": printed}
    answer(data, as_json=as_json, as_text=lambda: put(_for_stdout(printed), nl=False))
    if not seen.verified.ok:
        say("the journal of this run was changed: the report says where", err=True)
        sys.exit(Exit.INTEGRITY)


def _for_stdout(text: str) -> str:
    """A report as it is for a file or pipe; at a terminal nothing makes links, so nothing must hide in it."""
    whole = text.encode("utf-8", "replace").decode()
    return whole.replace(APART, "") if sys.stdout.isatty() else whole


def _delivered(made: Sequence[tuple[str, str]], project: Path) -> tuple[list[str], str]:
    """Write the reports that have a file: these files, and the text for stdout."""
    for target, _ in made:
        require_direct(Path(target), project)
    written = [target for target, text in made if target != STDOUT and _written(Path(target), text)]
    return written, "".join(text for target, text in made if target == STDOUT)


def _written(file: Path, text: str) -> bool:
    """Write a report; Unavailable if that is not possible."""
    try:
        with file.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        hint = "choose a folder that exists and can be written"
        raise Unavailable(f"{file} can't be written: {os.strerror(error.errno or 0)}", hint=hint) from error
    say(f"wrote {file}", err=True)
    return True
