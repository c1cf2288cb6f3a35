"""database-migration is finished by a worker that moves real rows, and not by its twin that only says that it did."""

from __future__ import annotations

from pathlib import Path

from outside.walks.leaving_out import walked_leaving_out
from outside.walks.migration import NORMAL, ROWS, counted
from outside.walks.walk import walked_after_lying
from outside.walks.workplace import Workplace


async def test_totals_become_cents_in_a_database_in_use_and_no_lie_about_it_accepted(tmp_path: Path) -> None:
    work = Workplace(tmp_path, NORMAL.files)
    walked = await walked_after_lying(NORMAL, work)
    assert walked.path.count("backfill[1].batch") == 1
    assert counted(work, "select count(*) from orders where cents > 0") == ROWS + 1  # one is free, two are new


async def test_facts_and_restore_point_may_be_left_out(tmp_path: Path) -> None:
    work = Workplace(tmp_path, NORMAL.files)
    walked = await walked_leaving_out(NORMAL, work, by_agent="facts", by_person="backup")
    assert "contract" in walked.path
