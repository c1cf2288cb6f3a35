"""The disaster drill is executed, with a small home; `make drill` does it with more."""

from __future__ import annotations

import pytest

from interfaces.backup_drill import events_of, main


def test_the_written_drill_is_passed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(100) == 0
    assert "the drill is passed" in capsys.readouterr().out
    assert (events_of([]), events_of(["1_000"])) == (2_000, 1_000)
