"""documentation-update is finished by a worker that fixes the pages, and not by its twin that only says so."""

from __future__ import annotations

from pathlib import Path

from outside.walks.documentation import NORMAL
from outside.walks.leaving_out import walked_leaving_out
from outside.walks.walk import walked_honestly, walked_lying
from outside.walks.workplace import Workplace


async def test_pages_are_brought_up_to_date(tmp_path: Path) -> None:
    work = Workplace(tmp_path, NORMAL.files)
    walked = await walked_honestly(NORMAL, work)
    assert "maximum" in work.read("docs/guide.md")
    assert walked.cost.calls <= 12


async def test_no_lie_about_pages_is_accepted(tmp_path: Path) -> None:
    await walked_lying(NORMAL, Workplace(tmp_path, NORMAL.files))


async def test_reading_and_changelog_may_be_left_out(tmp_path: Path) -> None:
    work = Workplace(tmp_path, NORMAL.files)
    walked = await walked_leaving_out(NORMAL, work, by_agent="read", by_person="announce")
    assert "smooth" not in walked.path
