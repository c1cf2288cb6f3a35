"""A tool of a tool server: how it is called, what a person must say first, and how it is undone.

What is known of it is tool_server.py's, how answers become outputs result.py's. What was given to a server as a secret
is taken out of all that it says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handrail.domain.definition import Category, Effect
from handrail.domain.pin import Card
from handrail.domain.question import PersonReply, ToolQuestion
from handrail.domain.reference import references_in as secrets_in
from handrail.engine.tool import ToolAsks, ToolCall, ToolFailed, ToolSpec
from handrail.tools.mcp.result import references_in
from handrail.tools.mcp.tool_server import ToolServer
from handrail.tools.mcp.undo_map import captured, undo_call, undo_of


class ServerTool:
    """One tool of one server; its server may not have been met yet."""

    def __init__(self, server: ToolServer, tool: str) -> None:
        self._server = server
        self._tool = tool

    @property
    def spec(self) -> ToolSpec:
        """What is known of the tool; before `ready`, only what a person says of it."""
        return self._server.spec(self._tool)

    @property
    def card(self) -> Card | None:
        """What a plan is pinned to, as the server tells it; None before `ready`."""
        reported = self._server.reported(self._tool)
        return reported.card if reported else None

    async def ready(self) -> None:
        """Make sure that the server can be reached and has this tool, and that it may be called."""
        self._server.require_allowed(self._tool)
        try:
            await self._server.connect()
        except ToolFailed as failed:
            raise self._scrubbed(failed) from None
        self._server.require_reported(self._tool)

    def effect(self, args: Mapping[str, Any]) -> Effect:
        """What a call does to the world, whatever its arguments."""
        return self.spec.effect

    def server(self, args: Mapping[str, Any]) -> str:
        """The server's name, for its circuit breaker."""
        return self._server.name

    def misfits(self, args: Mapping[str, Any]) -> Sequence[str]:
        """What the tool's schema has against the arguments, as far as that is known before the call."""
        reported = self._server.reported(self._tool)
        wrong = reported.schema.misfits(args) if reported else []
        # What stands for something else is judged by the call, when it is filled in.
        return [] if wrong and _stands_for_more(args) else wrong

    async def capture(self, call: ToolCall) -> Any:
        """The undo of the undo map, as it is today; None if nobody wrote one."""
        undo = self._server.rule(self._tool).undo
        return captured(undo, self._server.name, idempotent=self.spec.undo_idempotent) if undo else None

    async def call(self, call: ToolCall) -> Any:
        """Call it: the output, or ToolFailed, or ToolAsks if the server wants to know something of a person."""
        await self.ready()
        return await self._call_now(call)

    async def undo(self, call: ToolCall) -> Any:
        """Call the tool that takes back what `call` did, by the rule of that time."""
        server = self._server
        undo = undo_of(call.capture, server.name)
        if undo is None:
            hint = "give the step an `undo:`, or the tool one in tools.json"
            raise ToolFailed(Category.TOOL_ERROR, f"{self.spec.name} has no undo of its own; {hint}")
        rule = server.rule(self._tool).undo
        if rule is None or rule.tool != undo.tool:  # else its owner has named it for just this
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
        """The output of a call of a tool that is there and may be called."""
        try:
            return await self._output_of(call)
        except ToolFailed as failed:
            raise self._scrubbed(failed) from None

    async def _output_of(self, call: ToolCall) -> Any:
        server = self._server
        # A keyring may take its time; most calls have nothing to fill in.
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

        result = await server.connection.call(self._tool, args, key=call.key, progress=progress, ask=ask)
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
