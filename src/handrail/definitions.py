"""Definitions by name: a file, a workflow of the library, or a saved plan, checked against local tools and rules.

Reads files and the store; nothing is started or written. Which findings there are is decided in domain/analysis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handrail.domain.analysis.fitness import require_fit
from handrail.domain.analysis.local import Survey
from handrail.domain.checks.finding import blocks
from handrail.domain.definition.model import Definition
from handrail.domain.definition.work_items import tools_in, tools_named
from handrail.domain.errors import Invalid, NotFound
from handrail.domain.suggestion import did_you_mean
from handrail.engine.journal import ProjectionReader
from handrail.engine.plans import Plans
from handrail.engine.tool import Toolbox
from handrail.foundation.plain_file import NotPlain, read_plain, root_around
from handrail.library.documents.document import DOCUMENT_BYTES_MAX
from handrail.library.inputs import check_inputs
from handrail.library.loading import FolderCatalog, Loaded, load_definition, valid
from handrail.library.shelf.catalog import SUFFIXES
from handrail.library.shelf.workflow_library import WorkflowLibrary

KNOWN_MAX = 1_000
"""How many saved plans are looked at for a name that was probably meant."""


@dataclass(frozen=True)
class Definitions:
    """Finds definitions, ready to be run."""

    library: WorkflowLibrary
    plans: Plans
    store: ProjectionReader
    toolbox: Toolbox
    survey: Survey

    async def find(self, name: str) -> tuple[Definition, Mapping[str, str]]:
        """The definition in a file, of a workflow or of the saved plan of that name, and its tool pins.

        Invalid with all findings if it can't run here; NotFound with the nearest names."""
        definition, pins = await self._load(name, None)
        await self.toolbox.connect(tools_in(definition))
        # Loaded again with the tools known: so that what is wrong is reported with its position in the file.
        await self._load(name, self.survey)
        await self.require_runnable(definition)
        return definition, pins

    async def chosen(
        self, *, plan: str = "", workflow: str = "", definition: Mapping[str, Any] | None = None
    ) -> tuple[Definition, Mapping[str, str]]:
        """The one plan, workflow or definition that a call names, and the pins of its tools if it is a saved plan.

        For callers that must not name files. Connects the servers of its tools."""
        if [bool(plan), bool(workflow), bool(definition)].count(True) != 1:
            hint = "give exactly one of plan, workflow and definition"
            raise Invalid("a call runs one plan, workflow or definition", hint=hint)
        if definition:
            await self.toolbox.connect(tools_named(definition))
            return valid(self.library.load_plan(definition, survey=self.survey), "the definition"), {}
        pins: Mapping[str, str] = {}
        if workflow:
            found = valid(self.library.load(workflow), workflow)
        else:
            found, pins = await self.plans.newest(plan)
        await self.toolbox.connect(tools_in(found))
        return found, pins

    def inputs(self, definition: Definition, given: Mapping[str, Any], goal: str = "") -> Mapping[str, Any]:
        """The inputs, completed by defaults and the goal; Invalid if they, or the definition, can't be run here."""
        require_fit(definition, self.survey)
        inputs, findings = check_inputs(definition, dict(given), goal)
        if blocks(findings):
            raise Invalid(f"{definition.id} can't start with these inputs", findings=findings)
        return inputs

    async def require_runnable(self, definition: Definition) -> None:
        """Refuse a definition that can't run here: Invalid with all findings. Connects the servers of its tools."""
        await self.toolbox.connect(tools_in(definition))
        require_fit(definition, self.survey)

    async def _load(self, name: str, survey: Survey | None) -> tuple[Definition, Mapping[str, str]]:
        if is_file_name(name):
            return valid(load_file(name, self.library, survey or self.library.survey), name), {}
        if self.library.catalog.find(name.partition("@")[0]):
            return valid(self.library.load(name, survey=survey), name), {}
        try:
            return await self.plans.newest(name)
        except NotFound as error:
            raise NotFound(f"there is no file, workflow or plan {name!r}", hint=await self._hint(name)) from error

    async def _hint(self, name: str) -> str:
        rows = await self.store.plans(limit=KNOWN_MAX, project=self.plans.project)
        known = [*(entry.id for entry in self.library.entries()), *(row.id for row in rows if row.retired is None)]
        return did_you_mean(name, known) or "give a file, or save a plan first: `handrail plan save FILE`"


def is_file_name(name: str) -> bool:
    """Whether a name is that of a file rather than an id."""
    return name.endswith(SUFFIXES) or Path(name).is_file()


def load_file(file: str, library: WorkflowLibrary, survey: Survey) -> Loaded:
    """The definition in a file with all findings; what it extends or inlines is looked up beside it, then in
    the library."""
    path = Path(file)
    within = {source.folder: source.within for source in library.sources if source.within}
    root = next((root for one in within.values() if (root := root_around(path, Path(one)))), None)
    text = definition_text(path, within=root)
    if root is not None:
        within[str(path.parent)] = str(root)
    catalog = FolderCatalog([source.folder for source in library.sources], within=within, beside=path.parent)
    return load_definition(text, name=file, catalog=catalog, survey=survey)


def definition_text(path: Path, *, within: Path | None) -> bytes:
    """The content of a file that a person named; NotFound if it can't be read.

    If it is in a project, links may not lead out of that: the person named a file of the project, not of the system."""
    try:
        return read_plain(path, bytes_max=DOCUMENT_BYTES_MAX, within=within)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"there is no file {str(path)!r}", hint="give the path of a YAML or JSON definition") from error
    except NotPlain as error:
        raise NotFound(str(error), hint="give the path of a readable file, or `-` for stdin") from error
