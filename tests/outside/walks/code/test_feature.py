"""feature-implementation is finished by a worker that builds a feature, and not by its twin that lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from outside.walks.code.feature import NORMAL, QUICK, THOROUGH
from outside.walks.walk import Walk, walked_after_lying, walked_honestly
from outside.walks.workplace import Workplace


@pytest.mark.long
@pytest.mark.parametrize(
    "walk",
    [
        pytest.param(QUICK, id="quick"),
        pytest.param(NORMAL, id="normal"),
        pytest.param(THOROUGH, id="thorough"),
    ],
)
async def test_a_feature_is_built(tmp_path: Path, walk: Walk) -> None:
    work = Workplace(tmp_path, walk.files)
    walked = await walked_honestly(walk, work)
    assert "build[0].make" in walked.path
    assert "6 passed" in work.pytest()


async def test_no_lie_about_a_feature_is_accepted_before_it_is_built(tmp_path: Path) -> None:
    work = Workplace(tmp_path, NORMAL.files)
    walked = await walked_after_lying(NORMAL, work)
    assert "build[0].make" in walked.path
    assert "6 passed" in work.pytest()
