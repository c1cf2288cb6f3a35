"""The Python API: `handrail.open()` and `handrail.connect()`, and the program that they open.

Settings come from the arguments, else from the environment and the config files, as for the command line."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from handrail.assembly.checks import rules_of
from handrail.assembly.opening import StoreWriter, open_assembly, open_writer
from handrail.assembly.people import people_of
from handrail.assembly.tools import library_of, survey_of, toolbox_of
from handrail.definitions import Definitions
from handrail.domain.errors import Invalid
from handrail.engine.plans import Plans
from handrail.engine.proving.audit import AuditResult
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.running.control import Control
from handrail.library.shelf.workflow_library import WorkflowLibrary
from handrail.runs import Execution, Runs
from handrail.settings import Settings, local_person, read_settings
from handrail.tools.registry import Registry
from handrail.tools.sdk import PythonTool


@dataclass(frozen=True)
class Program:
    """handrail in one project: its runs, plans, workflows and tools, over one store."""

    settings: Settings
    runs: Runs
    plans: Plans
    workflows: WorkflowLibrary
    tools: Registry
    _store: StoreWriter

    async def verify(self, run: str | None = None, *, replay: bool = False) -> AuditResult:
        """Verify the journal, or the events of one run; `replay` also folds them and compares the stored state."""
        return await self._store.reader.verify(stream=run, replay=replay)


@asynccontextmanager
async def open_program(
    *,
    home: str | os.PathLike[str] | None = None,
    project: str | os.PathLike[str] | None = None,
    actor: str = "",
    tools: Sequence[PythonTool] = (),
) -> AsyncIterator[Program]:
    """Open a program that executes the runs that are started in it.

    `home` holds all state, `project` is the folder to work in: only runs of that project are executed and changed;
    `actor` is recorded for everything that is done here (default: `person:<os user>`); `tools` are Python functions for
    plans to call, made with `handrail.tool`."""
    settings = _settings(home, project)
    async with open_assembly(settings, picks_up=False, tools=tools) as parts:
        execution = Execution(parts.worker, parts.guide)
        store, control = parts.writer, parts.control
        yield _program(settings, store, parts.toolbox, parts.run_reader, actor, control=control, execution=execution)


@asynccontextmanager
async def connect(
    *, home: str | os.PathLike[str] | None = None, project: str | os.PathLike[str] | None = None, actor: str = ""
) -> AsyncIterator[Program]:
    """Open a program that starts, controls and reads runs, and leaves executing them to other processes."""
    settings = _settings(home, project)
    async with open_writer(settings) as store:
        toolbox = toolbox_of(settings)
        try:
            reader = store.reader.run_reader(toolbox)
            yield _program(settings, store, toolbox, reader, actor, control=store.control)
        finally:
            await toolbox.close()


def _program(
    settings: Settings,
    store: StoreWriter,
    toolbox: Registry,
    reader: RunReader,
    actor: str,
    *,
    control: Control,
    execution: Execution | None = None,
) -> Program:
    if not isinstance(actor, str):
        raise Invalid("actor must be a string", hint="give a name like `person:ada` or `agent:script`")
    library = library_of(settings)
    survey = survey_of(rules_of(settings, toolbox), toolbox, people_of(settings))
    runs = Runs(
        definitions=Definitions(library, store.plans, store.reader.store, toolbox, survey),
        dispatch=store.dispatch,
        control=control,
        reader=reader,
        ledger=store.reader.ledger,
        actor=actor or local_person(),
        execution=execution,
    )
    return Program(settings=settings, runs=runs, plans=store.plans, workflows=library, tools=toolbox, _store=store)


def _settings(home: str | os.PathLike[str] | None, project: str | os.PathLike[str] | None) -> Settings:
    given = {"home": home, "project": project}
    flags = {name: os.fspath(folder) if folder is not None else None for name, folder in given.items()}
    return read_settings(flags, os.environ)
