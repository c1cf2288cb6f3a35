"""A tool made of functions: what every built-in tool and every plugin's tool is.

Here arguments are held against their schema before anything happens. What the functions do is told where they are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from msgspec.structs import replace

from handrail.domain.definition import Category, Effect
from handrail.domain.pin import Card
from handrail.engine.tool import ToolCall, ToolFailed, ToolSpec
from handrail.tools.arguments import ArgumentSchema
from handrail.tools.vault import Vault

CallHandler: TypeAlias = Callable[[ToolCall], Awaitable[Any]]
Args: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class FunctionTool:
    """What the tool says of itself, what it does, and how it takes that back."""

    spec: ToolSpec
    do: CallHandler
    capture_with: CallHandler | None = None
    """Finds what `take_back` will need."""
    undo_with: CallHandler | None = None
    effect_of: Callable[[Args], Effect] | None = None
    server_of: Callable[[Args], str] | None = None
    flaws_of: Callable[[Args], Sequence[str]] | None = None
    """What is wrong with arguments that fit the schema."""
    vault: Vault | None = None
    """Fills in what stands for secrets in the arguments."""

    @property
    def card(self) -> Card | None:
        """Nothing to pin: these tools change with handrail, or with what is installed."""
        return None

    async def ready(self) -> None:
        """Always: nothing has to be started."""

    def effect(self, args: Args) -> Effect:
        """What a call with these arguments does to the world."""
        return self.effect_of(args) if self.effect_of else self.spec.effect

    def server(self, args: Args) -> str:
        """Which server such a call reaches; empty if it stays on this machine."""
        return self.server_of(args) if self.server_of else ""

    def misfits(self, args: Args) -> Sequence[str]:
        """What is wrong with the arguments."""
        return self._arguments.misfits(args) or (self.flaws_of(args) if self.flaws_of else ())

    async def capture(self, call: ToolCall) -> Any:
        """What the tool's own undo will need; None if it brings none. Fails as a call does."""
        self._require_fit(call)
        return await self._kept_quiet(self.capture_with, call) if self.capture_with else None

    async def call(self, call: ToolCall) -> Any:
        """Do it, if the arguments fit."""
        self._require_fit(call)
        return await self._kept_quiet(self.do, call)

    async def undo(self, call: ToolCall) -> Any:
        """Take back what was done, by its capture."""
        if self.undo_with is None:
            hint = "give the step an `undo:`"
            raise ToolFailed(Category.TOOL_ERROR, f"{self.spec.name} brings no undo of its own; {hint}")
        return await self._kept_quiet(self.undo_with, call)

    async def _kept_quiet(self, handler: CallHandler, call: ToolCall) -> Any:
        """Do it with its secrets filled in; what comes of it has none of them, nor of those given to others before."""
        vault = self.vault
        if vault is None:
            return await handler(call)
        try:
            if call.references:
                # In a thread: the keyring may have to ask its person.
                call = replace(call, args=await asyncio.to_thread(vault.arguments, call))
                self._require_fit(call)
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
