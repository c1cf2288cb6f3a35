"""test-generation is finished by a worker whose tests notice what is broken, and not by its twin that lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from outside.walks.code.generation import NORMAL, QUICK
from outside.walks.walk import Walk, walked_after_lying, walked_honestly
from outside.walks.workplace import Workplace


@pytest.mark.long
@pytest.mark.parametrize("walk", [pytest.param(QUICK, id="quick"), pytest.param(NORMAL, id="normal")])
async def test_missing_tests_are_written(tmp_path: Path, walk: Walk) -> None:
    walked = await walked_honestly(walk, Workplace(tmp_path, walk.files))
    assert walked.end["outputs"]["verdict"] == "not_needed"


async def test_no_lie_about_tests_is_accepted_before_they_are_written(tmp_path: Path) -> None:
    walked = await walked_after_lying(NORMAL, Workplace(tmp_path, NORMAL.files))
    assert walked.end["outputs"]["verdict"] == "not_needed"
