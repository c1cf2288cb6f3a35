"""Faults: exceptions of the SDK, the protocol and the network, as failures of a call with the right category.

Pure. The engine decides about retries; a tool's own `isError` is handled in result.py."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import anyio
import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed

MESSAGE_MAX: Final = 2_000
FAULTS: Final = (
    MCPError,
    RuntimeError,  # raised by the SDK for a response that does not fit
    ValueError,  # includes pydantic's errors
    OSError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    BaseExceptionGroup,
)
"""Exceptions of the SDK for a call or a start that failed."""

CLOSED_WORDS: Final = ("Connection closed", "SSE stream ended")
"""Messages of the SDK. The error code is not enough: servers use the same one for any internal error."""
BY_CODE: Final[Mapping[int, Category]] = {
    types.INVALID_PARAMS: Category.INVALID_INPUT,
    types.METHOD_NOT_FOUND: Category.NOT_FOUND,
    types.REQUEST_TIMEOUT: Category.TIMEOUT,
}
BY_STATUS: Final[Mapping[int, Category]] = {
    HTTPStatus.UNAUTHORIZED: Category.PERMISSION,
    HTTPStatus.FORBIDDEN: Category.PERMISSION,
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: Category.PERMISSION,
    HTTPStatus.NOT_FOUND: Category.NOT_FOUND,
    HTTPStatus.GONE: Category.NOT_FOUND,
    HTTPStatus.REQUEST_TIMEOUT: Category.TIMEOUT,
    HTTPStatus.GATEWAY_TIMEOUT: Category.TIMEOUT,
    HTTPStatus.CONFLICT: Category.CONFLICT,
    HTTPStatus.PRECONDITION_FAILED: Category.CONFLICT,
    HTTPStatus.TOO_MANY_REQUESTS: Category.RATE_LIMITED,
}


def failure(error: BaseException) -> ToolFailed:
    """An exception as a failure; exception groups are unwrapped."""
    error = unwrapped(error)
    match error:
        case ToolFailed():
            return error
        case MCPError():
            return ToolFailed(_category(error), _cut(error.message))
        case ValidationError():
            return ToolFailed(Category.TOOL_ERROR, f"sent an invalid response: {_misfit(error)}")
        case TimeoutError():
            return ToolFailed(Category.TIMEOUT, "did not answer in time")
        case OSError() | anyio.BrokenResourceError() | anyio.ClosedResourceError() | anyio.EndOfStream():
            return ToolFailed(Category.TRANSIENT, _cut(str(error) or "the connection was closed"))
        case _:
            return ToolFailed(Category.TOOL_ERROR, _cut(str(error) or type(error).__name__))


def unwrapped(error: BaseException) -> BaseException:
    """The first real error inside of exception groups; preferably one with a category."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    inner = [unwrapped(part) for part in error.exceptions]
    return next((part for part in inner if isinstance(part, ToolFailed | MCPError)), inner[0])


def is_closed(error: BaseException) -> bool:
    """Whether an error means that the connection was closed during a call."""
    error = unwrapped(error)
    if isinstance(error, MCPError):
        return error.code == types.CONNECTION_CLOSED and error.message.startswith(CLOSED_WORDS)
    return isinstance(error, anyio.BrokenResourceError | anyio.ClosedResourceError | anyio.EndOfStream)


def by_status(status: int) -> Category:
    """The failure category of an HTTP status."""
    if status in BY_STATUS:
        return BY_STATUS[HTTPStatus(status)]
    return Category.TRANSIENT if status >= HTTPStatus.INTERNAL_SERVER_ERROR else Category.INVALID_INPUT


def _category(error: MCPError) -> Category:
    if is_closed(error):
        return Category.TRANSIENT
    return BY_CODE.get(error.code, Category.TOOL_ERROR)


def _misfit(error: ValidationError) -> str:
    """The first validation error, without the value: it may be large, or a secret."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return _cut(f"{'.'.join(map(str, first['loc'][-5:]))}: {first['msg']}")


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_MAX else text[:MESSAGE_MAX] + " …"
