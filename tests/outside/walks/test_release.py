"""release-and-deploy is finished by a worker that tags, builds and deploys, and not by its twin that only says so."""

from __future__ import annotations

from pathlib import Path

from outside.walks.leaving_out import walked_leaving_out
from outside.walks.release import AT_ONCE, NEW, NORMAL, PROBE
from outside.walks.walk import walked_honestly, walked_lying
from outside.walks.workplace import Workplace


async def test_a_version_is_released_share_by_share(tmp_path: Path) -> None:
    work = Workplace(tmp_path, NORMAL.files)
    await walked_honestly(NORMAL, work)
    assert work.run(*PROBE).strip() == NEW
    assert f"refs/tags/v{NEW}" in work.git("ls-remote", "--tags", "origin")


async def test_no_lie_about_a_release_is_accepted(tmp_path: Path) -> None:
    await walked_lying(AT_ONCE, Workplace(tmp_path, AT_ONCE.files))


async def test_rollback_and_notes_may_be_left_out(tmp_path: Path) -> None:
    work = Workplace(tmp_path, AT_ONCE.files)
    await walked_leaving_out(AT_ONCE, work, by_agent="retreat", by_person="notes")
