"""Whether any process on this home executes runs. Which project it works for is not known from outside.

Part of the only place that knows which parts the program is made of; nothing is decided here."""

from __future__ import annotations

from itertools import islice
from typing import Final

from handrail.settings import Settings
from handrail.storage.presence import is_alive

LOOKED_AT_MAX: Final = 1_000


def has_live_worker(settings: Settings) -> bool:
    """Whether a process lives that could pick up a run, of this project or of another."""
    if not settings.workers.is_dir():
        return False
    return any(is_alive(settings.workers, file.stem) for file in islice(settings.workers.glob("*.lock"), LOOKED_AT_MAX))
