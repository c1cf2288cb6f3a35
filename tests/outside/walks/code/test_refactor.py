"""refactoring is finished by a worker that changes structure only, and not by its twin that lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from outside.walks.code.refactor import NORMAL, QUICK
from outside.walks.walk import Walk, walked_after_lying, walked_honestly
from outside.walks.workplace import Workplace


@pytest.mark.long
@pytest.mark.parametrize("walk", [pytest.param(QUICK, id="quick"), pytest.param(NORMAL, id="normal")])
async def test_code_is_refactored(tmp_path: Path, walk: Walk) -> None:
    work = Workplace(tmp_path, walk.files)
    await walked_honestly(walk, work)
    assert "5 passed" in work.pytest()


async def test_no_lie_about_a_refactoring_is_accepted_before_it_is_done(tmp_path: Path) -> None:
    work = Workplace(tmp_path, NORMAL.files)
    await walked_after_lying(NORMAL, work)
    assert "5 passed" in work.pytest()
