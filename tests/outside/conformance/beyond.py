"""What the suite scores and handrail does not offer: sampling, roots, protocol logging, pictures and sounds.

Put on the SDK's server after the shell was built, before its own handlers: names that are not here go on to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types as mt
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from handrail.interfaces.mcp.shell_caller import SdkCaller, elicitation
from handrail.interfaces.mcp.shell_tasks import needs_tasks
from outside.conformance.content import AUDIO, IMAGE, MIXED, embedded, said
from outside.conformance.deeds import INTERNAL_ERROR, NAME, STEP_S

Context = ServerRequestContext[Any, Any]
Params = mt.CallToolRequestParams
Handler = Callable[[Context, Params], Awaitable[Any]]

SHOWN: Mapping[str, list[mt.ContentBlock]] = {
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [embedded("test://embedded-resource", "text/plain", "embedded text")],
    "test_multiple_content_types": MIXED,
}
TASK_ONLY = {"failing_job", "test_tool_with_task"}
BROKEN = "protocol_error_job"


def go_beyond(server: Server[Any]) -> None:
    """Add to a server what only the suite asks for."""
    called, prompted = (server.get_request_handler(method) for method in ("tools/call", "prompts/get"))
    assert called is not None
    assert prompted is not None

    async def call(ctx: Context, params: Params) -> Any:
        if params.name in SHOWN:
            return mt.CallToolResult(content=SHOWN[params.name])
        if params.name in BEYOND:
            return await BEYOND[params.name](ctx, params)
        if not SdkCaller(ctx).wants_tasks:
            _refuse_without_tasks(params.name)
        return await called.handler(ctx, params)

    async def prompt(ctx: Context, params: mt.GetPromptRequestParams) -> Any:
        blocks = _blocks(params)
        if not blocks:
            return await prompted.handler(ctx, params)
        return mt.GetPromptResult(messages=[mt.PromptMessage(role="user", content=block) for block in blocks])

    server.add_request_handler("tools/call", mt.CallToolRequestParams, call)
    server.add_request_handler("prompts/get", mt.GetPromptRequestParams, prompt)
    server.add_request_handler("logging/setLevel", mt.SetLevelRequestParams, _set_level)


def _refuse_without_tasks(name: str) -> None:
    if name in TASK_ONLY:
        raise needs_tasks()
    if name == BROKEN:
        raise MCPError(INTERNAL_ERROR, "broken")


def _blocks(params: mt.GetPromptRequestParams) -> list[mt.ContentBlock]:
    if params.name == "test_prompt_with_image":
        return [IMAGE, said("look at the image before")]
    if params.name == "test_prompt_with_embedded_resource":
        uri = (params.arguments or {})["resourceUri"]
        return [embedded(uri, "text/plain", "embedded prompt text"), said("read the block before")]
    return []


async def _set_level(_: Context, __: mt.SetLevelRequestParams) -> mt.EmptyResult:
    return mt.EmptyResult()


async def _logging(ctx: Context, _: Params) -> mt.CallToolResult:
    for text in ("started", "working", "finished"):
        await ctx.session.send_log_message("info", text, related_request_id=ctx.request_id)
        await asyncio.sleep(STEP_S)
    return _done("done")


async def _sampling(ctx: Context, params: Params) -> mt.CallToolResult:
    messages = [_message(str((params.arguments or {})["prompt"]))]
    answer = await ctx.session.create_message(messages=messages, max_tokens=100, related_request_id=ctx.request_id)
    return _done(f"the model said: {getattr(answer.content, 'text', answer.content)}")


async def _needs_sampling(ctx: Context, _: Params) -> mt.CallToolResult:
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        required: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(mt.MISSING_REQUIRED_CLIENT_CAPABILITY, "the client must declare sampling", required)
    return _done("done")


async def _asks_model(_: Context, params: Params) -> Any:
    answer = (params.input_responses or {}).get("capital_question")
    if answer is None:
        return _needed({"capital_question": _sample("What is the capital?")})
    content = getattr(answer, "content", None)
    return _done(str(getattr(content, "text", content)))


async def _asks_roots(_: Context, params: Params) -> Any:
    answer = (params.input_responses or {}).get("client_roots")
    if answer is None:
        return _needed({"client_roots": mt.ListRootsRequest()})
    return _done("roots: " + ", ".join(str(root.uri) for root in getattr(answer, "roots", [])))


async def _asks_all(_: Context, params: Params) -> Any:
    asked: mt.InputRequests = {
        "user_name": elicitation(NAME),
        "greeting": _sample("Greet"),
        "client_roots": mt.ListRootsRequest(),
    }
    if not asked.keys() <= (params.input_responses or {}).keys():
        return _needed(asked, "all")
    return _done("all inputs received")


async def _asks_what_is_declared(ctx: Context, params: Params) -> Any:
    capabilities = ctx.session.client_capabilities
    asked: mt.InputRequests = {}
    if capabilities is not None and capabilities.elicitation is not None:
        asked["ask"] = elicitation(NAME)
    if capabilities is not None and capabilities.sampling is not None:
        asked["sample"] = _sample("Greet")
    return _done("done") if params.input_responses or not asked else _needed(asked)


BEYOND: Mapping[str, Handler] = {
    "test_tool_with_logging": _logging,
    "test_logging_tool": _logging,
    "test_sampling": _sampling,
    "test_missing_capability": _needs_sampling,
    "test_input_required_result_sampling": _asks_model,
    "test_input_required_result_list_roots": _asks_roots,
    "test_input_required_result_multiple_inputs": _asks_all,
    "test_input_required_result_capabilities": _asks_what_is_declared,
}


def _done(text: str) -> mt.CallToolResult:
    return mt.CallToolResult(content=[said(text)])


def _needed(requests: mt.InputRequests, state: str | None = None) -> mt.InputRequiredResult:
    return mt.InputRequiredResult(input_requests=requests, request_state=state)


def _message(text: str) -> mt.SamplingMessage:
    return mt.SamplingMessage(role="user", content=said(text))


def _sample(text: str) -> mt.CreateMessageRequest:
    return mt.CreateMessageRequest(params=mt.CreateMessageRequestParams(messages=[_message(text)], max_tokens=100))
