"""Simulated days by the thousand are not measured for coverage: that takes three times as long, and tells no more."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def unmeasured() -> Iterator[None]:
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)
