"""A surface with everything that the suite expects; it implements the same protocol as handrail's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handrail.interfaces.mcp.surface.caller import AskFirst, Caller, Response, TaskView, ToolReply, Unknown
from handrail.interfaces.mcp.surface.offer import Content, PromptOffer, Resource, ResourceTemplate, ToolOffer
from handrail.interfaces.mcp.surface.surface_protocol import ServerInfo
from outside.conformance.content import PIXEL
from outside.conformance.deeds import deeds_of, question
from outside.conformance.feed import ListFeed
from outside.conformance.offers import (
    PROMPTS,
    RESOURCES,
    STATIC_BINARY,
    STATIC_TEXT,
    TEMPLATE_END,
    TEMPLATE_START,
    TEMPLATES,
    TOOLS,
    WATCHED,
)
from outside.conformance.task_book import MemoryBook

CONTEXT = question("Which context?", "context")


@dataclass(frozen=True)
class FixtureSurface:
    """What the suite calls."""

    about: ServerInfo = ServerInfo(
        name="fixture", title="Fixture", version="1.0.0", instructions="For the conformance suite."
    )
    feed: ListFeed = field(default_factory=ListFeed)
    tasks: MemoryBook = field(default_factory=MemoryBook)

    def tools(self) -> Sequence[ToolOffer]:
        return TOOLS

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller) -> ToolReply | TaskView:
        deed = deeds_of(self.feed, self.tasks).get(name)
        if deed is None:
            raise Unknown("tool", name)
        return await deed(arguments, caller)

    async def resources(self, caller: Caller) -> Sequence[Resource]:
        return RESOURCES

    def templates(self) -> Sequence[ResourceTemplate]:
        return TEMPLATES

    async def read(self, uri: str, caller: Caller) -> Content:
        if uri == STATIC_BINARY:
            return Content(blob=PIXEL, type="image/png")
        if uri in {STATIC_TEXT, WATCHED}:
            return Content(text="static text", type="text/plain")
        if uri.startswith(TEMPLATE_START) and uri.endswith(TEMPLATE_END):
            name = uri.removeprefix(TEMPLATE_START).removesuffix(TEMPLATE_END)
            return Content(text=json.dumps({"id": name, "templateTest": True, "data": f"data of {name}"}))
        raise Unknown("resource", uri)

    async def prompts(self) -> Sequence[PromptOffer]:
        return PROMPTS

    async def prompt(self, name: str, arguments: Mapping[str, str], caller: Caller) -> str:
        match name:
            case "test_simple_prompt":
                return "simple prompt"
            case "test_prompt_with_arguments":
                return f"arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"
            case "test_input_required_result_prompt":
                answer = await caller.ask("user_context", CONTEXT, about="context")
                if answer.response is not Response.ACCEPT:
                    raise AskFirst("user_context", CONTEXT, about="context")
                return f"Context: {answer.content.get('context')}"
            case _:
                raise Unknown("prompt", name)

    async def complete(self, about: str, argument: str, value: str) -> Sequence[str]:
        return ["one", "two"]
