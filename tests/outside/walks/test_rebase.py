"""rebase-and-conflicts is finished by a worker that resolves a real conflict, and not by its twin that loses work."""

from __future__ import annotations

from pathlib import Path

from outside.walks.leaving_out import walked_leaving_out
from outside.walks.rebase import BOTH, BRANCH, ONTO, PUSHED, REPORT
from outside.walks.walk import walked_after_lying
from outside.walks.workplace import Workplace


async def test_a_branch_with_a_conflict_is_rebased_and_pushed_and_no_lie_about_it_accepted(tmp_path: Path) -> None:
    work = Workplace(tmp_path, PUSHED.files)
    await walked_after_lying(PUSHED, work)
    assert BOTH in work.read(REPORT)
    assert work.git("rev-list", "--count", f"{ONTO}..origin/{BRANCH}") == "2"


async def test_rehearsal_and_comparison_may_be_left_out(tmp_path: Path) -> None:
    work = Workplace(tmp_path, PUSHED.files)
    walked = await walked_leaving_out(PUSHED, work, by_agent="rehearse", by_person="compare")
    assert "understand[0].intent" not in walked.path
