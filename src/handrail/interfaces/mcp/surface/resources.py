"""Resources: content that clients can read by its URI. Each is also available through a tool.

Handlers only translate engine results into content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

import msgspec

from handrail.domain.definition.authoring import definition_data
from handrail.domain.errors import HandrailError, Invalid, NotFound
from handrail.domain.run.status import RUN_SHOWN_OPEN
from handrail.engine.reading.ledger import Query, event_view
from handrail.engine.reading.run_view import Detail
from handrail.interfaces.mcp.surface.answering import status_data
from handrail.interfaces.mcp.surface.caller import unknown
from handrail.interfaces.mcp.surface.fitting import fitted
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.interfaces.mcp.surface.offer import JSON_TYPE, MARKDOWN_TYPE, Content, Resource, ResourceTemplate
from handrail.interfaces.pictures.mermaid import mermaid_text
from handrail.library.loading import valid
from handrail.library.schemas.structure import schema_text

SCHEME: Final = "handrail://"
GUIDE: Final = f"{SCHEME}guide"
SCHEMA: Final = f"{SCHEME}schema/workflow"
RUNS: Final = f"{SCHEME}runs"
MERMAID_TYPE: Final = "text/vnd.mermaid"
URI_LENGTH_MAX: Final = 500
READ_MAX: Final = 200_000
"""The limit of a resource, in characters."""
EVENTS_MAX: Final = 500
LISTED_MAX: Final = 500

TEMPLATES: Final = (
    ResourceTemplate(pattern=f"{SCHEME}workflows/{{id}}", name="workflow", description="a workflow's definition"),
    ResourceTemplate(pattern=f"{RUNS}/{{run}}", name="run", description="the status of a run, step by step"),
    ResourceTemplate(pattern=f"{RUNS}/{{run}}/journal", name="journal", description="the events of a run"),
    ResourceTemplate(
        pattern=f"{RUNS}/{{run}}/graph", name="graph", description="a run as a Mermaid flowchart", type=MERMAID_TYPE
    ),
)


@dataclass(frozen=True)
class Resources:
    """The resources of handrail."""

    lazy: LazyProgram

    async def listed(self) -> Sequence[Resource]:
        """The fixed resources, and every workflow."""
        fixed = (
            Resource(uri=GUIDE, name="guide", description="how agents work with handrail", type=MARKDOWN_TYPE),
            Resource(uri=SCHEMA, name="workflow schema", description="the JSON Schema of workflows and plans"),
            Resource(uri=RUNS, name="runs", description="the open runs"),
        )
        entries = [
            Resource(uri=f"{SCHEME}workflows/{entry.id}", name=entry.name, description=entry.description)
            for entry in self.lazy.library.entries()[:LISTED_MAX]
        ]
        return [*fixed, *entries]

    def templates(self) -> Sequence[ResourceTemplate]:
        """The URI templates of resources that have an id."""
        return TEMPLATES

    async def read(self, uri: str) -> Content:
        """The content of a resource; Unknown if there is none with that URI."""
        if not uri.startswith(SCHEME) or len(uri) > URI_LENGTH_MAX:
            unknown("resource", uri[:URI_LENGTH_MAX])
        if uri == GUIDE:
            return Content(text=guide_text(), type=MARKDOWN_TYPE)
        if uri == SCHEMA:
            return Content(text=schema_text())
        try:
            return await self._found(uri.removeprefix(SCHEME).split("/"), uri)
        except (NotFound, Invalid):
            unknown("resource", uri)
        except HandrailError as error:
            # Reading has no error answer with a hint, so the error is the content.
            said = {"code": error.code, "name": error.name, "message": str(error), "hint": error.hint}
            return Content(text=msgspec.json.encode({"error": said}).decode(), type=JSON_TYPE)

    async def _found(self, parts: Sequence[str], uri: str) -> Content:
        match parts:
            case ["workflows", *name] if name:
                workflow = "/".join(name)
                return self._json(definition_data(valid(self.lazy.library.load(workflow), workflow)))
            case ["runs"]:
                return await self._runs()
            case ["runs", run]:
                program = await self.lazy.open()
                return self._json(status_data(await program.run_reader.status(run, detail=Detail.FULL)))
            case ["runs", run, "journal"]:
                return await self._journal(run)
            case ["runs", run, "graph"]:
                return await self._graph(run)
            case _:
                return unknown("resource", uri)

    async def _runs(self) -> Content:
        program = await self.lazy.open()
        runs = await program.run_reader.runs(status=RUN_SHOWN_OPEN, limit=LISTED_MAX)
        return self._json({"runs": msgspec.to_builtins(runs)})

    async def _journal(self, run: str) -> Content:
        program = await self.lazy.open()
        found = await program.writer.reader.ledger.query(Query(stream=run, limit=EVENTS_MAX))
        data: dict[str, Any] = {"events": [event_view(hit.record) for hit in found.hits]}
        if other := await program.run_reader.other_project(run):
            data["project"] = msgspec.to_builtins(other)
        if found.after is not None:
            data["cursor"] = str(found.after)
            data["more"] = "query_ledger continues from the cursor"
        return self._json(data)

    async def _graph(self, run: str) -> Content:
        run_reader = (await self.lazy.open()).run_reader
        current = await run_reader.run(run)
        definition = await run_reader.definition(current)
        statuses = {step.id: current.step(step.id).status.value for step in definition.steps}
        text = self.lazy.secrets().scrubber().text(mermaid_text(definition, statuses))
        return Content(text=text, type=MERMAID_TYPE)

    def _json(self, data: dict[str, Any]) -> Content:
        # Before it is cut to its length, which could cut through a secret.
        clean = self.lazy.secrets().scrubber().value(data)
        return Content(text=msgspec.json.encode(fitted(clean, most=READ_MAX)).decode(), type=JSON_TYPE)


def guide_text() -> str:
    """The guide for agents."""
    return files("handrail.interfaces.mcp.surface").joinpath("guide.md").read_text("utf-8")
