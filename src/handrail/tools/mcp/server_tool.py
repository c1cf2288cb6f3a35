"""A tool of an MCP server: how it is called, what a person must answer first, and how it is undone.

Its spec is in tool_server.py; results are converted to outputs in result.py. Secrets that were given to a server are
removed from everything it sends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handrail.domain.definition.model import Category, Effect
from handrail.domain.definition.tool_pin import Card
from handrail.domain.run.tool_question import PersonReply, ToolQuestion
from handrail.domain.secrets.secret_reference import references_in as secrets_in
from handrail.engine.tool import ToolAsks, ToolCall, ToolFailed, ToolSpec
from handrail.tools.mcp.tool_server import ToolServer
from handrail.tools.mcp.values.result import references_in
from handrail.tools.mcp.values.undo_map import captured, undo_call, undo_of


class ServerTool:
    """One tool of one server, which may not be connected yet."""

    def __init__(self, server: ToolServer, tool: str) -> None:
        self._server = server
        self._tool = tool

    @property
    def spec(self) -> ToolSpec:
        """The spec of the tool; before `ready`, only what tools.json says about it."""
        return self._server.spec(self._tool)

    @property
    def card(self) -> Card | None:
        """The server's description of the tool, which plans are pinned to; None before `ready`."""
        reported = self._server.reported(self._tool)
        return reported.card if reported else None

    async def ready(self) -> None:
        """Make sure that the tool is allowed, the server can be reached, and it has this tool."""
        self._server.require_allowed(self._tool)
        try:
            await self._server.connect()
        except ToolFailed as failed:
            raise self._scrubbed(failed) from None
        self._server.require_reported(self._tool)

    def effect(self, args: Mapping[str, Any]) -> Effect:
        """The effect of a call, the same for all arguments."""
        return self.spec.effect

    def server(self, args: Mapping[str, Any]) -> str:
        """The server's name, for its circuit breaker."""
        return self._server.name

    def misfits(self, args: Mapping[str, Any]) -> Sequence[str]:
        """Errors in the arguments by the tool's schema, as far as they can be known before the call."""
        reported = self._server.reported(self._tool)
        wrong = reported.schema.misfits(args) if reported else []
        # Arguments with references are checked at the call, after the references are filled in.
        return [] if wrong and _stands_for_more(args) else wrong

    async def capture(self, call: ToolCall) -> Any:
        """The current undo rule from tools.json; None if there is none."""
        undo = self._server.rule(self._tool).undo
        return captured(undo, self._server.name, idempotent=self.spec.undo_idempotent) if undo else None

    async def call(self, call: ToolCall) -> Any:
        """The output of a call; ToolFailed, or ToolAsks if the server has a question for a person."""
        await self.ready()
        return await self._call_now(call)

    async def undo(self, call: ToolCall) -> Any:
        """Call the tool that undoes `call`, by the rule that was captured with it."""
        server = self._server
        undo = undo_of(call.capture, server.name)
        if undo is None:
            hint = "give the step an `undo:`, or the tool one in tools.json"
            raise ToolFailed(Category.TOOL_ERROR, f"{self.spec.name} has no undo of its own; {hint}")
        rule = server.rule(self._tool).undo
        if rule is None or rule.tool != undo.tool:  # a rule in tools.json allows the tool for this undo
            server.require_allowed(undo.tool)
        output = await server.results.filled(call.output, call.run)
        made = undo_call(call, undo, server=server.name, output=output)
        try:
            await server.connect()
        except ToolFailed as failed:
            raise self._scrubbed(failed) from None
        server.require_reported(undo.tool)
        return await ServerTool(server, undo.tool)._call_now(made)

    async def _call_now(self, call: ToolCall) -> Any:
        """The output of a call, after the checks."""
        try:
            return await self._output_of(call)
        except ToolFailed as failed:
            raise self._scrubbed(failed) from None

    async def _output_of(self, call: ToolCall) -> Any:
        server = self._server
        # In a thread only if necessary: a keyring can be slow, but most calls have nothing to fill in.
        args = await asyncio.to_thread(server.vault.arguments, call) if call.references else call.args
        args = await server.results.filled(args, call.run)
        reported = server.reported(self._tool)
        if wrong := reported.schema.misfits(args) if reported else []:
            raise ToolFailed(Category.INVALID_INPUT, f"{self.spec.name}: {'; '.join(wrong)}")

        def progress(words: str) -> None:
            call.progress(server.vault.scrubbed(words))

        def ask(question: ToolQuestion) -> PersonReply:
            plain = ToolQuestion(
                text=server.vault.scrubbed(question.text), schema=server.vault.scrubbed(question.schema)
            )
            if (reply := call.answers.get(plain.digest)) is None:
                raise ToolAsks(plain)
            return reply

        result = await server.connection.call(
            self._tool, args, key=call.key, progress=progress, ask=ask, trace=call.trace
        )
        return await server.results.output(result, call)

    def _scrubbed(self, failed: ToolFailed) -> ToolFailed:
        message = self._server.vault.scrubbed(failed.message)
        return ToolFailed(failed.category, message, retry_after_ms=failed.retry_after_ms)


def _stands_for_more(args: Any) -> bool:
    return any(references_in(args)) or any(secrets_in(text) for text in _texts(args))


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for item in value.values():
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)
