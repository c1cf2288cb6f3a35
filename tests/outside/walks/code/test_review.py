"""code-review is finished by a reviewer that reads and runs a change, and not by its twin that lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from outside.walks.code.review import NORMAL, QUICK, RANGE, THOROUGH
from outside.walks.walk import Walk, walked_honestly, walked_lying
from outside.walks.workplace import Workplace

both = pytest.mark.parametrize("walk", [QUICK, NORMAL], ids=["quick", "normal"])


@both
async def test_a_change_is_reviewed_and_its_verdict_computed(tmp_path: Path, walk: Walk) -> None:
    walked = await walked_honestly(walk, Workplace(tmp_path, walk.files))
    assert walked.end["outputs"]["verdict"] == "request_changes"


async def test_a_range_on_main_is_reviewed_and_a_blocker_that_nobody_refuted_stays(tmp_path: Path) -> None:
    walked = await walked_honestly(RANGE, Workplace(tmp_path, RANGE.files))
    assert walked.end["outputs"]["verdict"] == "request_changes"
    assert walked.end["outputs"]["blockers"] == "part 1.1; "


@both
async def test_no_lie_about_a_review_is_accepted(tmp_path: Path, walk: Walk) -> None:
    await walked_lying(walk, Workplace(tmp_path, walk.files))


@pytest.mark.long
async def test_a_change_is_reviewed_thoroughly(tmp_path: Path) -> None:
    walked = await walked_honestly(THOROUGH, Workplace(tmp_path, THOROUGH.files))
    assert {"context.look", "lenses[0].inspect"} <= set(walked.path)
