"""Tools, as whoever runs a plan sees them: what they say of themselves, how they are called, and how they fail.

Protocols and values only. The tools are in tools/; choosing when to call one is the conductor's work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct, field

from handrail.domain.definition import Category, Effect, Retry

Progress: TypeAlias = Callable[[str], None]
"""How a tool says that it is still at work, in a few words; each time its timeout starts anew, up to a bound."""


def _silent(_words: str) -> None:
    """Nobody listens."""


class ToolSpec(Struct, frozen=True, kw_only=True):
    """What a tool says of itself."""

    name: str
    """`<server>.<tool>`"""
    description: str
    effect: Effect
    """What a call does to the world, at most."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """The JSON Schema of its arguments."""
    idempotent: bool = False
    """Whether a call that is repeated under the same key has its effect once."""
    is_instant: bool = False
    """Whether a call never waits for anything outside this process."""
    retry: Retry | None = None
    """Its own retry policy: configuration over the tool's word over its server's; a step's own wins over it."""
    timeout: str | None = None
    concurrency: int | None = None
    """How many calls may be under way at once."""
    rate: str | None = None
    """How many calls may begin in a time: `10/s`, `100/m`."""


class ToolCall(Struct, frozen=True, kw_only=True):
    """One call, by an attempt of a step or of its undo."""

    tool: str
    args: Mapping[str, Any]
    key: str
    """The idempotency key: the same over all attempts and restarts; an undo has its own."""
    run: str
    step: str
    attempt: int = 1
    capture: Any = None
    """What `capture` found before the first attempt."""
    deferred: int = 0
    """How often the tool has asked to be called again later."""
    progress: Progress = _silent


class Later(Struct, frozen=True):
    """An answer of a tool that wants to be called again after a while; handrail waits, and survives meanwhile."""

    delay_ms: int


class ToolFailed(Exception):
    """A call that failed, with the one category that retry policies look at."""

    def __init__(self, category: Category, message: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.category = category
        self.message = message
        self.retry_after_ms = retry_after_ms
        """How long the other side asked to be left alone."""


class Tool(Protocol):
    """Something a plan can call."""

    @property
    def spec(self) -> ToolSpec:
        """What the tool says of itself."""
        ...

    def effect(self, args: Mapping[str, Any]) -> Effect:
        """What a call with these arguments does to the world."""
        ...

    def server(self, args: Mapping[str, Any]) -> str:
        """Which server such a call reaches, for its circuit breaker; empty if it stays on this machine."""
        ...

    def misfits(self, args: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with the arguments, in words; nothing has been called."""
        ...

    async def capture(self, call: ToolCall) -> Any:
        """What the tool's own undo will need, looked up before the effect; None if it brings no undo of its own.

        It is journaled with the attempt: small, JSON, and without the contents of files."""
        ...

    async def call(self, call: ToolCall) -> Any:
        """Do it: the output as JSON, or Later; ToolFailed says why not."""
        ...

    async def undo(self, call: ToolCall) -> Any:
        """Take back what `call` did, by its capture; doing so twice is as good as once."""
        ...


class Toolbox(Protocol):
    """All tools that plans can call."""

    def find(self, name: str) -> Tool:
        """The tool of that name; NotFound with the nearest names."""
        ...

    def specs(self) -> Sequence[ToolSpec]:
        """What all tools say of themselves, by name."""
        ...

    async def forget(self, run: str) -> None:
        """Let go of everything kept for undoing this run: it has ended for good."""
        ...
