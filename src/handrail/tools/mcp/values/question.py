"""Questions of an MCP server to a person: converts the protocol's elicitations to questions, and replies to results.

Pure. The text is untrusted and limited in size; the engine asks the person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import mcp_types as types
import msgspec

from handrail.domain.definition.model import Category
from handrail.domain.run.tool_question import PersonReply, ToolQuestion
from handrail.engine.tool import ToolFailed

TEXT_MAX: Final = 4_000
SCHEMA_BYTES_MAX: Final = 20_000
SCHEMES: Final = ("https://", "http://")


def question_of(params: types.ElicitRequestParams) -> ToolQuestion:
    """The question of the server; ToolFailed if a person can't be asked that."""
    if isinstance(params, types.ElicitRequestURLParams):
        if not params.url.lower().startswith(SCHEMES) or len(params.url) > TEXT_MAX:
            raise ToolFailed(Category.TOOL_ERROR, "asked a person to open a URL that is not a web page")
        return ToolQuestion(text=f"{_cut(params.message)}\n{params.url}")
    schema = params.requested_schema
    if len(msgspec.json.encode(schema)) > SCHEMA_BYTES_MAX:
        raise ToolFailed(Category.TOOL_ERROR, f"asked a question with a form of more than {SCHEMA_BYTES_MAX:,} bytes")
    return ToolQuestion(text=_cut(params.message), schema=schema)


def result_of(reply: PersonReply, *, is_form: bool) -> types.ElicitResult:
    """The reply of the person in the form of the protocol."""
    if not reply.agreed:
        return types.ElicitResult(action="decline")
    if not is_form:
        return types.ElicitResult(action="accept")
    return types.ElicitResult(
        action="accept", content=dict(reply.content) if isinstance(reply.content, Mapping) else {}
    )


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + " …"
