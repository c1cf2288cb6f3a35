"""kill -9 at random moments, with several processes writing to one file: nothing that was acknowledged is lost."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from storage.rounds import Heard, playing, require_sound
from storage.writers import Order

ROUNDS = 200
ROUNDS_A_FILE = 50
LOOK_EVERY = 5
SEED = random.SystemRandom().randrange(2**32)


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 and fork are a matter of POSIX")
async def test_nothing_acknowledged_is_lost_by_two_hundred_kills(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    acknowledged = 0
    with playing() as rounds:
        for file in range(ROUNDS // ROUNDS_A_FILE):
            path, heard = tmp_path / f"{file}.db", Heard()
            for round_ in range(1, ROUNDS_A_FILE + 1):
                order = Order(
                    str(path),
                    f"{file}-{round_}",
                    writers=chance.choice((2, 3)),
                    appends=10_000,
                    kill_after=chance.randrange(1, 60),
                    kill_later_s=chance.uniform(0, 0.004),
                )
                codes = rounds.play(order, heard)
                assert set(codes) == {-9}, f"seed {SEED}, file {file}, round {round_}: {codes}"
                if round_ % LOOK_EVERY == 0:
                    try:
                        await require_sound(path, heard)
                    except AssertionError as error:
                        raise AssertionError(f"seed {SEED}, file {file}, round {round_}") from error
            acknowledged += len(heard.acknowledged)
    assert acknowledged > ROUNDS * 5
