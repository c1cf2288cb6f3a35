"""handrail: guide, run and remember, over one journal. These are the names that a program may rely on.

Each is imported when it is first used, so that `import handrail` costs nothing. The page about them is
docs/guides/python.md."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from handrail.api import Program as Program
    from handrail.api import connect as connect
    from handrail.api import open_program
    from handrail.domain.checks.finding import Finding as Finding
    from handrail.domain.definition.model import Definition as Definition
    from handrail.domain.errors import Conflict as Conflict
    from handrail.domain.errors import Forbidden as Forbidden
    from handrail.domain.errors import HandrailError as HandrailError
    from handrail.domain.errors import Invalid as Invalid
    from handrail.domain.errors import NotFound as NotFound
    from handrail.domain.errors import Unavailable as Unavailable
    from handrail.engine.reading.run_view import Status as Status
    from handrail.library.loading import load_data as load_data
    from handrail.library.loading import load_definition as load_definition
    from handrail.runs import RunHandle as RunHandle
    from handrail.runs import Runs as Runs
    from handrail.settings import Settings as Settings
    from handrail.tools.sdk import tool as tool

    open = open_program  # noqa: A001 - used as `handrail.open`

_HOMES: Final = {
    "Conflict": "handrail.domain.errors",
    "Definition": "handrail.domain.definition.model",
    "Finding": "handrail.domain.checks.finding",
    "Forbidden": "handrail.domain.errors",
    "HandrailError": "handrail.domain.errors",
    "Invalid": "handrail.domain.errors",
    "NotFound": "handrail.domain.errors",
    "Program": "handrail.api",
    "RunHandle": "handrail.runs",
    "Runs": "handrail.runs",
    "Settings": "handrail.settings",
    "Status": "handrail.engine.reading.run_view",
    "Unavailable": "handrail.domain.errors",
    "connect": "handrail.api",
    "load_data": "handrail.library.loading",
    "load_definition": "handrail.library.loading",
    "open": "handrail.api",
    "tool": "handrail.tools.sdk",
}
_ALIASES: Final = {"open": "open_program"}
"""Names that would hide a built-in one where they are defined."""
__all__ = sorted(_HOMES)


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a type checker knows the names from above, and no others

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'handrail' has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), _ALIASES.get(name, name))
