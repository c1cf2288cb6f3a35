"""What holds for all tests from outside: the processes they start are not measured for coverage.

They are many, and each would take twice as long to start; what they cover, quicker tests cover as well."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
