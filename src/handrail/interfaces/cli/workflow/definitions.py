"""Reading and checking definitions from files or stdin.

`handrail workflow validate` and `handrail plan check` share the check in this module. The library produces the findings
(library/loading.py)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from handrail.assembly.checks import rules_of
from handrail.assembly.people import people_of
from handrail.assembly.tools import library_of, survey_of, toolbox_of
from handrail.definitions import load_file as load_definition_file
from handrail.domain.analysis.local import Survey
from handrail.domain.checks.finding import Finding
from handrail.domain.definition.authoring import definition_data
from handrail.domain.definition.graph import waves
from handrail.domain.definition.model import Definition
from handrail.domain.plural import plural
from handrail.interfaces.cli.words.answer import Exit, answer, listing
from handrail.interfaces.cli.words.excerpt import printable
from handrail.interfaces.cli.words.finding_view import STDIN_NAME, counted, print_findings, stdin_text
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.library.loading import Loaded, load_definition, valid
from handrail.settings import Settings

STDIN = "-"


def load_file(file: str, settings: Settings, *, survey: Survey | None = None) -> Loaded:
    """The definition in a file (`-`: stdin) with all findings; what it extends or inlines is searched next to it.

    `survey` describes the known tools and rules; by default, only rules are checked."""
    library = library_of(settings)
    survey = survey or library.survey
    if file == STDIN:
        return load_definition(stdin_text(), name=STDIN_NAME, catalog=library.catalog, survey=survey)
    return load_definition_file(file, library, survey)


def load_valid(
    file: str, settings: Settings, *, survey: Survey | None = None
) -> tuple[Definition, tuple[Finding, ...]]:
    """The definition in a file and its warnings; Invalid with all findings if it has errors."""
    loaded = load_file(file, settings, survey=survey)
    return valid(loaded, STDIN_NAME if file == STDIN else file), loaded.findings


def check_files(files: Sequence[str], settings: Settings, *, as_json: bool) -> NoReturn:
    """Print whether each file is a valid definition, with all findings, and exit with OK or INVALID."""
    survey = local_survey(settings)
    checked = [(file, load_file(file, settings, survey=survey)) for file in files]
    data = [_verdict(file, loaded) for file, loaded in checked]

    def print_text() -> None:
        for file, loaded in checked:
            _print_verdict(file, loaded)

    answer(data[0] if len(data) == 1 else listing("files", data), as_json=as_json, as_text=print_text)
    sys.exit(Exit.OK if all(loaded.is_valid for _, loaded in checked) else Exit.INVALID)


def local_survey(settings: Settings) -> Survey:
    """The tools and rules known here, without starting a server or running a rule."""
    toolbox = toolbox_of(settings)
    return survey_of(rules_of(settings, toolbox), toolbox, people_of(settings))


def _verdict(file: str, loaded: Loaded) -> dict[str, Any]:
    verdict: dict[str, Any] = {"file": file, "valid": loaded.is_valid, "findings": loaded.findings}
    if loaded.definition is not None and loaded.is_valid:
        definition = loaded.definition
        verdict |= {"id": definition.id, "hash": loaded.hash, "steps": len(definition.steps)}
        verdict["waves"] = waves(definition.steps)
        verdict["definition"] = definition_data(definition)
    return verdict


def _print_verdict(file: str, loaded: Loaded) -> None:
    """Print the findings, then a summary line."""
    print_findings(loaded.findings)
    file = printable(file)  # a file name in a cloned folder may contain escape codes
    if loaded.definition is None or not loaded.is_valid:
        say(f"{file}: {counted(loaded.findings)}", fg="red")
        return
    steps = loaded.definition.steps
    size = f"{plural(len(steps), 'step')} in {plural(len(waves(steps)), 'wave')}"
    say(f"{file}: valid, {size}, {plural(len(loaded.findings), 'warning')}", fg="green")
