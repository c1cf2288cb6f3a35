"""Thousands of simulated days, each from its seed; and the same seed gives the same day, wherever it is lived."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.day import simulate
from simulation.run import report

ROOT = Path(__file__).parent.parent.parent
CHUNK = 250


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("first", range(0, 2_000, CHUNK))
def test_no_invariant_breaks_whatever_happens(first: int) -> None:
    for seed in range(first, first + CHUNK):
        outcome = simulate(seed)
        assert not outcome.broken, report(outcome)


def test_days_are_as_various_as_they_should_be() -> None:
    outcomes = [simulate(seed) for seed in range(120)]
    statuses = {status for outcome in outcomes for status in outcome.statuses}
    words = {word for outcome in outcomes for line in outcome.tale for word in line.split()}
    assert {"completed", "failed", "cancelled", "compensated"} <= statuses
    wanted = "run_paused step_became_uncertain attempt_lost answer_came_late approval_expired"
    wanted += (
        " round_started step_deferred undo_failed undo_lost undo_became_uncertain step_carried crashes stopped epoch"
    )
    assert set(wanted.split()) <= words


def test_a_seed_gives_the_same_journal_in_every_process() -> None:
    digests = [_digests(hash_seed) for hash_seed in ("1", "2")]
    assert digests[0] == digests[1]
    assert digests[0].splitlines()[0] == f"300 {simulate(300).digest}"


def _digests(hash_seed: str) -> str:
    command = [sys.executable, "tests/simulation/run.py", "--seed", "300", "--count", "25", "--digest"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
