"""The harness itself: a worker that does what it is told comes to the end, a twin that lies does not, and what the twin
did is undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from outside.walks.tally import FILES
from outside.walks.walk import Hands, Lie, Skipped, Walk, walked_honestly, walked_lying, walked_stubbornly
from outside.walks.workplace import Workplace

TEST = 'def test_blank():\n    from tally.table import parse\n\n    assert parse("a\\n1\\n\\n") == [{"a": "1"}]\n'
ALL = {"rule": "tests_pass", "severity": "critical"}
COMMITTED = {"rule": "git_clean", "severity": "critical"}
DEFINITION: dict[str, Any] = {
    "id": "small-fix",
    "steps": [
        {"id": "plan", "prompt": "Plan it."},
        {"id": "fix", "prompt": "Fix it, with a test, and commit.", "checks": [ALL, COMMITTED]},
    ],
}


def fix(hands: Hands) -> Any:
    work = hands.work
    work.edit("src/tally/table.py", "for line in lines[1:]", "for line in lines[1:] if line")
    work.write("tests/test_blank.py", TEST)
    assert "1 passed" in work.pytest("tests/test_blank.py")
    return {"commit": work.commit("Leave out blank lines")}


def only_the_test(hands: Hands) -> Any:
    hands.work.write("tests/test_blank.py", TEST)
    return {"commit": hands.work.commit("All fixed")}


def uncommitted(hands: Hands) -> Any:
    fix(hands)
    hands.work.git("reset", "-q", "--soft", "HEAD~1")
    return {"commit": "0" * 40}


LIES = (
    Lie(step="fix", name="only the test", tell=only_the_test, noticed_by="tests_pass"),
    Lie(step="fix", name="not committed", tell=uncommitted, noticed_by="git_clean"),
)
WALK = Walk(workflow="small-fix", files=FILES, steps={"plan": lambda _: Skipped("it is small"), "fix": fix}, lies=LIES)


@pytest.fixture
def work(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path, FILES)
    place.workflow(DEFINITION)
    return place


async def test_a_worker_that_does_what_it_is_told_completes_the_run(work: Workplace) -> None:
    walked = await walked_honestly(WALK, work)
    assert walked.path == ["plan", "fix"]
    assert walked.cost.calls == 3


async def test_a_twin_that_lies_is_refused_each_time_and_leaves_nothing_behind(work: Workplace) -> None:
    before = work.head()
    await walked_lying(WALK, work)
    assert work.head() == before
    assert not work.git("status", "--porcelain")
    assert not (work.project / "tests" / "test_blank.py").exists()


async def test_a_twin_that_insists_never_completes_the_run(work: Workplace) -> None:
    await walked_stubbornly(WALK, work)


async def test_a_lie_that_is_the_truth_is_noticed_by_the_harness(work: Workplace) -> None:
    truth = Walk(
        workflow="small-fix",
        files=FILES,
        steps=WALK.steps,
        lies=(Lie(step="fix", name="the truth", tell=fix, noticed_by="tests_pass"),),
    )
    with pytest.raises(AssertionError, match="the truth"):
        await walked_lying(truth, work)
