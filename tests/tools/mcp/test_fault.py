"""Each fault of the SDK, the protocol and the wire has one category."""

from __future__ import annotations

import anyio
import pytest
from mcp import MCPError
from pydantic import TypeAdapter, ValidationError

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed
from handrail.tools.mcp.fault import by_status, failure, is_closed


def misfit() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(dict[str, int]).validate_python({"a": "a secret"})
    return caught.value


@pytest.mark.parametrize(
    ("error", "category", "words"),
    [
        (MCPError(-32602, "bad argument"), Category.INVALID_INPUT, "bad argument"),
        (MCPError(-32601, "no such tool"), Category.NOT_FOUND, "no such tool"),
        (MCPError(-32000, "Connection closed"), Category.TRANSIENT, "Connection closed"),
        (MCPError(-32000, "a server's own trouble"), Category.TOOL_ERROR, "own trouble"),
        (MCPError(-32001, "took too long"), Category.TIMEOUT, "took too long"),
        (MCPError(-1, "else"), Category.TOOL_ERROR, "else"),
        (TimeoutError(), Category.TIMEOUT, "in time"),
        (misfit(), Category.TOOL_ERROR, "a: Input should be a valid integer"),
        (ConnectionResetError(104, "reset"), Category.TRANSIENT, "reset"),
        (anyio.ClosedResourceError(), Category.TRANSIENT, "closed"),
        (RuntimeError("Unsupported protocol version"), Category.TOOL_ERROR, "Unsupported"),
        (RuntimeError(), Category.TOOL_ERROR, "RuntimeError"),
        (ToolFailed(Category.PERMISSION, "as it is"), Category.PERMISSION, "as it is"),
        (
            ExceptionGroup("", [OSError("x"), ExceptionGroup("", [MCPError(-32602, "in")])]),
            Category.INVALID_INPUT,
            "in",
        ),
        (ExceptionGroup("", [OSError("first"), ValueError("second")]), Category.TRANSIENT, "first"),
    ],
)
def test_a_fault_has_its_category(error: Exception, category: Category, words: str) -> None:
    failed = failure(error)
    assert failed.category is category
    assert words in failed.message
    assert "a secret" not in failed.message


def test_only_the_end_of_the_connection_counts_as_closed() -> None:
    assert is_closed(MCPError(-32000, "Connection closed"))
    assert is_closed(ExceptionGroup("", [anyio.BrokenResourceError()]))
    assert not is_closed(MCPError(-32000, "out of cheese"))
    assert not is_closed(ValueError())


@pytest.mark.parametrize(
    ("status", "category"),
    [
        (400, Category.INVALID_INPUT),
        (401, Category.PERMISSION),
        (404, Category.NOT_FOUND),
        (412, Category.CONFLICT),
        (429, Category.RATE_LIMITED),
        (500, Category.TRANSIENT),
        (504, Category.TIMEOUT),
        (599, Category.TRANSIENT),
    ],
)
def test_a_status_has_its_category(status: int, category: Category) -> None:
    assert by_status(status) is category
