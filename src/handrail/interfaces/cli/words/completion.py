"""Shell completion of ids: runs, workflows, plans and steps, read from the store and the library.

Completion runs at every press of Tab, so it is quick and silent and changes nothing. On any error it offers nothing;
the command itself reports what is wrong."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

import click
from click.shell_completion import CompletionItem

from handrail.assembly.opening import StoreReader, open_reader
from handrail.assembly.tools import library_of
from handrail.domain.run.status import STEP_IN_TROUBLE
from handrail.engine.reading.run_view import Detail, Status, WaitingKind
from handrail.foundation.visible_text import visible_line
from handrail.library.shelf.workflow_library import WorkflowLibrary
from handrail.settings import Settings, read_settings

OFFERED_MAX: Final = 1_000
PATIENCE_S: Final = 2.0
"""The shell blocks while it waits: after this time it gets no items."""

Item: TypeAlias = "CompletionItem[str]"
Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[Item]]
Source: TypeAlias = Callable[[Settings, click.Context], Awaitable[Iterable[Item]]]


def completer(source: Source, *, files: bool = False) -> Completer:
    """A completer for the items of a source; with `files`, it completes file names too."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[Item]:
        # Click's shell scripts drop items that come before a file item, so it is the first.
        paths: list[Item] = [CompletionItem(incomplete, type="file")] if files else []
        if files and os.sep in incomplete:
            return paths
        fitting = [item for item in _found(source, ctx) if item.value.startswith(incomplete)]
        return [*paths, *(_shown(item) for item in fitting if item.value.isprintable())]

    return complete


def _shown(item: Item) -> Item:
    # The shell prints it: names of workflows must not control the terminal, nor look like further items.
    return CompletionItem(item.value, type=item.type, help=visible_line(item.help) if item.help else None)


def _found(source: Source, ctx: click.Context) -> list[Item]:
    """The items of a source; none if it can't be read in time."""
    given = ctx.find_root().params  # click only parses the options here: program() does not run
    try:
        settings = read_settings({"home": given.get("home"), "project": given.get("project")}, os.environ)
        return list(asyncio.run(asyncio.wait_for(_items(source, settings, ctx), PATIENCE_S)))
    except Exception:  # a traceback would end up in the middle of the typed line
        return []


async def _items(source: Source, settings: Settings, ctx: click.Context) -> Iterable[Item]:
    return await source(settings, ctx)


async def _runs(settings: Settings, _: click.Context) -> Iterable[Item]:
    async with open_reader(settings) as look:
        rows = await look.store.runs(limit=OFFERED_MAX, project=look.project.id)
    return [CompletionItem(row.id, help=f"{row.status} {row.workflow}") for row in rows]


async def _workflows(settings: Settings, _: click.Context) -> Iterable[Item]:
    return [CompletionItem(entry.id, help=entry.name) for entry in _library(settings).entries()]


async def _plans(settings: Settings, _: click.Context) -> Iterable[Item]:
    async with open_reader(settings) as look:
        return await _plans_in(look)


async def _runnable(settings: Settings, ctx: click.Context) -> Iterable[Item]:
    return [*await _workflows(settings, ctx), *await _plans(settings, ctx)]


async def _plans_in(look: StoreReader) -> Sequence[Item]:
    rows = await look.store.plans(limit=OFFERED_MAX, project=look.project.id)
    return [CompletionItem(row.id, help=row.name) for row in rows if row.retired is None]


def _library(settings: Settings) -> WorkflowLibrary:
    """The library; without its cache file if there is no home folder: Tab must not create one."""
    library = library_of(settings)
    return library if settings.home.is_dir() else WorkflowLibrary(library.sources)


def steps_completer(choose: Callable[[Status], Iterable[str]]) -> Completer:
    """A completer for the steps that `choose` picks from the run in the argument before."""

    async def steps(settings: Settings, ctx: click.Context) -> Iterable[Item]:
        async with open_reader(settings) as look:
            status = await look.run_reader().status(str(ctx.params["run_id"]), detail=Detail.FULL)
        titles = {step.id: step.title for step in status.steps}
        return [CompletionItem(step, help=titles.get(step, "")) for step in choose(status)]

    return completer(steps)


def waiting_for(kind: WaitingKind) -> Callable[[Status], Iterable[str]]:
    """The steps that wait for this kind of answer."""
    return lambda status: [one.step for one in status.waiting_for if one.kind is kind]


def in_trouble(status: Status) -> Iterable[str]:
    """The steps that failed or are uncertain."""
    return [step.id for step in status.steps if step.status in STEP_IN_TROUBLE]


def every_step(status: Status) -> Iterable[str]:
    """All steps."""
    return [step.id for step in status.steps]


complete_run: Final = completer(_runs)
complete_run_or_file: Final = completer(_runs, files=True)
complete_plan: Final = completer(_plans)
complete_workflow: Final = completer(_workflows, files=True)
complete_runnable: Final = completer(_runnable, files=True)
