"""Checks structured results against the output schema of their tool.

The SDK would use patterns that a server can make run forever; here they are limited and have no network access. A
schema that can't be read, or would take too long, is not checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed
from handrail.tools.mcp.values.listing import ListedTool
from handrail.tools.mcp.values.schema_cost import is_affordable

if TYPE_CHECKING:
    import mcp_types as types
    from jsonschema_rs import ValidationError, Validator

PATTERN_BYTES_MAX: Final = 1_000_000
BACKTRACK_MAX: Final = 10_000
"""Common libraries generate patterns with lookahead, so backtracking is allowed up to this limit."""
WORDS_MAX: Final = 500


class OutputSchemas:
    """The output schemas of one listing, each compiled when it is first needed."""

    def __init__(self, tools: Iterable[ListedTool]) -> None:
        self._schemas = {tool.name: tool.output_schema for tool in tools if tool.output_schema is not None}
        self._validators: dict[str, Validator | None] = {}

    def check(self, tool: str, result: types.CallToolResult) -> None:
        """Refuse a result that does not fit its tool's output schema; error results are not checked."""
        if tool not in self._schemas or result.is_error:
            return
        if result.structured_content is None:
            raise ToolFailed(Category.TOOL_ERROR, "declares an output schema, but answered without a structured result")
        error = self._misfit(tool, result.structured_content)
        if error is not None:
            place = ".".join(str(part) for part in error.instance_path) or "the result"
            message = (
                f"answered with a result that does not fit its output schema: {place}: {error.message[:WORDS_MAX]}"
            )
            raise ToolFailed(Category.TOOL_ERROR, message)

    def _misfit(self, tool: str, content: Any) -> ValidationError | None:
        try:
            # Encoded for its size; a value nested too deeply fails here instead of overflowing the validator's stack.
            size = len(msgspec.json.encode(content))
        except (ValueError, RecursionError, TypeError) as broken:
            message = f"its result can't be checked against its output schema: {str(broken)[:WORDS_MAX]}"
            raise ToolFailed(Category.TOOL_ERROR, message) from None
        validator = self._validator(tool) if is_affordable(self._schemas[tool], size) else None
        return next(iter(validator.iter_errors(content)), None) if validator else None

    def _validator(self, tool: str) -> Validator | None:
        """The validator; None if the schema can't be used: the tool's effect has happened anyway."""
        # Imported late: 25 ms that only tools with an output schema need.
        from jsonschema_rs import FancyRegexOptions, ReferencingError, validator_for

        if tool not in self._validators:
            options = FancyRegexOptions(backtrack_limit=BACKTRACK_MAX, size_limit=PATTERN_BYTES_MAX)
            try:
                self._validators[tool] = validator_for(
                    self._schemas[tool], pattern_options=options, offline=True, mask="the value"
                )
            except (ValueError, ReferencingError):
                self._validators[tool] = None
        return self._validators[tool]
