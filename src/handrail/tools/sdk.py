"""The kit for writing tools in Python: a function with type hints, and what it promises.

    from handrail.tools.sdk import tool

    @tool("greet.hello", effect="none")
    def hello(name: str) -> str:
        '''Greet somebody.'''
        return f"Hello, {name}!"

A package offers its tools by the entry point group `handrail.tools`. How a function becomes a tool is python_tool.py's
work, finding packages is plugin.py's. The guide: docs/guides/writing-a-tool.md."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import msgspec
from msgspec.structs import asdict

from handrail.domain.definition import Category, Effect, Retry
from handrail.domain.duration import duration_ms
from handrail.engine.tool import Later, ToolFailed, ToolSpec
from handrail.foundation.call_signature import CallSignature
from handrail.tools.configuration import RetryChoice
from handrail.tools.signature import ToolContext, arguments_schema, signature_of

__all__ = ["Later", "PythonTool", "ToolContext", "ToolFailed", "fail", "later", "tool"]

NAME: Final = re.compile(r"[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*")
CAPTURED: Final = "captured"
"""The parameter of an undo that gets what the capture found."""

Function: TypeAlias = Callable[..., Any]
Decorated = TypeVar("Decorated", bound=Function)


class PythonTool:
    """A function that plans can call. Called as a function, it still is one."""

    def __init__(self, function: Function, spec: ToolSpec, signature: CallSignature) -> None:
        self.function = function
        self.spec = spec
        self.signature = signature
        self.captures: tuple[Function, CallSignature] | None = None
        self.undoes: tuple[Function, CallSignature] | None = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        """What the function itself would return."""
        return self.function(*args, **named)

    def capture(self, function: Decorated) -> Decorated:
        """Give the tool a function that finds, before the call, what its undo will need; small, and JSON.

        It takes those of the tool's arguments that it needs, by name."""
        self.captures = (function, self._part(function))
        return function

    def undo(self, function: Decorated) -> Decorated:
        """Give the tool its own undo: doing it twice must be as good as once.

        It takes those of the tool's arguments that it needs, by name, and `captured`."""
        self.undoes = (function, self._part(function, besides=(CAPTURED,)))
        return function

    def _part(self, function: Function, *, besides: tuple[str, ...] = ()) -> CallSignature:
        found = signature_of(function, besides=besides)
        if strange := sorted(found.names - self.signature.names):
            known = ", ".join(sorted(self.signature.names)) or "none"
            raise TypeError(f"{self.spec.name} has no argument `{strange[0]}`; it has: {known}")
        return found


def tool(
    name: str,
    *,
    effect: str,
    idempotent: bool = False,
    instant: bool = False,
    timeout: str | None = None,
    retry: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    rate: str | None = None,
) -> Callable[[Function], PythonTool]:
    """Make a tool of a function; `effect` says what a call does to the world, at most.

    `idempotent`: a call that is repeated under the same key has its effect once. `instant`: it never waits for
    anything outside this process, and is called right on the event loop. The docstring's first line describes it."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a tool; write <server>.<tool> in small letters, as in greet.hello")
    if timeout is not None:
        duration_ms(timeout)

    def made(function: Function) -> PythonTool:
        signature = signature_of(function)
        spec = ToolSpec(
            name=name,
            description=(inspect.getdoc(function) or name).splitlines()[0],
            effect=Effect(effect),
            args=arguments_schema(signature),
            idempotent=idempotent,
            is_instant=instant,
            timeout=timeout,
            retry=None if retry is None else Retry(**asdict(msgspec.convert(retry, RetryChoice))),
            concurrency=concurrency,
            rate=rate,
        )
        return PythonTool(function, spec, signature)

    return made


def fail(category: str, message: str, *, retry_after: str | None = None) -> NoReturn:
    """Fail in a category that retry policies know: transient, rate_limited, not_found, conflict and so on."""
    pause_ms = None if retry_after is None else duration_ms(retry_after)
    raise ToolFailed(Category(category), message, retry_after_ms=pause_ms)


def later(delay: str) -> Later:
    """An answer that asks to be called again after a while; handrail waits, and survives meanwhile."""
    return Later(duration_ms(delay))
