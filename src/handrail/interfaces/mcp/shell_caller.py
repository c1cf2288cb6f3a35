"""The caller of a request, from the SDK's context: its name, its client's capabilities, and how to ask its user.

Part of the shell. "Modern" is the protocol without a session, "handshake" the one that starts with `initialize`."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

import mcp_types as mt
from mcp.server.apps import EXTENSION_ID, client_supports_apps
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from handrail.domain.errors import Forbidden
from handrail.interfaces.mcp.surface.caller import AskFirst, Response, UserAnswer, UserQuestion

NAME_LENGTH_MAX: Final = 60
ANONYMOUS: Final = "agent:unknown"
APPS: Final = EXTENSION_ID
"""The protocol extension for pages in the client's window."""
TASKS: Final = "io.modelcontextprotocol/tasks"
"""The protocol extension for calls that continue after their answer."""

log = logging.getLogger(__name__)
_unsafe = re.compile(r"[^A-Za-z0-9._-]+")


class SdkCaller:
    """The sender of the current request."""

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
        """The client's name, reduced to safe characters: it is written to the journal and to logs."""
        client = self.ctx.session.client_params
        name = _unsafe.sub("-", client.client_info.name).strip("-")[:NAME_LENGTH_MAX] if client else ""
        return f"agent:{name}" if name else ANONYMOUS

    @property
    def is_modern(self) -> bool:
        """Whether requests are stateless: a question is then returned as an answer, and the client calls again."""
        return self.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def can_ask(self) -> bool:
        """Whether the client can show forms to its user."""
        capabilities = self.ctx.session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            return False
        asks = capabilities.elicitation
        return asks.form is not None or asks.url is None  # naming neither means forms: older versions had only those

    @property
    def wants_tasks(self) -> bool:
        """Whether the client has declared the tasks extension."""
        capabilities = self.ctx.session.client_capabilities
        return bool(capabilities and capabilities.extensions and TASKS in capabilities.extensions)

    @property
    def shows_apps(self) -> bool:
        """Whether the client has declared MCP Apps, with pages in HTML."""
        return client_supports_apps(self.ctx)

    async def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report how far the call has come."""
        await self.ctx.session.report_progress(done, total, text or None)

    async def ask(self, key: str, question: UserQuestion, *, about: str) -> UserAnswer:
        """Ask the user: directly in the handshake era; in the modern one by AskFirst, until the answer comes along."""
        if not self.is_modern:
            return answered(await self._elicit(question))
        response = self._responses.get(key)
        if response is None or self._state != about:  # an answer to another question doesn't count
            raise AskFirst(key, question, about=about)
        return answered(response)

    async def _elicit(self, question: UserQuestion) -> mt.ElicitResult:
        try:
            return await self.ctx.session.elicit_form(question.text, _schema(question), self.ctx.request_id)
        except (MCPError, ValidationError) as error:  # what the client sent is an error, or no answer to a form
            log.info("a client could not ask its user: %s", type(error).__name__)
            hint = "a person can answer at a terminal: `handrail approvals`"
            raise Forbidden(
                "the user was not asked: the client answered the question with an error", hint=hint
            ) from error


def answered(result: Any) -> UserAnswer:
    """The user's answer, from what the client sent back; anything unknown counts as cancel."""
    if isinstance(result, Mapping):
        action, content = result.get("action"), result.get("content")
    else:
        action, content = getattr(result, "action", None), getattr(result, "content", None)
    known = {response.value: response for response in Response}
    given = content if isinstance(content, Mapping) else {}
    return UserAnswer(response=known.get(str(action), Response.CANCEL), content=given)


def elicitation(question: UserQuestion) -> mt.ElicitRequest:
    """A question as a protocol request."""
    return mt.ElicitRequest(
        params=mt.ElicitRequestFormParams(message=question.text, requested_schema=_schema(question))
    )


def _schema(question: UserQuestion) -> dict[str, Any]:
    properties = {name: dict(field) for name, field in question.form.items()}
    return {"type": "object", "properties": properties, "required": list(question.required)}
