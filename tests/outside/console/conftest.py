"""What the tests of the console share: one browser for each module, and servers that are not measured for coverage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from outside.console.person import opened_browser


@pytest.fixture(scope="module", autouse=True)
def unmeasured_servers() -> Iterator[None]:
    """Servers of a whole module start before `unmeasured` of a single test counts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        yield


@pytest.fixture(scope="module")
def browser(unmeasured_servers: None) -> Iterator[Browser]:
    with opened_browser() as opened:
        yield opened
