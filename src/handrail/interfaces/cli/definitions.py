"""Definitions as the command line reads them: from a file or from stdin, with what the project's library holds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from handrail.assembly import bookcase_of
from handrail.domain.authoring import definition_data
from handrail.domain.check import Finding, Severity
from handrail.domain.definition import Definition, Effect
from handrail.domain.errors import NotFound
from handrail.domain.graph import waves
from handrail.interfaces.cli.answer import tell_findings
from handrail.library.loading import FolderCatalog, Loaded, load_definition, valid
from handrail.settings import Settings

STDIN = "-"


def load_file(file: str, settings: Settings, *, tools: Mapping[str, Effect] | None = None) -> Loaded:
    """The definition in a file (`-`: stdin) with all findings; what it extends or inlines is looked up beside it.

    With `tools` given, a tool that nobody knows is a finding."""
    folders = [source.folder for source in bookcase_of(settings).sources]
    if file == STDIN:
        return load_definition(sys.stdin.buffer.read(), name="<stdin>", catalog=FolderCatalog(folders), tools=tools)
    path = Path(file)
    try:
        text = path.read_bytes()
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {file!r}", hint="give the path of a YAML or JSON definition") from error
    except OSError as error:
        raise NotFound(f"{file!r} can't be read: {error.strerror}", hint="give the path of a readable file") from error
    return load_definition(text, name=file, catalog=FolderCatalog(folders, beside=path.parent), tools=tools)


def load_valid(
    file: str, settings: Settings, *, tools: Mapping[str, Effect] | None = None
) -> tuple[Definition, tuple[Finding, ...]]:
    """The definition in a file and its notes; Invalid with all findings if it is not fit to be used."""
    loaded = load_file(file, settings, tools=tools)
    return valid(loaded, file), loaded.findings


def verdict(file: str, loaded: Loaded) -> dict[str, Any]:
    """What was found in a file, as data."""
    told: dict[str, Any] = {"file": file, "valid": loaded.is_valid, "findings": loaded.findings}
    if loaded.definition is not None and loaded.is_valid:
        definition = loaded.definition
        told |= {"id": definition.id, "hash": loaded.hash, "steps": len(definition.steps)}
        told["waves"] = waves(definition.steps)
        told["definition"] = definition_data(definition)
    return told


def tell_verdict(file: str, loaded: Loaded) -> None:
    """What was found in a file, in words: the findings, then one line that sums up."""
    tell_findings(loaded.findings)
    notes = sum(finding.severity is Severity.MINOR for finding in loaded.findings)
    blocking = len(loaded.findings) - notes
    if loaded.definition is not None and loaded.is_valid:
        size = f"{len(loaded.definition.steps)} step(s) in {len(waves(loaded.definition.steps))} wave(s)"
        click.secho(f"{file}: sound, {size}, {notes} note(s)", fg="green")
    else:
        click.secho(f"{file}: {blocking} thing(s) to mend, {notes} note(s)", fg="red")
