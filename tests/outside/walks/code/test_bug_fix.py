"""bug-fix-test-first is finished by a worker that fixes a bug, at a known cost, and not by its twin that lies."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from outside.walks.code.bug_fix import NORMAL, QUICK, THOROUGH
from outside.walks.walk import Walk, walked_honestly, walked_lying
from outside.walks.workplace import Workplace


@pytest.mark.parametrize(("walk", "calls", "tokens"), [(QUICK, 9, 2_500), (NORMAL, 14, 4_000)], ids=["quick", "normal"])
async def test_a_bug_is_fixed_test_first_within_its_budget(tmp_path: Path, walk: Walk, calls: int, tokens: int) -> None:
    walked = await walked_honestly(walk, Workplace(tmp_path, walk.files))
    assert walked.cost.calls <= calls
    assert walked.cost.tokens <= tokens


async def test_no_lie_about_a_fix_is_accepted(tmp_path: Path) -> None:
    await walked_lying(NORMAL, Workplace(tmp_path, NORMAL.files))


@pytest.mark.long
async def test_a_bug_is_fixed_thoroughly(tmp_path: Path) -> None:
    walked = await walked_honestly(THOROUGH, Workplace(tmp_path, THOROUGH.files))
    assert "prove[0].verify.prove" in walked.path


async def test_a_bug_is_fixed_without_a_sandbox_but_not_by_lies(tmp_path: Path) -> None:
    """As on a machine without bubblewrap: what the code was before is tried in a copy."""
    honest, lying = tmp_path / "honest", tmp_path / "lying"
    for folder in (honest, lying):
        folder.mkdir()
    await walked_honestly(QUICK, Workplace(honest, QUICK.files, has_sandbox=False))
    lies = tuple(lie for lie in NORMAL.lies if lie.noticed_by in {"tests_prove", "tests_kept"} and lie.step == "fix")
    assert len(lies) == 3
    await walked_lying(replace(NORMAL, lies=lies), Workplace(lying, NORMAL.files, has_sandbox=False))
