"""dependency-upgrade is finished by a worker that installs and adapts, not by its twin that only writes a number."""

from __future__ import annotations

from pathlib import Path

from outside.walks.leaving_out import walked_leaving_out
from outside.walks.upgrade import INSTALLED, NEW, NORMAL
from outside.walks.walk import walked_after_lying
from outside.walks.workplace import Workplace


async def test_a_package_is_upgraded_to_a_new_major_version_and_no_lie_about_it_accepted(tmp_path: Path) -> None:
    work = Workplace(tmp_path, NORMAL.files)
    await walked_after_lying(NORMAL, work)
    assert work.run(*INSTALLED).strip() == NEW
    assert "5 passed" in work.pytest()


async def test_notes_and_the_last_look_may_be_left_out(tmp_path: Path) -> None:
    work = Workplace(tmp_path, NORMAL.files)
    walked = await walked_leaving_out(NORMAL, work, by_agent="look", by_person="notes")
    assert "hops[0].bump" in walked.path, "without notes there is one hop"
