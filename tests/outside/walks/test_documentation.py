"""documentation-update is finished by a worker that fixes the pages, and not by its twin that only says so."""

from __future__ import annotations

from pathlib import Path

from outside.walks.documentation import NORMAL
from outside.walks.leaving_out import walked_leaving_out
from outside.walks.walk import walked_after_lying
from outside.walks.workplace import Workplace


async def test_pages_are_brought_up_to_date_and_no_lie_about_it_accepted(tmp_path: Path) -> None:
    work = Workplace(tmp_path, NORMAL.files)
    walked = await walked_after_lying(NORMAL, work)
    assert "maximum" in work.read("docs/guide.md")
    assert len(walked.path) <= 11


async def test_reading_and_changelog_may_be_left_out(tmp_path: Path) -> None:
    work = Workplace(tmp_path, NORMAL.files)
    walked = await walked_leaving_out(NORMAL, work, by_agent="read", by_person="announce")
    assert "smooth" not in walked.path
