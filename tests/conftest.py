"""What every test begins with: the program's logs as they are before anybody has started them, and a limit of time."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Generator
from types import FrameType

import pytest
from coverage import Coverage
from hypothesis import settings

from handrail.logs import ROOT, stop_logging

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("handrail", deadline=None)
settings.load_profile("handrail")

HANGS_S = 540
"""Less than faulthandler_timeout, which ends the whole worker: the runner would then wait for it in vain."""

UNMEASURED = (
    "outside/",
    "simulation/",
    "library/test_built_in_workflows",
    "surface/test_policy_matrix",
    "http/test_policy_matrix",
    "domain/language/test_hostile_language",
    "interfaces/cli/fleet/",
    "interfaces/cli/test_demo",
    "interfaces/cli/test_tables",
    "interfaces/clients/test_doctor",
    "interfaces/mcp/stdio/",
)
"""Tests that repeat what the rooms' own tests cover: measuring them doubles their time and adds no line."""
SLOW = ("outside/", "simulation/", "rules/toolchain/")
FOR_PROCESSES = "COVERAGE_PROCESS_CONFIG"
_paused: list[tuple[Coverage, str]] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the files that take minutes, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: not any(part in item.nodeid for part in SLOW))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Measure the coverage of this test and of the processes it starts, or rest until one is to be measured."""
    is_measured = not any(part in item.nodeid for part in UNMEASURED)
    measuring = Coverage.current()  # none while it is stopped
    if not is_measured and measuring is not None:
        _paused.append((measuring, os.environ.pop(FOR_PROCESSES, "")))
        measuring.stop()
    elif is_measured and _paused:
        stopped, os.environ[FOR_PROCESSES] = _paused.pop()
        stopped.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Let a test that hangs fail, where the platform can interrupt it; the tests that are marked long have no limit."""
    if not hasattr(signal, "SIGALRM") or item.get_closest_marker("long"):
        return (yield)

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        pytest.fail(f"it took longer than {HANGS_S} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(HANGS_S)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def _logs() -> None:
    """Undo what an earlier test did to the program's logs."""
    stop_logging()
    logging.disable(logging.NOTSET)
    for name in (ROOT, *logging.root.manager.loggerDict):
        if name == ROOT or name.startswith(f"{ROOT}."):
            logger = logging.getLogger(name)
            logger.disabled = False
            logger.setLevel(logging.NOTSET)
