"""One run in detail: its graph, its timeline, its story and the definition that it is pinned to."""

from __future__ import annotations

from handrail.domain.definition.authoring import definition_data
from handrail.domain.errors import HandrailError
from handrail.domain.json import digest
from handrail.engine.reading.run_view import Detail
from handrail.engine.reading.story_view import RunStory
from handrail.engine.reading.time_view import RunTimeline
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.api.drawing import run_graph_of
from handrail.interfaces.http.contract.given import runs as given


async def run_graph(call: ApiCall) -> given.Graph:
    """The steps of a run and their order."""
    program, at = call.program, call.query.at
    within = program.worker.within(call.run)
    seen = await program.run_reader.status(call.run, detail=Detail.FULL, within=within, at=at)
    run = await program.run_reader.run(call.run, at=at)
    definition = await program.run_reader.definition(run)
    return run_graph_of(run, definition, program.toolbox.effects(), seen.steps)


async def run_timeline(call: ApiCall) -> RunTimeline:
    """What happened when."""
    return await call.program.run_reader.timeline(call.run, at=call.query.at)


async def run_story(call: ApiCall) -> RunStory:
    """What happened as a story, and why the run is where it is."""
    return await call.program.run_reader.story(call.run, at=call.query.at)


async def run_definition(call: ApiCall) -> given.DefinitionView:
    """The definition of a run, and whether the library has another by now."""
    program = call.program
    run = await program.run_reader.run(call.run)
    definition = await program.run_reader.definition(run)
    try:
        newest = program.library.load(definition.id).definition
    except HandrailError:  # it is a plan, was removed, or can't be read any more
        newest = None
    return given.DefinitionView(
        id=definition.id,
        name=definition.name,
        version=definition.version,
        hash=run.definition,
        definition=definition_data(definition),
        inputs=run.inputs,
        newest=newest.version if newest is not None else "",
        differs=newest is not None and digest(definition_data(newest)) != digest(definition_data(definition)),
    )
