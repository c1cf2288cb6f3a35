"""What every test leaves behind as it was: the program's logs, which a test may have turned away from the root."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handrail.logs import stop_logging


@pytest.fixture(autouse=True)
def _logs() -> Iterator[None]:
    yield
    stop_logging()
