"""What `handrail worker` prints: a store that does not answer for a while is reported, and ends nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from handrail.domain.errors import Unavailable
from handrail.interfaces.cli import worker


class SilentStore:
    """A reader whose store fails a number of times, and then says that nothing is left."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    async def run(self, run_id: str) -> None:
        raise AssertionError(f"{run_id} is read before the store answers")

    async def lease_holders(self, *, after: str, project: str) -> list[Path]:
        if self.failures:
            self.failures -= 1
            raise Unavailable("the store does not answer")
        return []


def test_a_store_that_is_away_does_not_end_the_log_of_a_worker(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "POLL_S", 0.001)
    log = object.__new__(worker._WorkerLog)
    log.worker = type("Idle", (), {"conductors": {}, "dispatch": type("Sent", (), {"project": "p"})})()
    log.store = log.run_reader = SilentStore(failures=3)  # type: ignore[assignment]
    log.seen, log.ended, log.waits = set(), {}, {}
    asyncio.run(asyncio.wait_for(log.follow(until_idle=True), 10))
    assert capsys.readouterr().err.count("nothing can be shown now: the store does not answer") == 3
