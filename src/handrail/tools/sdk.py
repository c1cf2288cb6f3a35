"""The SDK for writing tools in Python: a tool is a function with type hints and a declared effect.

    from handrail.tools.sdk import tool

    @tool("greet.hello", effect="none")
    def hello(name: str) -> str:
        '''Greet somebody.'''
        return f"Hello, {name}!"

A package provides its tools through the entry point group `handrail.tools`. python_tool.py calls the functions,
plugin.py finds packages. The guide: docs/guides/writing-a-tool.md."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import msgspec
from msgspec.structs import asdict

from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.model import Category, Effect, Retry
from handrail.engine.tool import Later, ToolFailed, ToolSpec
from handrail.foundation.call_signature import CallSignature
from handrail.tools.configuration import RetryChoice
from handrail.tools.python.signature import ToolContext, arguments_schema, signature_of

__all__ = ["Later", "PythonTool", "ToolContext", "ToolFailed", "fail", "later", "tool"]

NAME: Final = re.compile(r"[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*")
CAPTURED: Final = "captured"
"""The parameter of an undo that gets the captured value."""

Function: TypeAlias = Callable[..., Any]
Decorated = TypeVar("Decorated", bound=Function)


class PythonTool:
    """A function that plans can call. It can still be called as a function."""

    def __init__(self, function: Function, spec: ToolSpec, signature: CallSignature) -> None:
        self.function = function
        self.spec = spec
        self.signature = signature
        self.captures: tuple[Function, CallSignature] | None = None
        self.undoes: tuple[Function, CallSignature] | None = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function itself."""
        return self.function(*args, **named)

    def capture(self, function: Decorated) -> Decorated:
        """Register a function that captures, before the call, what the undo will need; small, and JSON.

        It takes those of the tool's arguments that it needs, by name."""
        self.captures = (function, self._part(function))
        return function

    def undo(self, function: Decorated) -> Decorated:
        """Register the tool's own undo; calling it twice must have the same result as once.

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
    """Make a function a tool; `effect` is the strongest effect that a call can have.

    `idempotent`: a call that is repeated with the same key has its effect only once. `instant`: it never waits for
    anything outside of this process, and runs on the event loop. The first line of the docstring describes the tool."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a tool name; write <server>.<tool> in small letters, as in greet.hello")
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
    """Fail with a category that retry policies use: transient, rate_limited, not_found, conflict and so on."""
    pause_ms = None if retry_after is None else duration_ms(retry_after)
    raise ToolFailed(Category(category), message, retry_after_ms=pause_ms)


def later(delay: str) -> Later:
    """A result that asks to be called again after a delay; the wait survives a restart of handrail."""
    return Later(duration_ms(delay))
