"""The page that clients show in a window of their own (MCP Apps): a run, and what a person is asked.

One file, built from ui/ (`make ui`), under two addresses: the whole run, or first of all the question. It has no
network: everything it shows comes from the client, in answers of our tools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from handrail.interfaces.mcp.surface.offer import Content, Resource

APP_TYPE: Final = "text/html;profile=mcp-app"
SCHEME: Final = "ui://"
RUN_PAGE: Final = f"{SCHEME}handrail/run"
APPROVAL_PAGE: Final = f"{SCHEME}handrail/approval"
META: Final[Mapping[str, Any]] = {
    "ui": {
        # Empty lists: the client allows the page no other origin, for anything.
        "csp": {"connectDomains": [], "resourceDomains": [], "frameDomains": [], "baseUriDomains": []},
        "permissions": {"clipboardWrite": {}},
        "prefersBorder": True,
    }
}
PAGES: Final = (
    Resource(uri=RUN_PAGE, name="run", description="a run in the client's window", type=APP_TYPE, meta=META),
    Resource(
        uri=APPROVAL_PAGE,
        name="approval",
        description="what a person is asked, in the client's window",
        type=APP_TYPE,
        meta=META,
    ),
)
_VIEWS: Final[Mapping[str, str]] = {RUN_PAGE: "run", APPROVAL_PAGE: "approval"}
_MARK: Final = 'data-view="run"'


def page_of(uri: str) -> Content | None:
    """The page at this address, if there is one."""
    view = _VIEWS.get(uri)
    if view is None:
        return None
    return Content(text=_html().replace(_MARK, f'data-view="{view}"', 1), type=APP_TYPE, meta=META)


@lru_cache(1)
def _html() -> str:
    return files("handrail.interfaces.mcp.surface.views").joinpath("app.html").read_text("utf-8")
