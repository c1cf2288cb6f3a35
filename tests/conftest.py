"""What every test begins with: the program's logs as they are before anybody has started them, and a limit of time."""

from __future__ import annotations

import logging
import signal
from collections.abc import Generator
from types import FrameType

import pytest

from handrail.logs import ROOT, stop_logging

HANGS_S = 540
"""Less than faulthandler_timeout, which ends the whole worker: the runner would then wait for it in vain."""


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
