"""The official Python client as an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import mcp_types as mt
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client

from outside.agents import MODERN, Started, Where, answered
from outside.processes import PATIENCE_S

YES: Mapping[str, Any] = {"boolean": True, "string": "agreed", "integer": 1, "number": 1}


@dataclass
class Person:
    """Somebody who agrees to everything, and says yes wherever that can be said."""

    asked: list[str] = field(default_factory=list)

    async def answer(self, context: ClientRequestContext, params: mt.ElicitRequestParams) -> mt.ElicitResult:
        assert isinstance(params, mt.ElicitRequestFormParams)
        self.asked.append(params.message)
        fields: Mapping[str, Mapping[str, Any]] = params.requested_schema["properties"]
        return mt.ElicitResult(action="accept", content={name: _yes(field) for name, field in fields.items()})


def _yes(field: Mapping[str, Any]) -> Any:
    if "enum" in field:
        return field["enum"][0]
    return field["oneOf"][0]["const"] if "oneOf" in field else YES[field["type"]]


@dataclass
class PythonAgent:
    """The client, connected."""

    client: Client
    person: Person

    @property
    def version(self) -> str:
        return self.client.protocol_version

    async def tools(self) -> Sequence[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        return answered(result.model_dump(by_alias=True, mode="json"))

    async def read(self, uri: str) -> str:
        content = (await self.client.read_resource(uri)).contents[0]
        assert isinstance(content, mt.TextResourceContents)
        return content.text

    async def asked(self) -> Sequence[str]:
        return self.person.asked


@asynccontextmanager
async def python_agent(where: Where, *, era: str, agrees: bool) -> AsyncIterator[PythonAgent]:
    """The client, connected in an era; its person agrees to all, or can't be asked."""
    person = Person()
    async with AsyncExitStack() as stack:
        client = Client(
            await _transport(where, stack),
            mode=MODERN if era == "modern" else era,
            client_info=mt.Implementation(name="python", version="1"),
            elicitation_callback=person.answer if agrees else None,
        )
        yield PythonAgent(await stack.enter_async_context(client), person)


async def _transport(where: Where, stack: AsyncExitStack) -> Any:
    if isinstance(where, Started):
        command, *arguments = where.command
        place = where.place
        return StdioServerParameters(command=command, args=arguments, env=place.environment, cwd=place.project)
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {where.token}"}, timeout=PATIENCE_S)
    return streamable_http_client(where.url, http_client=await stack.enter_async_context(http))
