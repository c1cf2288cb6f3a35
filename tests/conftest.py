"""What every test begins with: the program's logs as they are before anybody has started them."""

from __future__ import annotations

import logging

import pytest

from handrail.logs import ROOT, stop_logging


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
