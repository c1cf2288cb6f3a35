"""The caller as the SDK knows it: its name, what its client can do, and how its person is asked in either era.

Part of the shell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import mcp_types as mt
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from handrail.interfaces.mcp.surface.caller import AskFirst, Response, UserAnswer, UserQuestion

NAME_LENGTH_MAX: Final = 60
ANONYMOUS: Final = "agent:unknown"
TASKS: Final = "io.modelcontextprotocol/tasks"
"""The extension of calls that go on after their answer."""

_odd = re.compile(r"[^A-Za-z0-9._-]+")


class SdkCaller:
    """Whoever sent the request at hand."""

    def __init__(
        self,
        ctx: ServerRequestContext[Any, Any],
        responses: Mapping[str, Any] | None = None,
        state: str | None = None,
    ) -> None:
        self.ctx = ctx
        self._responses = responses or {}
        self._state = state

    @property
    def actor(self) -> str:
        """The client's name, in letters that every reader can read."""
        client = self.ctx.session.client_params
        name = _odd.sub("-", client.client_info.name).strip("-")[:NAME_LENGTH_MAX] if client else ""
        return f"agent:{name}" if name else ANONYMOUS

    @property
    def is_modern(self) -> bool:
        """Whether each request stands alone, so that a question is an answer to come back with."""
        return self.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def can_ask(self) -> bool:
        """Whether the client shows forms to its person."""
        capabilities = self.ctx.session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            return False
        asks = capabilities.elicitation
        return asks.form is not None or asks.url is None  # one that names neither has forms: the first kind there was

    @property
    def wants_tasks(self) -> bool:
        """Whether the client has declared the tasks extension."""
        capabilities = self.ctx.session.client_capabilities
        return bool(capabilities and capabilities.extensions and TASKS in capabilities.extensions)

    async def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Tell how far the call is."""
        await self.ctx.session.report_progress(done, total, text or None)

    async def ask(self, key: str, question: UserQuestion, *, about: str) -> UserAnswer:
        """Ask the person: at once in the handshake era, by coming back in the modern one."""
        if not self.is_modern:
            schema = _schema(question)
            answer = await self.ctx.session.elicit_form(question.text, schema, self.ctx.request_id)
            return answered(answer)
        response = self._responses.get(key)
        if response is None or self._state != about:
            raise AskFirst(key, question, about=about)
        return answered(response)


def answered(result: Any) -> UserAnswer:
    """What a person answered, from whatever the client sent back; an answer of another kind is a cancel."""
    if isinstance(result, Mapping):
        action, content = result.get("action"), result.get("content")
    else:
        action, content = getattr(result, "action", None), getattr(result, "content", None)
    known = {response.value: response for response in Response}
    given = content if isinstance(content, Mapping) else {}
    return UserAnswer(response=known.get(str(action), Response.CANCEL), content=given)


def elicitation(question: UserQuestion) -> mt.ElicitRequest:
    """A question in the protocol's words."""
    return mt.ElicitRequest(
        params=mt.ElicitRequestFormParams(message=question.text, requested_schema=_schema(question))
    )


def _schema(question: UserQuestion) -> dict[str, Any]:
    properties = {name: dict(field) for name, field in question.form.items()}
    return {"type": "object", "properties": properties, "required": list(question.required)}
