"""handrail: guide, run and remember, over one journal. These are the names that a program may rely on.

Each is imported when it is first asked for, so that `import handrail` costs nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from handrail.assembly import Handrail as Handrail
    from handrail.assembly import Reading as Reading
    from handrail.assembly import Working as Working
    from handrail.assembly import opened as opened
    from handrail.assembly import reading as reading
    from handrail.assembly import working as working
    from handrail.domain.check import Finding as Finding
    from handrail.domain.definition import Definition as Definition
    from handrail.domain.errors import HandrailError as HandrailError
    from handrail.domain.run import Run as Run
    from handrail.library.loading import FolderCatalog as FolderCatalog
    from handrail.library.loading import Loaded as Loaded
    from handrail.library.loading import check_inputs as check_inputs
    from handrail.library.loading import load_data as load_data
    from handrail.library.loading import load_definition as load_definition
    from handrail.settings import Settings as Settings
    from handrail.settings import read_settings as read_settings

_HOMES: Final = {
    "Definition": "handrail.domain.definition",
    "Finding": "handrail.domain.check",
    "FolderCatalog": "handrail.library.loading",
    "Handrail": "handrail.assembly",
    "HandrailError": "handrail.domain.errors",
    "Loaded": "handrail.library.loading",
    "Reading": "handrail.assembly",
    "Run": "handrail.domain.run",
    "Settings": "handrail.settings",
    "Working": "handrail.assembly",
    "check_inputs": "handrail.library.loading",
    "load_data": "handrail.library.loading",
    "load_definition": "handrail.library.loading",
    "opened": "handrail.assembly",
    "read_settings": "handrail.settings",
    "reading": "handrail.assembly",
    "working": "handrail.assembly",
}
__all__ = sorted(_HOMES)


if not TYPE_CHECKING:  # a type checker knows the names from above, and no others

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'handrail' has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)
