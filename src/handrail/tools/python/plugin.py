"""Plugins: tools that installed packages provide through the entry point group `handrail.tools`.

An entry point refers to one tool made with sdk.py, or to several. One that can't be used does not affect the others: it
is listed with its error."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from handrail.foundation.strangers_code import StrangersFailure, strangers
from handrail.tools.python.function_tool import FunctionTool
from handrail.tools.python.python_tool import built, error_line
from handrail.tools.sdk import PythonTool

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "handrail.tools"
TOOLS_MAX: Final = 1_000


class Plugins(Struct, frozen=True):
    """The tools of installed packages."""

    tools: Mapping[str, FunctionTool] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)
    """Entry points, or tools of them, that can't be used, each with the reason."""


def discover(reserved: Collection[str]) -> Plugins:
    """All tools of installed packages; none may take a reserved name."""
    # Imported late: searching all installed packages takes 70 ms, and most plans only call built-in tools.
    from importlib.metadata import entry_points

    tools: dict[str, FunctionTool] = {}
    broken: dict[str, str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        origin = f"{point.name} = {point.value}"
        found, error = _loaded(point)
        if error:
            broken[origin] = error
        for name, one in found.items():
            if name in reserved or name in tools:
                broken[f"{origin}: {name}"] = f"there is already a tool {name}; give this one another name"
            else:
                tools[name] = one
    return Plugins(tools, broken)


def _loaded(point: EntryPoint) -> tuple[Mapping[str, FunctionTool], str]:
    """The tools of an entry point, or why it can't be used."""
    try:
        return strangers(lambda: {one.spec.name: built(one) for one in _offered(point.load())}), ""
    except StrangersFailure as failed:
        return {}, error_line(failed.error)


def _offered(value: Any) -> Iterator[PythonTool]:
    offered = [value] if isinstance(value, PythonTool) else list(value)[:TOOLS_MAX]
    for one in offered:
        if not isinstance(one, PythonTool):
            raise TypeError(f"{type(one).__name__} is not a tool; make one with @tool of handrail.tools.sdk")
        yield one
