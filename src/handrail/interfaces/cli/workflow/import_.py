"""`handrail workflow import`: converts files of other formats to YAML, and lists what changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import Finding, Severity
from handrail.domain.errors import Conflict, Invalid, NotFound, Unavailable
from handrail.domain.plural import plural
from handrail.foundation.plain_file import NotPlain, read_plain, root_around
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import Exit, answer
from handrail.interfaces.cli.words.excerpt import printable
from handrail.interfaces.cli.words.finding_view import print_findings
from handrail.interfaces.cli.words.new_files import require_direct
from handrail.interfaces.cli.words.terminal_edge import put, say
from handrail.library.documents.document import DOCUMENT_BYTES_MAX
from handrail.library.importing.import_file import ImportedFile, imported_file
from handrail.library.importing.importers import require_importer
from handrail.library.shelf.catalog import SUFFIXES, FolderCatalog
from handrail.settings import Settings

STDOUT: Final = "-"
AUTO: Final = "auto"


class _Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result for one file."""

    file: str
    id: str = ""
    out: str = ""
    kept: tuple[Finding, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Why it was not converted; then nothing is written."""
    skipped: str = ""
    text: str = ""


@click.command("import")
@click.argument("source", metavar="FILE|FOLDER")
@click.option(
    "-o", "--out", metavar="OUT", help="File or folder to write to (`-`: stdout); default: the project's workflows."
)
@click.option(
    "--from",
    "importer",
    metavar="NAME",
    default=AUTO,
    show_default=True,
    help="The importer: `workrail`, or one of an installed package; `auto`: the one that recognises the file.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@json_option
@click.pass_context
@reports_errors
async def import_(ctx: click.Context, source: str, out: str | None, importer: str, force: bool, as_json: bool) -> None:
    """Convert the workflow of another format in FILE, or all those in FOLDER, and list what changed."""
    only = "" if importer == AUTO else importer
    if only:
        require_importer(only)
    outcomes = _imported(Path(source), out, settings_of(ctx), only=only, force=force)
    answer(_data(outcomes), as_json=as_json, as_text=lambda: _print_all(outcomes))
    sys.exit(Exit.INVALID if any(one.findings for one in outcomes) else Exit.OK)


def _imported(source: Path, out: str | None, settings: Settings, *, only: str, force: bool) -> list[_Outcome]:
    """The result for each file; with `-` nothing is written, and the result has the text."""
    is_folder = source.is_dir()
    converted = [_converted(file, settings.project, only=only, is_alone=not is_folder) for file in _files(source)]
    if out == STDOUT:
        return [replace(one, out=STDOUT if one.text else "") for one in converted]
    targets = _targets(converted, Path(out) if out else settings.workflows, is_folder=is_folder or not out)
    _write(targets, settings.project, force=force)
    places = {one.file: str(target) for target, one in targets.items()}
    return [replace(one, out=places.get(one.file, ""), text="") for one in converted]


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(one for one in path.iterdir() if one.name.endswith(SUFFIXES) and one.is_file())
    if not path.is_file():
        raise NotFound(f"there is no file {str(path)!r}", hint="give the path of a file, or of a folder of them")
    return [path]


def _converted(file: Path, project: Path, *, only: str, is_alone: bool) -> _Outcome:
    try:
        # A file of the project may be a link out of it, and what can't be parsed is shown.
        content = read_plain(file, bytes_max=DOCUMENT_BYTES_MAX, within=root_around(file, project))
        found = imported_file(content, name=str(file), only=only, catalog=FolderCatalog([], beside=file.parent))
    except (OSError, NotPlain) as error:
        raise Unavailable(f"{file} can't be read: {error}", hint="give a readable, regular file") from error
    except Invalid as error:
        return _Outcome(file=str(file), findings=tuple(error.findings) or (_unreadable(file, error),))
    if found is None:
        reason = f"not recognised by {f'the importer `{only}`' if only else 'any importer'}"
        if is_alone:
            raise Invalid(f"{file} is {reason}", hint="`handrail workflow validate` reads handrail's own format")
        return _Outcome(file=str(file), skipped=reason)
    return _outcome(file, found)


def _outcome(file: Path, found: ImportedFile) -> _Outcome:
    if not found.text:
        return _Outcome(file=str(file), id=found.id, findings=found.findings)
    return _Outcome(file=str(file), id=found.id, kept=found.kept, text=found.text)


def _unreadable(file: Path, error: Invalid) -> Finding:
    return Finding(rule="import", severity=Severity.CRITICAL, where=str(file), message=str(error), fix=error.hint)


def _targets(converted: list[_Outcome], out: Path, *, is_folder: bool) -> dict[Path, _Outcome]:
    """Where each workflow is written to."""
    targets: dict[Path, _Outcome] = {}
    for one in converted:
        if not one.text:
            continue
        name = f"{one.id.replace('/', '-')}.yaml"
        target = out / name if is_folder or out.is_dir() else out
        if target in targets:
            other = targets[target].file
            raise Conflict(f"{other} and {one.file} are both called {one.id!r}", hint="import them into two folders")
        targets[target] = one
    return targets


def _write(targets: dict[Path, _Outcome], project: Path, *, force: bool) -> None:
    """Write all of them, or none if one exists already."""
    for target in targets:
        require_direct(target, project)
    taken = [target for target in targets if target.exists()]
    if taken and not force:
        raise Conflict(f"{taken[0]} exists already", hint="choose another place with -o, or overwrite it with --force")
    for target, one in targets.items():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(one.text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise Unavailable(f"{target} can't be written: {error.strerror}") from error


def _data(outcomes: list[_Outcome]) -> dict[str, Any]:
    return {
        "imported": [one for one in outcomes if one.out],
        "failed": [one for one in outcomes if one.findings],
        "skipped": [one for one in outcomes if one.skipped],
    }


def _print_all(outcomes: list[_Outcome]) -> None:
    for one in outcomes:
        if one.text:
            put(one.text, nl=False)
            print_findings(one.kept, err=True)
        elif one.out:
            say(printable(f"{one.file} -> {one.out}: {one.id}, {plural(len(one.kept), 'note')}"), fg="green")
            print_findings(one.kept)
        elif one.skipped:
            say(printable(f"{one.file}: {one.skipped}"), err=True)
        else:
            say(printable(f"{one.file}: not converted"), fg="red")
            print_findings(one.findings)
