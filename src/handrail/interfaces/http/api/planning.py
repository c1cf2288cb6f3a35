"""Plans and the library: list, show, check, save, retire. What is valid is decided in the library and the domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from handrail.assembly.opening import Assembly
from handrail.domain.definition.authoring import definition_data
from handrail.domain.definition.graph import waves
from handrail.domain.definition.model import Definition
from handrail.domain.definition.work_items import tools_named
from handrail.domain.errors import Invalid
from handrail.domain.journal.projection import PlanRow
from handrail.domain.plan import Plan
from handrail.domain.project import program_in
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_ENDED, RunStatus
from handrail.engine.plans import version_of
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.api.drawing import graph_of
from handrail.interfaces.http.api.instants import shown
from handrail.interfaces.http.api.run_listing import newest_rows
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import library as library_given
from handrail.interfaces.http.contract.given import runs as runs_given
from handrail.interfaces.http.edge.cursors import page_of
from handrail.library.loading import Loaded, valid
from handrail.library.shelf.search_words import matching
from handrail.library.shelf.workflow_entry import WorkflowEntry

PLANS_MAX: Final = 5_000
"""How many plans are searched."""
RUNS_SHOWN: Final = 20
BROKEN_SHOWN: Final = 50


# --- plans ----------------------------------------------------------------------------------------


async def list_plans(call: ApiCall) -> library_given.PlanPage:
    """The plans of this project."""
    query: asked.PlansQuery = call.query
    reader = call.program.writer.reader
    rows = await reader.store.plans(limit=PLANS_MAX, project=reader.project.id)
    offered = [row for row in rows if query.retired or row.retired is None]
    found = matching(query.q, offered, heading=lambda row: row.id, text=lambda row: row.name)
    page, cursor = page_of(found, query.limit, query.cursor)
    return library_given.PlanPage(
        plans=tuple(map(_plan, page)),
        total=len(found),
        cursor=cursor,
    )


def _plan(row: PlanRow) -> library_given.PlanSummary:
    return library_given.PlanSummary(
        id=row.id,
        name=row.name,
        version=row.version,
        steps=row.steps,
        saved=shown(row.saved),
        retired=shown(row.retired),
    )


async def show_plan(call: ApiCall) -> library_given.PlanView:
    """A plan, with the text of one version."""
    plan = await call.program.writer.plans.get(str(call.path["plan"]))
    return await _plan_view(call.program, plan, call.query.version)


async def _plan_view(program: Assembly, plan: Plan, number: int | None = None) -> library_given.PlanView:
    chosen = version_of(plan, number)
    definition = await program.writer.plans.definition(chosen)
    return library_given.PlanView(
        id=plan.id,
        version=chosen.number,
        versions=tuple(
            library_given.PlanVersionView(
                number=one.number,
                hash=one.definition,
                saved=shown(one.saved),
                by=one.actor,
                note=one.note,
                steps=one.steps,
            )
            for one in plan.versions
        ),
        definition=definition_data(definition),
        waves=_waves(definition),
        retired=shown(plan.retired),
        receipt=plan.receipt,
    )


async def save_plan(call: ApiCall) -> library_given.SavedPlan:
    """Save a plan that can be run here, pinned to the current descriptions of its tools."""
    body: asked.PlanBody = call.body
    program = call.program
    cards = await program.toolbox.connect(tools_named(body.plan))
    loaded = program.library.load_plan(body.plan, survey=program.survey)
    definition = valid(loaded, "the plan")
    before = await program.writer.plans.get(definition.id)
    plan = await program.writer.plans.save(definition, actor=call.caller.actor, note=body.note, cards=cards)
    return library_given.SavedPlan(
        plan=plan.id,
        version=plan.newest.number,
        hash=plan.newest.definition,
        receipt=plan.receipt,
        waves=_waves(definition),
        findings=tuple(loaded.findings),
        repeated=plan.n == before.n,
    )


async def retire_plan(call: ApiCall) -> library_given.PlanView:
    """Stop offering a plan."""
    plan = await call.program.writer.plans.retire(
        str(call.path["plan"]), reason=call.body.reason, actor=call.caller.actor
    )
    return await _plan_view(call.program, plan)


async def check_plan(call: ApiCall) -> library_given.Checked:
    """The findings on a definition, or on an output; nothing is started or written."""
    body: asked.CheckBody = call.body
    program = call.program
    if body.definition is not None:
        # No server is started for a look: what is not known of its tools is a finding.
        loaded = program.library.load_plan(body.definition, survey=program.survey)
        order = _waves(loaded.definition) if loaded.definition is not None else ()
        return library_given.Checked(valid=loaded.is_valid, findings=tuple(loaded.findings), waves=order)
    if not body.step or body.output is UNSET or not (body.run or body.workflow):
        raise Invalid("nothing to check", hint="give a definition, or step and output together with run or workflow")
    run, definition = await _run_to_check(program, body)
    judgement = await program.guide.judged(run, definition, body.step, body.output)
    return library_given.Checked(valid=judgement.is_good, findings=tuple(judgement.findings))


async def _run_to_check(program: Assembly, body: asked.CheckBody) -> tuple[Run, Definition]:
    if body.run:
        run = await program.writer.dispatch.own(body.run)
        return run, await program.writer.dispatch.definition(run.definition)
    # Without a run there are no earlier outputs: the checks then see only this one.
    return Run(id="run_"), valid(program.library.load(body.workflow), body.workflow)


def _waves(definition: Definition) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(wave) for wave in waves(definition.steps))


# --- library --------------------------------------------------------------------------------------


async def list_workflows(call: ApiCall) -> library_given.LibraryPage:
    """Workflows, with how their runs went so far."""
    query: asked.LibraryQuery = call.query
    library = call.program.library
    entries = library.search(query.q, category=query.category, tags=query.tag)
    page, cursor = page_of(entries, query.limit, query.cursor)
    runs: dict[str, list[str]] = {}
    for row in await newest_rows(call.program, call.project.id):
        runs.setdefault(row.workflow.partition("@")[0], []).append(row.status)
    broken = library.broken()[:BROKEN_SHOWN]
    return library_given.LibraryPage(
        workflows=tuple(_workflow(entry, runs.get(entry.id, [])) for entry in page),
        total=len(entries),
        categories=tuple(sorted({entry.category for entry in library.entries() if entry.category})),
        broken=tuple(library_given.BrokenFile(file=one.file, message=one.message) for one in broken),
        cursor=cursor,
    )


def _workflow(entry: WorkflowEntry, statuses: list[str]) -> library_given.WorkflowSummary:
    return library_given.WorkflowSummary(
        id=entry.id,
        name=entry.name,
        steps=entry.steps,
        version=entry.version,
        description=entry.description,
        category=entry.category,
        tags=entry.tags,
        source=entry.source,
        shadows=entry.shadows,
        runs=len(statuses),
        **_ended(statuses),
    )


def _ended(statuses: Sequence[str]) -> dict[str, int]:
    """How many runs have ended, and how many of those are completed."""
    ended = [status for status in statuses if status in RUN_ENDED]
    return {"ended": len(ended), "completed": ended.count(RunStatus.COMPLETED.value)}


async def show_workflow(call: ApiCall) -> library_given.WorkflowView:
    """A workflow: purpose, inputs, definition, graph, latest runs; also one that can't run here."""
    name = str(call.path["workflow"])
    program = call.program
    loaded = program.library.load(name, survey=program.survey)
    definition = _readable(loaded, name)
    entry = next((one for one in program.library.entries() if one.id == definition.id), None)
    own = await newest_rows(program, call.project.id)
    rows = [row for row in own if row.workflow.partition("@")[0] == definition.id]
    return library_given.WorkflowView(
        id=definition.id,
        name=definition.name,
        version=definition.version,
        description=definition.description,
        category=definition.category,
        tags=definition.tags,
        license=definition.license,
        source=entry.source if entry else "",
        file=entry.file if entry else "",
        preconditions=definition.preconditions,
        clarify=definition.clarify,
        guidance=definition.guidance,
        inputs=definition.inputs,
        definition=definition_data(definition),
        graph=graph_of(definition, program.toolbox.effects()),
        findings=tuple(loaded.findings),
        runs=tuple([(await program.run_reader.line(row))[0] for row in rows[:RUNS_SHOWN]]),
        **_ended([row.status for row in rows]),
        command=f"{program_in(call.named_folder)} run start {definition.id}",
    )


async def workflow_graph(call: ApiCall) -> runs_given.Graph:
    """The steps of a workflow and their order."""
    name = str(call.path["workflow"])
    definition = _readable(call.program.library.load(name), name)
    return graph_of(definition, call.program.toolbox.effects())


def _readable(loaded: Loaded, name: str) -> Definition:
    return loaded.definition if loaded.definition is not None else valid(loaded, name)
