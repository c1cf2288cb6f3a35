"""Tools, as whoever runs a plan sees them: what they say of themselves, how they are called, and how they fail.

Protocols and values only. The tools are in tools/; choosing when to call one is the conductor's work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct, field

from handrail.domain.check import Path
from handrail.domain.definition import Category, Effect, Retry
from handrail.domain.pin import Card
from handrail.domain.question import PersonReply, ToolQuestion

Progress: TypeAlias = Callable[[str], None]
"""How a tool says that it is still at work, in a few words; each time its timeout starts anew, up to a bound."""


def silent(_words: str) -> None:
    """Nobody listens."""


OWN: Final = "own"
"""What is said of a tool that takes back by itself what it did."""


NO_ANSWERS: Final[Mapping[str, PersonReply]] = MappingProxyType({})


class CallLimits(Struct, frozen=True, kw_only=True):
    """Bounds on all calls of one server together."""

    name: str
    concurrency: int | None = None
    rate: str | None = None


class ToolSpec(Struct, frozen=True, kw_only=True):
    """What a tool says of itself."""

    name: str
    """`<server>.<tool>`"""
    description: str
    effect: Effect
    """What a call does to the world, at most."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """The JSON Schema of its arguments."""
    output: Any = None
    """The JSON Schema of its output; None if it promises nothing."""
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
    server: str = ""
    """The tool server that it is on; empty for a tool of this process."""
    shared: CallLimits | None = None
    """What its server as a whole allows, over all its tools."""
    undo: str = ""
    """How its effect is taken back without a word of the plan: `own`, or the tool that does it; empty if by nobody."""
    undo_idempotent: bool = True
    """Whether that undo may be repeated when nobody knows whether it has been done."""


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
    output: Any = None
    """For an undo: what the call came to, as far as that is known."""
    references: tuple[Path, ...] = ()
    """Where in the arguments `${secret:NAME}` and `${env:NAME}` stand by an author's hand: only there they are filled
    in. The same words inside a tool's result are data."""
    answers: Mapping[str, PersonReply] = NO_ANSWERS
    """What persons have said to questions of this tool, by the question's digest."""
    progress: Progress = silent


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


class ToolAsks(Exception):
    """A call that can't go on before a person has answered; it is then made again, with the answer in `answers`."""

    def __init__(self, question: ToolQuestion) -> None:
        super().__init__(question.text)
        self.question = question


class PlanTool(Protocol):
    """Something a plan can call."""

    @property
    def spec(self) -> ToolSpec:
        """What the tool says of itself."""
        ...

    @property
    def card(self) -> Card | None:
        """Name, description and schema, as a tool server tells them: what a plan is pinned to; None for our own."""
        ...

    async def ready(self) -> None:
        """Make sure that the tool can be called and has said what it is; ToolFailed says why not, and nothing was
        called."""
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
        """Do it: the output as JSON, or Later; ToolFailed says why not, ToolAsks what a person must say first."""
        ...

    async def undo(self, call: ToolCall) -> Any:
        """Take back what `call` did, by its capture; doing so twice is as good as once."""
        ...


class Toolbox(Protocol):
    """All tools that plans can call."""

    def find(self, name: str) -> PlanTool:
        """The tool of that name; NotFound with the nearest names."""
        ...

    def specs(self) -> Sequence[ToolSpec]:
        """What all tools say of themselves, by name."""
        ...

    async def meet(self, names: Collection[str]) -> Mapping[str, Card]:
        """Learn of the tools of these names, starting servers that were not met yet: what these say of them, by name;
        our own are not among them. Unavailable names a server that can't be reached."""
        ...

    async def forget(self, run: str) -> None:
        """Let go of everything kept for undoing this run: it has ended for good."""
        ...
