"""The shell: connects a surface to the official SDK's low-level server, for every protocol version that it supports.

It translates the protocol's requests into calls of the surface, and the surface's values into the protocol's types.
Only the shell files (shell*.py) and the transports import the SDK; the transports are in stdio/ and http/."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import mcp_types as mt
from mcp.server.caching import CacheHint
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from handrail.interfaces.mcp.shell_caller import APPS, TASKS, SdkCaller, elicitation
from handrail.interfaces.mcp.shell_subscribers import FeedBus, Subscribers
from handrail.interfaces.mcp.shell_tasks import add_tasks, result_of, task_wire
from handrail.interfaces.mcp.shell_tracing import RequestTracing, below_headers
from handrail.interfaces.mcp.surface.caller import AskFirst, TaskView, Unknown
from handrail.interfaces.mcp.surface.offer import ToolOffer
from handrail.interfaces.mcp.surface.surface_protocol import Surface

LIST_MS: Final = 300_000
"""How long clients may cache a list: as long as prompt caches last."""
READ_MS: Final = 1_000
COMPLETIONS_MAX: Final = 100
PAGE_MAX: Final = 200

Context = ServerRequestContext[Any, Any]
Called: TypeAlias = Callable[[str, str, float], None]
"""Takes the tool, the outcome and the seconds of a call that ended."""
OK: Final = "ok"
ASKED: Final = "asked"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"


def build(surface: Surface, *, keys: Sequence[bytes], called: Called | None = None) -> Server[Any]:
    """The SDK's server for this surface; `keys` seal the state that a client carries between two rounds of a call,
    `called` is informed of each tool call that ended."""
    about = surface.about
    handlers = _Handlers(surface, called)
    subscribers = Subscribers(surface.feed)
    lists = CacheHint(ttl_ms=LIST_MS, scope="private")
    server: Server[Any] = Server(
        about.name,
        version=about.version,
        title=about.title,
        description=about.description or None,
        instructions=about.instructions,
        cache_hints={
            "server/discover": lists,
            "tools/list": lists,
            "prompts/list": lists,
            "resources/list": lists,
            "resources/templates/list": lists,
            "resources/read": CacheHint(ttl_ms=READ_MS, scope="private"),
        },
        get_tool_input_schema={tool.name: tool.input for tool in surface.tools()}.get,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=subscribers.subscribe,
        on_unsubscribe_resource=subscribers.unsubscribe,
        on_subscriptions_listen=ListenHandler(FeedBus(surface.feed)),
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_completion=handlers.complete,
    )
    # Around and inside the span that the SDK makes for each request, which is the first in this list.
    server.middleware.insert(0, below_headers)
    server.middleware.append(RequestTracing([tool.name for tool in surface.tools()]))
    # The state travels through the client, which could change it: sealed, a changed one is refused.
    server.middleware.append(RequestStateBoundary(RequestStateSecurity(keys=keys), default_audience=about.name))
    if surface.tasks is not None:
        server.extensions[TASKS] = {}
        add_tasks(server, surface.tasks)
    if any(tool.app for tool in surface.tools()):
        server.extensions[APPS] = {}
    return server


@dataclass(frozen=True)
class _Handlers:
    """The handlers that the SDK calls."""

    surface: Surface
    called: Called | None = None

    async def list_tools(self, ctx: Context, params: mt.PaginatedRequestParams | None) -> mt.ListToolsResult:
        shown = _with_app if SdkCaller(ctx).shows_apps else _tool
        tools, cursor = _page([shown(tool) for tool in self.surface.tools()], params)
        return mt.ListToolsResult(tools=tools, next_cursor=cursor)

    async def call_tool(self, ctx: Context, params: mt.CallToolRequestParams) -> Any:
        if self.called is None:
            return await self._called(ctx, params)
        started_s, outcome = time.perf_counter(), FAILED
        try:
            result = await self._called(ctx, params)
        except MCPError:
            outcome = UNKNOWN
            raise
        else:
            outcome = outcome_of(result)
            return result
        finally:
            self.called(params.name, outcome, time.perf_counter() - started_s)

    async def _called(self, ctx: Context, params: mt.CallToolRequestParams) -> Any:
        caller = SdkCaller(ctx, params.input_responses, params.request_state)
        try:
            answer = await self.surface.call(params.name, params.arguments or {}, caller)
        except Unknown as error:
            raise _no_such(error) from error
        except AskFirst as asked:
            return _input_required(asked)
        if isinstance(answer, TaskView):
            return {"resultType": "task", **task_wire(answer)}
        return result_of(answer)

    async def list_resources(self, ctx: Context, params: mt.PaginatedRequestParams | None) -> mt.ListResourcesResult:
        every = [
            mt.Resource(
                uri=one.uri,
                name=one.name,
                description=one.description or None,
                mime_type=one.type,
                _meta=_meta(one.meta),
            )
            for one in await self.surface.resources(SdkCaller(ctx))
        ]
        resources, cursor = _page(every, params)
        return mt.ListResourcesResult(resources=resources, next_cursor=cursor)

    async def list_templates(
        self, _: Context, params: mt.PaginatedRequestParams | None
    ) -> mt.ListResourceTemplatesResult:
        every = [
            mt.ResourceTemplate(
                uri_template=one.pattern, name=one.name, description=one.description or None, mime_type=one.type
            )
            for one in self.surface.templates()
        ]
        templates, cursor = _page(every, params)
        return mt.ListResourceTemplatesResult(resource_templates=templates, next_cursor=cursor)

    async def read_resource(self, ctx: Context, params: mt.ReadResourceRequestParams) -> mt.ReadResourceResult:
        uri = str(params.uri)
        try:
            content = await self.surface.read(uri, SdkCaller(ctx))
        except Unknown as error:
            raise MCPError(mt.INVALID_PARAMS, str(error), {"uri": uri}) from error
        if content.blob is not None:
            blob = base64.b64encode(content.blob).decode()
            return mt.ReadResourceResult(contents=[mt.BlobResourceContents(uri=uri, blob=blob, mime_type=content.type)])
        text = mt.TextResourceContents(uri=uri, text=content.text, mime_type=content.type, _meta=_meta(content.meta))
        return mt.ReadResourceResult(contents=[text])

    async def list_prompts(self, _: Context, params: mt.PaginatedRequestParams | None) -> mt.ListPromptsResult:
        every = [
            mt.Prompt(
                name=one.name,
                title=one.title or None,
                description=one.description or None,
                arguments=[
                    mt.PromptArgument(name=each.name, description=each.description or None, required=each.required)
                    for each in one.arguments
                ],
            )
            for one in await self.surface.prompts()
        ]
        prompts, cursor = _page(every, params)
        return mt.ListPromptsResult(prompts=prompts, next_cursor=cursor)

    async def get_prompt(self, ctx: Context, params: mt.GetPromptRequestParams) -> Any:
        caller = SdkCaller(ctx, params.input_responses, params.request_state)
        try:
            text = await self.surface.prompt(params.name, params.arguments or {}, caller)
        except Unknown as error:
            raise _no_such(error) from error
        except AskFirst as asked:
            return _input_required(asked)
        message = mt.PromptMessage(role="user", content=mt.TextContent(type="text", text=text))
        return mt.GetPromptResult(messages=[message])

    async def complete(self, _: Context, params: mt.CompleteRequestParams) -> mt.CompleteResult:
        ref = params.ref
        about = ref.name if isinstance(ref, mt.PromptReference) else str(ref.uri)
        values = list(await self.surface.complete(about, params.argument.name, params.argument.value))
        more = len(values) > COMPLETIONS_MAX
        return mt.CompleteResult(
            completion=mt.Completion(values=values[:COMPLETIONS_MAX], total=len(values), has_more=more)
        )


def outcome_of(result: Any) -> str:
    """How a call ended, in one word: ok, asked (the user is asked first), or the name of our error."""
    if isinstance(result, mt.InputRequiredResult):
        return ASKED
    if not isinstance(result, mt.CallToolResult) or not result.is_error:
        return OK
    return str((result.structured_content or {}).get("name", FAILED))


def _tool(tool: ToolOffer) -> mt.Tool:
    hints = tool.hints
    return mt.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.input),
        output_schema=dict(tool.output) if tool.output is not None else None,
        annotations=mt.ToolAnnotations(
            read_only_hint=hints.read_only,
            destructive_hint=None if hints.read_only else hints.destructive,
            idempotent_hint=None if hints.read_only else hints.idempotent,
        ),
    )


def _with_app(tool: ToolOffer) -> mt.Tool:
    """The tool with the page that shows its answers."""
    listed = _tool(tool)
    if not tool.app:
        return listed
    given = dict(tool.app_input) if tool.app_input is not None else listed.input_schema
    return listed.model_copy(update={"input_schema": given, "meta": {"ui": {"resourceUri": tool.app}}})


def _meta(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return dict(value) if value is not None else None


def _page(every: list[Any], params: mt.PaginatedRequestParams | None) -> tuple[list[Any], str | None]:
    """One page of a list, and the cursor of the next page: the number of entries shown so far."""
    cursor = params.cursor if params is not None else None
    if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise MCPError(mt.INVALID_PARAMS, f"{cursor[:40]!r} is not a cursor of this list")
    start = int(cursor or 0)
    end = start + PAGE_MAX
    return every[start:end], str(end) if end < len(every) else None


def _no_such(error: Unknown) -> MCPError:
    return MCPError(mt.INVALID_PARAMS, str(error), {error.what: error.name})


def _input_required(asked: AskFirst) -> HandlerResult:
    return mt.InputRequiredResult(input_requests={asked.key: elicitation(asked.question)}, request_state=asked.about)
