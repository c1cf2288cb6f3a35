"""A worker skips what it may skip and comes to the end: later prompts bear it, and a routine is skipped whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from outside.walks.code.bug_fix import NORMAL as BUG_FIX
from outside.walks.code.feature import NORMAL as FEATURE
from outside.walks.code.generation import NORMAL as GENERATION
from outside.walks.code.refactor import NORMAL as REFACTOR
from outside.walks.code.review import NORMAL as REVIEW
from outside.walks.walk import Skipped, Walk, at_work, walked_honestly
from outside.walks.workplace import Workplace

UNNEEDED = Skipped("it is small")


def without(walk: Walk, *steps: str) -> Walk:
    return replace(walk, steps={**walk.steps, **dict.fromkeys(steps, lambda _: UNNEEDED)})


async def test_skipping_the_first_step_of_a_routine_skips_the_routine(tmp_path: Path) -> None:
    walk = without(FEATURE, "context.frame", "criteria", "polish.review")
    walk = replace(walk, steps={name: do for name, do in walk.steps.items() if name != "context.look"})
    walked = await walked_honestly(walk, Workplace(tmp_path, walk.files))
    assert walked.path[:3] == ["criteria", "context.frame", "design"]


@pytest.mark.parametrize(
    ("walk", "step"),
    [(BUG_FIX, "reproduce"), (FEATURE, "branch"), (GENERATION, "behaviours"), (REFACTOR, "pin"), (REVIEW, "scope")],
    ids=lambda value: value.workflow if isinstance(value, Walk) else None,
)
async def test_what_has_to_be_proved_is_not_skipped_by_an_agent(tmp_path: Path, walk: Walk, step: str) -> None:
    work = Workplace(tmp_path, walk.files)
    walk.prepared(work)
    async with at_work(walk, work) as worker:
        answer = await worker.start()
        while answer["step"]["id"] != step:
            answer = await worker.do(answer["step"], lying=False)
        answer = await worker.ask("workflow_next", run=worker.run, step=step, outcome="skipped", note="it is small")
        assert answer["name"] == "forbidden", answer
