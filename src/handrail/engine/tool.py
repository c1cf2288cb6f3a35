"""The protocol of tools: their description, how they are called, and how they fail.

Protocols and values only. The tools are in tools/; conductor.py decides when to call one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct, field

from handrail.domain.checks.finding import Path
from handrail.domain.definition.model import Category, Effect, Retry
from handrail.domain.definition.tool_pin import Card
from handrail.domain.run.tool_question import PersonReply, ToolQuestion

Progress: TypeAlias = Callable[[str], None]
"""Reports progress in a few words; each report restarts the tool's timeout, up to a limit."""


def silent(_words: str) -> None:
    """Ignore progress."""


OWN: Final = "own"
"""The `undo` of a tool that undoes its own effect."""


NO_ANSWERS: Final[Mapping[str, PersonReply]] = MappingProxyType({})
NO_TRACE: Final[Mapping[str, str]] = MappingProxyType({})


class CallLimits(Struct, frozen=True, kw_only=True):
    """Limits on calls of one tool, or of all tools of a server together."""

    name: str
    concurrency: int | None = None
    rate: str | None = None


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool's description of itself."""

    name: str
    """`<server>.<tool>`"""
    description: str
    effect: Effect
    """The greatest effect that a call can have."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """The JSON Schema of its arguments."""
    output: Any = None
    """The JSON Schema of its output; None if it promises nothing."""
    idempotent: bool = False
    """Whether a call that is repeated under the same key has its effect only once."""
    is_instant: bool = False
    """Whether a call never waits for anything outside this process."""
    retry: Retry | None = None
    """Its retry policy: configuration wins over the tool's own, then its server's; a step's own wins over all."""
    timeout: str | None = None
    concurrency: int | None = None
    """How many calls may run at once."""
    rate: str | None = None
    """How many calls may start per unit of time: `10/s`, `100/m`."""
    server: str = ""
    """Its tool server; empty for a tool of this process."""
    shared: CallLimits | None = None
    """The limits of its server, over all its tools."""
    runs_on: tuple[str, ...] = ()
    """Which labels a node needs to call it."""
    is_command: bool = False
    """Whether it runs a program in the sandbox, which not every machine has or allows."""
    undo: str = ""
    """How its effect is undone if the plan does not say: `own`, or another tool; empty if it is not."""
    undo_idempotent: bool = True
    """Whether that undo may be repeated when its outcome is unknown."""


class ToolCall(Struct, frozen=True, kw_only=True):
    """One call, by an attempt of a step or of its undo."""

    tool: str
    args: Mapping[str, Any]
    key: str
    """The idempotency key: the same for all attempts and after restarts; an undo has its own."""
    run: str
    step: str
    attempt: int = 1
    capture: Any = None
    """What `capture` returned before the first attempt."""
    deferred: int = 0
    """How often the tool has asked to be called again later."""
    output: Any = None
    """For an undo: the result of the call, if it is known."""
    references: tuple[Path, ...] = ()
    """Where in the arguments an author wrote `${secret:NAME}` or `${env:NAME}`: only there they are filled in. The
    same text in a tool's result is data."""
    answers: Mapping[str, PersonReply] = NO_ANSWERS
    """What people answered to this tool's questions, by the question's digest."""
    trace: Mapping[str, str] = NO_TRACE
    """The trace context that goes along: in `_meta` of an MCP request, or in headers."""
    progress: Progress = silent


class Later(Struct, frozen=True):
    """A tool's request to be called again after a while; the wait is journaled and survives a restart."""

    delay_ms: int


class ToolFailed(Exception):
    """A call that failed, with the one category that retry policies look at."""

    def __init__(self, category: Category, message: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.category = category
        self.message = message
        self.retry_after_ms = retry_after_ms
        """How long the server asked to wait."""


class ToolAsks(Exception):
    """A call that can't go on before a person has answered; it is then made again, with the answer in `answers`."""

    def __init__(self, question: ToolQuestion) -> None:
        super().__init__(question.text)
        self.question = question


class PlanTool(Protocol):
    """Something a plan can call."""

    @property
    def spec(self) -> ToolSpec:
        """The tool's description of itself."""
        ...

    @property
    def card(self) -> Card | None:
        """Name, description and schema from a tool server: what a plan is pinned to; None for built-in tools."""
        ...

    async def ready(self) -> None:
        """Make sure that the tool can be called and its description is known, without calling it; else ToolFailed."""
        ...

    def effect(self, args: Mapping[str, Any]) -> Effect:
        """The effect of a call with these arguments."""
        ...

    def server(self, args: Mapping[str, Any]) -> str:
        """Which server such a call reaches, for its circuit breaker; empty for calls within this machine."""
        ...

    def misfits(self, args: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with the arguments, as messages; nothing is called."""
        ...

    async def capture(self, call: ToolCall) -> Any:
        """What the tool's own undo will need, read before the effect; None if it has no undo of its own.

        It is journaled with the attempt: small, JSON, and without the contents of files."""
        ...

    async def call(self, call: ToolCall) -> Any:
        """Do it: the output as JSON, or Later; ToolFailed says why not, ToolAsks what a person must answer first."""
        ...

    async def undo(self, call: ToolCall) -> Any:
        """Undo what `call` did, using its capture; repeating it has no further effect."""
        ...


class Toolbox(Protocol):
    """All tools that plans can call."""

    def find(self, name: str) -> PlanTool:
        """The tool of that name; NotFound with the nearest names."""
        ...

    def specs(self) -> Sequence[ToolSpec]:
        """The descriptions of all tools, by name."""
        ...

    async def connect(self, names: Collection[str]) -> Mapping[str, Card]:
        """Look up these tools, starting their servers if needed: their servers' descriptions, by name, without built-in
        tools. Unavailable names a server that can't be reached."""
        ...

    async def forget(self, run: str) -> None:
        """Delete everything stored for undoing this run: it has ended permanently."""
        ...
