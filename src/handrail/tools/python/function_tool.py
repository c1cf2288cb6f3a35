"""A tool made of functions: the class of all built-in tools and of plugins' tools.

Checks arguments against their schema before anything is called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from msgspec.structs import replace

from handrail.domain.definition.model import Category, Effect
from handrail.domain.definition.tool_pin import Card
from handrail.domain.secrets.scrubbing import holds_mark
from handrail.engine.tool import Progress, ToolCall, ToolFailed, ToolSpec
from handrail.tools.arguments import ArgumentSchema
from handrail.tools.vault import Vault

CallHandler: TypeAlias = Callable[[ToolCall], Awaitable[Any]]
Args: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class FunctionTool:
    """The spec of a tool, the function that does the work, and the one that undoes it."""

    spec: ToolSpec
    do: CallHandler
    capture_with: CallHandler | None = None
    """Captures what `undo_with` will need."""
    undo_with: CallHandler | None = None
    effect_of: Callable[[Args], Effect] | None = None
    server_of: Callable[[Args], str] | None = None
    flaws_of: Callable[[Args], Sequence[str]] | None = None
    """Errors in arguments that fit the schema."""
    visible: frozenset[str] = frozenset()
    """Arguments that other users of the machine can see: no secret is filled in there."""
    vault: Vault | None = None
    """Replaces references to secrets in the arguments with their values."""

    @property
    def card(self) -> Card | None:
        """None, because these tools change only with handrail or with installed packages."""
        return None

    async def ready(self) -> None:
        """Always ready: nothing has to be started."""

    def effect(self, args: Args) -> Effect:
        """The effect of a call with these arguments."""
        return self.effect_of(args) if self.effect_of else self.spec.effect

    def server(self, args: Args) -> str:
        """The server that such a call reaches; empty if it stays on this machine."""
        return self.server_of(args) if self.server_of else ""

    def misfits(self, args: Args) -> Sequence[str]:
        """Errors in the arguments."""
        return self._arguments.misfits(args) or (self.flaws_of(args) if self.flaws_of else ())

    async def capture(self, call: ToolCall) -> Any:
        """What the tool's own undo will need; None if it has none. Fails like a call."""
        self._require_fit(call)
        return await self._kept_quiet(self.capture_with, call) if self.capture_with else None

    async def call(self, call: ToolCall) -> Any:
        """Call the function, if the arguments fit."""
        self._require_fit(call)
        return await self._kept_quiet(self.do, call)

    async def undo(self, call: ToolCall) -> Any:
        """Undo a call, using its capture."""
        if self.undo_with is None:
            hint = "give the step an `undo:`"
            raise ToolFailed(Category.TOOL_ERROR, f"{self.spec.name} has no undo of its own; {hint}")
        if holds_mark(call.capture):  # it would restore the mark in place of the value
            hint = "undo it by hand, then record the compensation"
            raise ToolFailed(Category.INVALID_INPUT, f"its undo needs a secret, which handrail does not store; {hint}")
        return await self._kept_quiet(self.undo_with, call)

    async def _kept_quiet(self, handler: CallHandler, call: ToolCall) -> Any:
        """Call the handler with secrets filled in; all known secrets are removed from the result and its progress."""
        vault = self.vault
        if vault is None:
            return await handler(call)
        try:
            if call.references:
                # In a thread: the keyring may have to prompt its user.
                args = await asyncio.to_thread(vault.arguments, call, visible=self.visible)
                call = replace(call, args=args)
                self._require_fit(call)
            if vault.known.scrubber():
                call = replace(call, progress=_quiet(call.progress, vault))
            return vault.scrubbed(await handler(call))
        except ToolFailed as failure:
            words = vault.scrubbed(failure.message)
            raise ToolFailed(failure.category, words, retry_after_ms=failure.retry_after_ms) from None

    @cached_property
    def _arguments(self) -> ArgumentSchema:
        return ArgumentSchema(self.spec.args)

    def _require_fit(self, call: ToolCall) -> None:
        if misfits := self.misfits(call.args):
            raise ToolFailed(Category.INVALID_INPUT, f"{self.spec.name}: {'; '.join(misfits)}")


def _quiet(progress: Progress, vault: Vault) -> Progress:
    return lambda words: progress(vault.scrubbed(words))
