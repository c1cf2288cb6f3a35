"""The tasks extension: calls that continue after their answer, and are looked up by id.

Part of the shell. The tasks themselves are in the surface's TaskBook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mcp_types as mt
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from handrail.domain.errors import HandrailError
from handrail.interfaces.mcp.shell_caller import TASKS, SdkCaller, answered, elicitation
from handrail.interfaces.mcp.surface.caller import TaskStatus, TaskView, ToolReply, Unknown
from handrail.interfaces.mcp.surface.surface_protocol import TaskBook

Context = ServerRequestContext[Any, Any]


class TaskParams(mt.RequestParams):
    """The parameters of every request about a task."""

    task_id: str
    input_responses: dict[str, Any] | None = None


def add_tasks(server: Server[Any], book: TaskBook) -> None:
    """Add the handlers of the tasks extension to a server."""
    handlers = _TaskHandlers(book)
    server.add_request_handler("tasks/get", TaskParams, handlers.get)
    server.add_request_handler("tasks/update", TaskParams, handlers.update)
    server.add_request_handler("tasks/cancel", TaskParams, handlers.cancel)


def needs_tasks() -> MCPError:
    """The error for a call that needs the extension, from a client that hasn't declared it."""
    required: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    return MCPError(mt.MISSING_REQUIRED_CLIENT_CAPABILITY, "the client must declare the tasks extension", required)


def result_of(reply: ToolReply) -> mt.CallToolResult:
    """A reply as a protocol result."""
    content: list[mt.ContentBlock] = [mt.TextContent(type="text", text=reply.text)]
    meta = dict(reply.meta) if reply.meta is not None else None
    return mt.CallToolResult(content=content, structured_content=reply.data, is_error=reply.is_error, _meta=meta)


def task_wire(task: TaskView) -> dict[str, Any]:
    """A task in the protocol's format."""
    wire: dict[str, Any] = {
        "taskId": task.id,
        "status": task.status.value,
        "createdAt": task.created,
        "lastUpdatedAt": task.updated,
        "ttlMs": task.ttl_ms,
        "pollIntervalMs": task.poll_ms,
    }
    if task.message:
        wire["statusMessage"] = task.message
    if task.reply is not None:
        wire["result"] = _dumped(result_of(task.reply))
    if task.error is not None:
        wire["error"] = {"code": task.error[0], "message": task.error[1]}
    if task.status is TaskStatus.INPUT_REQUIRED:
        asked = {key: _dumped(elicitation(question)) for key, question in task.questions.items()}
        wire["inputRequests"] = asked
    return wire


@dataclass(frozen=True)
class _TaskHandlers:
    """The handlers of the extension."""

    book: TaskBook

    async def get(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        caller = _required(ctx, params)
        try:
            task = await self.book.get(params.task_id, caller)
        except (Unknown, HandrailError) as error:
            raise _refused(error) from error
        return {"resultType": "complete", **task_wire(task)}

    async def update(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        caller = _required(ctx, params)
        responses = params.input_responses or {}
        answers = {key: answered(response) for key, response in responses.items()}
        try:
            await self.book.answer(params.task_id, answers, caller)
        except (Unknown, HandrailError) as error:
            raise _refused(error) from error
        return {"resultType": "complete"}

    async def cancel(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        caller = _required(ctx, params)
        try:
            await self.book.cancel(params.task_id, caller)
        except (Unknown, HandrailError) as error:
            raise _refused(error) from error
        return {"resultType": "complete"}


def _required(ctx: Context, params: TaskParams) -> SdkCaller:
    """The caller; refused if its Mcp-Name header names another task, or if it hasn't declared the extension."""
    # Proxies route by this header; one that contradicts the body could get past their rules.
    if ctx.request is not None and ctx.request.headers.get("mcp-name") != params.task_id:
        raise MCPError(mt.HEADER_MISMATCH, "the header Mcp-Name must be the task's id")
    caller = SdkCaller(ctx)
    if not caller.wants_tasks:
        raise needs_tasks()
    return caller


def _refused(error: Unknown | HandrailError) -> MCPError:
    if isinstance(error, Unknown):
        return MCPError(mt.INVALID_PARAMS, str(error))
    return MCPError(mt.INTERNAL_ERROR, f"{error}; {error.hint}")  # the extension has no error results of its own


def _dumped(model: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = model.model_dump(by_alias=True, exclude_none=True, mode="json")
    return dumped
