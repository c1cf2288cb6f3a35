"""The table of routes: it drives routing, permission, the `.json` twins of pages and the OpenAPI document.

Order counts: of two paths that match, the first is taken."""

from __future__ import annotations

from typing import Final

from starlette.routing import compile_path

from handrail.interfaces.http.contract.library_routes import APPROVALS, LIBRARY, PLANS, TOOLS
from handrail.interfaces.http.contract.route import Route
from handrail.interfaces.http.contract.run_routes import HOME, RUNS
from handrail.interfaces.http.contract.server_routes import JOURNAL, SERVER

ROUTES: Final[tuple[Route, ...]] = (*HOME, *RUNS, *APPROVALS, *PLANS, *LIBRARY, *TOOLS, *JOURNAL, *SERVER)

PAGES_ONLY: Final = (
    "/settings",
    "/settings/look",
    "/settings/keyboard",
    "/library/{workflow:path}/start",
)
"""Pages of the console that have no answer of their own: lists of other pages, and what only the browser keeps."""


def is_page(path: str) -> bool:
    """Whether the console has a page at this path."""
    pages = (*(route.page for route in ROUTES if route.page), *PAGES_ONLY)
    return any(compile_path(page)[0].fullmatch(path) for page in pages)
